"""Broken captures: a clear status each, nothing crashes, good ones still count."""
import csv
import gzip
import json
import re
import sqlite3

import pytest
from conftest import DATA, Report


def first_bytes(path, count):
    return open(path, "rb").read()[:count]


@pytest.fixture(scope="session")
def broken(tmp_path_factory):
    folder = tmp_path_factory.mktemp("broken")
    torch = DATA / "h200/input.torch.json.gz"
    events = gzip.open(torch).read()
    (folder / "truncated.json.gz").write_bytes(first_bytes(torch, 9000))
    (folder / "empty.csv").write_bytes(b"")
    (folder / "elf.bin").write_bytes(open("/bin/true", "rb").read()[:4096])
    (folder / "text.json").write_text("hello world\n")
    kernel = events.index(b'"cat": "kernel"')
    duration = re.compile(rb'"dur": [0-9.]+')
    for name, value in (("infinity", b"Infinity"), ("nan", b"NaN")):
        damaged = duration.sub(b'"dur": ' + value, events[kernel:], count=1)
        (folder / f"{name}.json").write_bytes(events[:kernel] + damaged)
    (folder / "missing_brace.json").write_bytes(events.rstrip()[:-200])
    database = sqlite3.connect(folder / "no_kernels.sqlite")
    source = sqlite3.connect(":memory:")
    source.deserialize(gzip.open(DATA / "h200/input.nsys.sqlite.gz").read())
    source.backup(database)
    for table in ("KERNEL", "MEMCPY", "MEMSET"):
        database.execute(f"DROP TABLE CUPTI_ACTIVITY_KIND_{table}")
    database.commit()
    database.close()
    (folder / "other.sqlite").touch()
    other = sqlite3.connect(folder / "other.sqlite")
    other.execute("CREATE TABLE t (a)")
    other.commit()
    other.close()
    return folder


UNREADABLE = ["empty.csv", "elf.bin", "text.json", "no_kernels.sqlite", "other.sqlite"]


@pytest.mark.parametrize("name", UNREADABLE)
def test_an_unreadable_capture_is_explained(analyze, broken, name):
    outcome = analyze(str(broken / name))
    assert outcome.code == 1, outcome.err
    report = Report(json.loads(outcome.out))
    (capture,) = report.message["captures"]
    assert capture["label"] == name and capture["code"] != 0 and len(capture["message"]) > 20
    assert report.primary == "UNDETERMINED_NO_EVIDENCE"
    assert capture["message"] in json.dumps(report.message["summary"], ensure_ascii=False)


@pytest.mark.parametrize("name", UNREADABLE + ["truncated.json.gz"])
def test_good_captures_still_count_beside_a_broken_one(analyze, broken, name):
    report = analyze([str(DATA / "h200/launch.nsys.sqlite.gz"), str(broken / name)]).report
    assert report.primary == "LAUNCH_OVERHEAD"
    assert len(report.message["captures"]) == 2
    if name != "truncated.json.gz":
        bad = next(c for c in report.message["captures"] if c["label"] == name)
        assert bad["code"] != 0 and bad["message"]


@pytest.mark.parametrize("name", ["infinity.json", "nan.json", "missing_brace.json", "truncated.json.gz"])
def test_a_damaged_trace_loses_nothing_silently(analyze, broken, name):
    outcome = analyze(str(broken / name))
    assert outcome.code in (0, 1), outcome.err
    if outcome.code == 0:
        message = outcome.report.message
        losses = message["findings"].get("parse_statistics", [])
        failed = [c for c in message["captures"] if c.get("code")]
        assert failed or any(int(s["count"]) > 0 for s in losses), json.dumps(message)[:2000]


def test_a_missing_file_is_named(solward):
    outcome = solward("analyze", "--local", "--capture", "/nonexistent/x.csv")
    assert outcome.code == 6
    assert "/nonexistent/x.csv" in outcome.err


@pytest.mark.parametrize("args, word", [
    (["--metrics", "mfuu"], "mfuu"),
    (["--context", "step_time=fast"], "step_time"),
    (["--context", "B"], "key=value"),
    (["--region", "everything"], "everything"),
    (["--lang", "de"], "de"),
])
def test_a_wrong_option_exits_2_and_names_the_word(solward, args, word):
    outcome = solward("analyze", "--local", "--capture", DATA / "h200/axpy.ncu.raw.csv", *args)
    assert outcome.code == 2
    assert word in outcome.err


def test_a_prescriptive_statement_is_refused_with_its_words(solward):
    outcome = solward("analyze", "--local", "--capture", DATA / "h200/axpy.ncu.raw.csv", "--statement",
                      "Run NCU with --set=full. If it fails, try --set=detailed.")
    assert outcome.code == 2
    assert "--set=full" in outcome.err
    assert "fallback" in outcome.err


@pytest.mark.parametrize("column, value", [
    ("sm__throughput.avg.pct_of_peak_sustained_elapsed", "7500.0"),
    ("gpu__time_duration.sum", "-5"),
    ("gpu__time_duration.sum", "0"),
    ("gpu__time_duration.sum", "1e24"),
    ("gpu__time_duration.sum", "1e400"),
])
def test_values_that_no_hardware_gives_are_counted_and_not_used(analyze, tmp_path, column, value):
    rows = list(csv.reader(open(DATA / "h200/bmm.ncu.raw.csv")))
    for row in rows[2:]:
        row[rows[0].index(column)] = value
    with open(tmp_path / "edited.csv", "w") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows(rows)
    report = analyze(str(tmp_path / "edited.csv")).report
    statistics = {s["name"]: int(s["count"]) for s in report.message["findings"]["parse_statistics"]}
    assert statistics["ncu_values_impossible"] >= 3
    assert all(m.get("value", 0) >= 0 for m in report.message["all_metrics"] if m["id"] == "recoverable_share")


def test_a_step_time_that_cannot_be_is_an_error_finding(analyze):
    report = analyze("h200/launch.nsys.sqlite.gz", "--context", "step_time=1us").report
    assert report.finding("step_time_implausible")["severity"] == "SEVERITY_ERROR"


@pytest.mark.parametrize("args, word", [(["frob"], "frob"), (["--nosuch"], "--nosuch"), ([], "--help")])
def test_an_unknown_word_is_named(solward, args, word):
    outcome = solward(*args)
    assert outcome.code == 2 and word in outcome.out + outcome.err
