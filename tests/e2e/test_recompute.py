"""Every number of the sample reports is recomputed from the captures; a changed digit is found.

The recomputation (recompute.py, time_model.py) shares no code with the product.
"""
import copy
import csv
import json
import os
import re
import signal
import subprocess
import tempfile
import time

import pytest

import recompute
from conftest import BIN, DATA
from recompute_format import client_quantity, format_quantity

with open(DATA / "ground_truth/plain.tsv", encoding="utf-8") as plain:
    PLAIN = {r["workload"]: r["plain_ms_per_step"] for r in csv.DictReader(plain, delimiter="\t")}

BMM = "B=32 M=512 N=1024 K=2048"
STATEMENT = ("Compute the MFU of the batched GEMM, its SOL, warp stall reasons and roofline. It performs 68.72 GFLOP "
             "per call (B=32, M=512, N=1024, K=2048, FP16).")


class Sample:
    """Captures, options of the analysis, and what the client gave."""

    def __init__(self, captures, *options, given=""):
        self.captures = [DATA / c for c in captures.split()]
        self.options = options
        self.given = dict(g.split("=", 1) for g in given.split())


SAMPLES = {
    "bmm-raw": Sample("h200/bmm.ncu.raw.csv", "--context", BMM + " dtype=fp16", "--metrics",
                      "mfu,sol,compute_throughput,memory_throughput,dram_throughput,dram_bandwidth,"
                      "tensor_pipe_utilization,achieved_occupancy,theoretical_occupancy,registers_per_thread,"
                      "waves_per_sm,warp_stalls,roofline,bottleneck_class,kernel_time", given=BMM),
    "bmm-details": Sample("h200/bmm.ncu.details.csv", "--context", BMM + " dtype=fp16 gpu=H200-SXM", "--metrics",
                          "mfu,sol,roofline,warp_stalls,bottleneck_class,dram_bandwidth", given=BMM),
    "bmm-statement": Sample("h200/bmm.ncu.raw.csv", "--statement", STATEMENT,
                            given=BMM + " flops_per_call=68.72GFLOP"),
    "axpy-raw": Sample("h200/axpy.ncu.raw.csv"),
    "axpy-details": Sample("h200/axpy.ncu.details.csv"),
    "axpy-nsys": Sample("h200/axpy.nsys.sqlite.gz"),
    "axpy-all": Sample("h200/axpy.ncu.raw.csv h200/axpy.nsys.sqlite.gz h200/nvidia-smi-query.csv"),
    "launch-nsys": Sample("h200/launch.nsys.sqlite.gz"),
    "launch-torch": Sample("h200/launch.torch.json.gz"),
    "launch-both": Sample("h200/launch.nsys.sqlite.gz h200/launch.torch.json.gz"),
    "comm-nsys": Sample("h200/comm.nsys.sqlite.gz"),
    "comm-torch": Sample("h200/comm.rank0.torch.json.gz h200/comm.rank1.torch.json.gz"),
    "input-nsys": Sample("h200/input.nsys.sqlite.gz"),
    "input-torch": Sample("h200/input.torch.json.gz"),
    "graph-nsys": Sample("h200/graph.nsys.sqlite.gz"),
    "graph-torch": Sample("h200/graph.torch.json.gz"),
    "sync-nsys": Sample("h200/sync.nsys.sqlite.gz"),
    "sync-torch": Sample("h200/sync.torch.json.gz"),
    "throughput": Sample("h200/graph.torch.json.gz", "--context",
                         "step_time=2.9ms batch=16 sequence=128 flops_per_step=1.5TFLOP dtype=fp16", "--metrics",
                         "mfu,throughput,sample_throughput,token_throughput,latency,bottleneck_class",
                         given="step_time=2.9ms batch_size=16 sequence_length=128 flops_per_step=1.5TFLOP"),
    "region": Sample("h200/input.nsys.sqlite.gz", "--region", "nvtx:step,skip=3,max=5"),
    "region-profiler-api": Sample("h200/axpy.nsys.sqlite.gz", "--region", "cuda_profiler_api"),
    "region-profiler-step": Sample("h200/comm.rank1.torch.json.gz", "--region", "profiler_step,skip=1"),
    "one-kernel": Sample("h200/axpy.ncu.raw.csv h200/axpy.nsys.sqlite.gz", "--kernel", "fma_loop"),
    "smi-csv": Sample("h200/nvidia-smi-query.csv", "--metrics",
                      "gpu_utilization,memory_used,power,temperature,device_sm_clock"),
    "smi-xml": Sample("h200/nvidia-smi-q-2gpu.xml", "--metrics",
                      "gpu_utilization,memory_used,power,temperature,device_sm_clock"),
    "rnn_small-ncu": Sample("ground_truth/rnn_small.ncu.raw.csv"),
    "ew_chain-ncu": Sample("ground_truth/ew_chain.ncu.raw.csv"),
    "rnn_small-undetermined": Sample("ground_truth/rnn_small.torch.json.gz"),
}
for workload, plain_ms in PLAIN.items():
    for tool, name in (("nsys", "nsys.sqlite.gz"), ("torch", "torch.json.gz")):
        SAMPLES[f"{workload}-{tool}"] = Sample(f"ground_truth/{workload}.{name}", "--context",
                                               f"step_time={plain_ms}ms", given=f"step_time={plain_ms}ms")

# Reports whose numbers are damaged one by one: together they hold every kind of number.
DAMAGED = ["bmm-raw", "bmm-details", "bmm-statement", "axpy-details", "axpy-all", "comm-nsys", "comm-torch",
           "input-nsys", "input-torch", "graph-nsys", "graph-torch", "sync-nsys", "launch-nsys", "sync_gemm-torch",
           "h2d-nsys", "throughput", "region", "region-profiler-api", "one-kernel", "smi-csv", "smi-xml",
           "rnn_small-undetermined"]


# --- running the product -------------------------------------------------------


class Stack:
    """A coordinator with both specialists; each sample is analysed once, its report printed in each form."""

    def __init__(self, folder):
        self.folder, self.processes, self.reports = folder, [], {}
        self.target = f"unix:{folder}/c.sock"

    def start(self):
        self._start("solward-coordinator", "--listen", self.target, "--state-dir", f"{self.folder}/coordinator")
        for name in ("profiling", "cuda-graph"):
            self._start(f"solward-{name}-agent", "--listen", f"unix:{self.folder}/{name}.sock", "--workspace",
                        f"{self.folder}/{name}", "--coordinator", self.target)
        deadline = time.monotonic() + 30
        while True:
            outcome = self._run("specialists")
            if outcome.returncode == 0 and outcome.stdout.count("healthy") == 2:
                return
            assert time.monotonic() < deadline, f"the specialists do not register: {outcome.stdout}{outcome.stderr}"
            time.sleep(0.1)

    def stop(self):
        for process in reversed(self.processes):
            process.send_signal(signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _start(self, program, *arguments):
        with open(f"{self.folder}/{program}.log", "w", encoding="utf-8") as log:
            self.processes.append(subprocess.Popen([str(BIN / program), *arguments, "--die-with-parent"], stdout=log,
                                                   stderr=log, stdin=subprocess.DEVNULL))

    def _run(self, *arguments):
        return subprocess.run([str(BIN / "solward"), "--coordinator", self.target, *map(str, arguments)],
                              capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, check=False)

    def json(self, name):
        if name not in self.reports:
            captures = [a for c in SAMPLES[name].captures for a in ("--capture", c)]
            outcome = self._run("analyze", "--format", "json", *captures, *SAMPLES[name].options)
            assert outcome.returncode == 0, outcome.stderr
            self.reports[name] = json.loads(outcome.stdout)
        return self.reports[name]

    def markdown(self, name, language):
        outcome = self._run("report", self.json(name)["analysis_id"], "--format", "md", "--lang", language)
        assert outcome.returncode == 0, outcome.stderr
        return outcome.stdout


@pytest.fixture(scope="module")
def stack():
    assert (BIN / "solward").exists(), f"no programs in {BIN}: build first or set SOLWARD_BIN_DIR"
    with tempfile.TemporaryDirectory(prefix="solward-", dir="/tmp" if os.path.isdir("/tmp") else None) as folder:
        running = Stack(folder)
        try:
            running.start()
            yield running
        finally:
            running.stop()


def problems_of(report, name, markdown=None, language="en"):
    problems, unchecked = recompute.check(report, SAMPLES[name].captures, SAMPLES[name].given, markdown, language)
    assert not unchecked, f"given values that the sample does not state: {unchecked}"
    return problems


# --- every number ----------------------------------------------------------------


@pytest.mark.parametrize("name", SAMPLES)
def test_every_number_of_the_json_form(stack, name):
    report = stack.json(name)
    assert report["all_metrics"]
    assert problems_of(report, name) == []


@pytest.mark.parametrize("language", ["en", "fr"])
@pytest.mark.parametrize("name", SAMPLES)
def test_every_number_of_the_markdown(stack, name, language):
    markdown = stack.markdown(name, language)
    assert len(re.findall(r"\[m\d+\]", markdown)) >= 5
    assert problems_of(stack.json(name), name, markdown, language) == []


def test_the_samples_hold_every_kind_of_number(stack):
    metrics = [m for name in SAMPLES for m in stack.json(name)["all_metrics"]]
    kinds = {kind for m in metrics for kind in m["provenance"]}
    assert kinds == {"measured", "derived", "given", "reference"}
    tools = {(m["provenance"]["measured"]["tool"], m["provenance"]["measured"]["rows"]["table"])
             for m in metrics if "measured" in m["provenance"]}
    assert {("ncu", "raw"), ("ncu", "details"), ("nsys", "timeline"), ("nsys", "CUPTI_ACTIVITY_KIND_KERNEL"),
            ("nsys", "CUPTI_ACTIVITY_KIND_RUNTIME"), ("nsys", "CUPTI_ACTIVITY_KIND_MEMCPY"),
            ("torch.profiler", "timeline"), ("torch.profiler", "traceEvents"), ("nvidia-smi", "gpu")} <= tools
    tables = {m["provenance"]["reference"]["table"] for m in metrics if "reference" in m["provenance"]}
    assert tables == {"gpu_peaks", "classification"}


def test_as_a_program(stack, tmp_path, capsys):
    report, markdown = tmp_path / "report.json", tmp_path / "report.md"
    report.write_text(json.dumps(stack.json("bmm-raw")), encoding="utf-8")
    markdown.write_text(stack.markdown("bmm-raw", "fr"), encoding="utf-8")
    command = [str(report), "--captures", str(DATA / "h200/bmm.ncu.raw.csv"), "--markdown", str(markdown), "--lang",
               "fr"]
    assert recompute.main(command) == 0
    assert "not checked: " in capsys.readouterr().out
    assert recompute.main(command + ["--given", *BMM.split()]) == 0
    assert "not checked: " not in capsys.readouterr().out
    assert recompute.main(command + ["--given", "B=33"]) == 1
    markdown.write_text(markdown.read_text(encoding="utf-8").replace(" %", " % 1", 1), encoding="utf-8")
    assert recompute.main(command) == 1


# --- one digit ---------------------------------------------------------------------


def other_digit(text, seed, digits=15):
    """The text with one of its digits, chosen by the seed, raised by one (9 becomes 0).

    The last of 17 digits of a double may change nothing."""
    exponent = re.search(r"[eE]", text)
    places = [m.start() for m in re.finditer(r"\d", text[:exponent.start()] if exponent else text)]
    place = places[seed % min(len(places), digits)]
    return text[:place] + str((int(text[place]) + 1) % 10) + text[place + 1:]


def numbers_in(part, path=()):
    """(path, value) of every number of a JSON form, 64-bit ones are texts."""
    if isinstance(part, dict):
        for name, value in part.items():
            yield from numbers_in(value, path + (name,))
    elif isinstance(part, list):
        for i, value in enumerate(part):
            yield from numbers_in(value, path + (i,))
    elif isinstance(part, (int, float)) and not isinstance(part, bool):
        yield path, part
    elif isinstance(part, str) and re.fullmatch(r"-?\d[\d.]*", part):
        yield path, part


def shape(report, path):
    """Numbers of one shape are made alike: one of each is damaged."""
    names = tuple(p for p in path if isinstance(p, str))
    if path[0] != "all_metrics":
        return names
    metric = report["all_metrics"][path[1]]
    (kind, source), = metric["provenance"].items()
    rows = source.get("rows", {})
    column = ()
    if "conditions" in path:
        column = (rows["conditions"][path[path.index("conditions") + 1]]["column"],)
    return (names, metric["id"] if kind != "measured" else "", kind, rows.get("table"), source.get("aggregation"),
            source.get("formula_id"), metric["scope"]["kind"]) + column


# Of what is no metric's: not measured, so there is nothing to compare it with.
UNMEASURED_SCOPE = ("metrics", "unmeasured", "scope")
# Samples of nvidia-smi: the output does not define which cells count as empty.
SMI_TALLY = ("findings", "parse_statistics", "count")


def damaged(report, path, value, seed):
    result = copy.deepcopy(report)
    part = result
    for step in path[:-1]:
        part = part[step]
    # A standard deviation is compared relative to the rows.
    text = other_digit(value if isinstance(value, str) else repr(value), seed, 8 if path[-1] == "stddev" else 15)
    part[path[-1]] = text if isinstance(value, str) else type(value)(text)
    assert part[path[-1]] != value, f"nothing changed: {path}"
    return result


@pytest.mark.parametrize("name", DAMAGED)
def test_a_changed_digit_of_the_json_form_is_found(stack, name):
    report, shapes, missed = stack.json(name), set(), []
    for seed, (path, value) in enumerate(numbers_in(report)):
        names = tuple(p for p in path if isinstance(p, str))
        if names[:3] == UNMEASURED_SCOPE or (names == SMI_TALLY and name.startswith("smi")):
            continue
        # Each shape once, and every ninth number besides.
        if shape(report, path) in shapes and seed % 9:
            continue
        shapes.add(shape(report, path))
        broken = damaged(report, path, value, seed)
        if not problems_of(broken, name):
            missed.append(f"{'.'.join(map(str, path))}: {value!r}")
    assert len(shapes) >= 10
    assert missed == []


@pytest.mark.parametrize("name", DAMAGED)
def test_a_number_where_there_was_none_is_found(stack, name):
    """Zeros are left out of the JSON form; each kind of zero is made a one."""
    report, shapes = stack.json(name), set()
    for i, metric in enumerate(report["all_metrics"]):
        kind, = metric["provenance"]
        if "value" in metric or (metric["id"], kind) in shapes:
            continue
        shapes.add((metric["id"], kind))
        broken = copy.deepcopy(report)
        broken["all_metrics"][i]["value"] = 1
        assert problems_of(broken, name), metric


@pytest.mark.parametrize("language", ["en", "fr"])
@pytest.mark.parametrize("name", ["bmm-raw", "axpy-details", "comm-nsys", "input-torch", "h2d-nsys", "throughput",
                                  "smi-csv", "rnn_small-undetermined"])
def test_a_changed_digit_of_the_markdown_is_found(stack, name, language):
    report, markdown = stack.json(name), stack.markdown(name, language)
    recomputation = recompute.Recomputation(report, SAMPLES[name].captures, SAMPLES[name].given)
    assert recomputation.check() == []
    prose = re.sub(r"(`+).+?\1", lambda m: "\x00" * len(m.group(0)), markdown)
    numbers = list(re.finditer(r"\d[\d.,\u202f]*(?=[^\[\]\n\x00|]*\[m(\d+)\])|^\d+(?=\. )", prose, re.MULTILINE))
    ids, missed = set(), []
    for seed, match in enumerate(numbers):
        id = recomputation.by_key["m" + match.group(1)]["id"] if match.group(1) else "item"
        # Each kind of metric once, and every seventh number besides.
        if id in ids and seed % 7:
            continue
        ids.add(id)
        broken = markdown[:match.start()] + other_digit(match.group(0), seed) + markdown[match.end():]
        if not recompute.check_markdown(broken, recomputation, language):
            missed.append(markdown[match.start() - 20:match.end() + 20])
    assert len(ids) >= 4
    assert missed == []


def test_a_number_from_nowhere_is_found_in_the_markdown(stack):
    recomputation = recompute.Recomputation(stack.json("axpy-raw"), SAMPLES["axpy-raw"].captures)
    assert recomputation.check() == []
    markdown = stack.markdown("axpy-raw", "en")
    assert recompute.check_markdown(markdown, recomputation, "en") == []
    for addition in ("About 30 % faster.", "Twice 2.", "`row 987654321`", "3. A third item.", "70.7 % [m9999]"):
        assert recompute.check_markdown(markdown + addition + "\n", recomputation, "en"), addition


@pytest.mark.parametrize("change", [
    lambda m: m["provenance"]["measured"].update(raw_name="dram__throughput.avg.pct_of_peak_sustained_elapsed"),
    lambda m: m["provenance"]["measured"].update(aggregation="AGGREGATION_MAX"),
    lambda m: m["provenance"]["measured"].update(tool="nsys"),
    lambda m: m["provenance"]["measured"].update(tool_version="2025.1"),
    lambda m: m["provenance"]["measured"]["rows"].update(table="details"),
    lambda m: m["provenance"]["measured"]["rows"].update(ranges=[{"first": "1", "last": "1"}]),
    lambda m: m["provenance"]["measured"].update(artifact_id="art-0"),
    lambda m: m["scope"].update(name="another_kernel"),
    lambda m: m.update(unit="1"),
    lambda m: m.update(id="memory_throughput"),
    lambda m: m.update(provenance={"given": {"field": "context.compute_throughput"}}),
])
def test_another_provenance_is_found(stack, change):
    report = copy.deepcopy(stack.json("bmm-raw"))
    change(next(m for m in report["all_metrics"] if m["id"] == "compute_throughput"))
    problems, given = recompute.check(report, SAMPLES["bmm-raw"].captures, SAMPLES["bmm-raw"].given)
    assert problems or given


def test_another_capture_is_found(stack):
    problems, _ = recompute.check(stack.json("axpy-raw"), [DATA / "h200/bmm.ncu.raw.csv"])
    assert any("SHA-256" in p for p in problems)


# --- the pieces ----------------------------------------------------------------------


@pytest.mark.parametrize("value, unit, si, decimals, english, french", [
    (3.4e12, "By/s", True, 2, "3.40 TB/s", "3,40 To/s"),
    (2045, "{kernel}", False, 0, "2,045 kernels", "2\u202f045 noyaux"),
    (69.175, "%", False, 1, "69.2 %", "69,2 %"),
    (100405.33, "ns", True, 1, "100.4 µs", "100,4 µs"),
    (999999.9, "ns", True, 0, "1 ms", "1 ms"),
    (0.0, "ns", True, 2, "0.00 ns", "0,00 ns"),
    (-0.04, "%", False, 1, "0.0 %", "0,0 %"),
    (1, "{call}", False, 0, "1 call", "1 appel"),
    (1.5, "{call}", False, 1, "1.5 calls", "1,5 appel"),
    (0, "{call}", False, 0, "0 calls", "0 appel"),
    (7e9, "{parameter}", True, 2, "7.00 G parameters", "7,00 G paramètres"),
    (989.4e12, "{FLOP}/s", True, 1, "989.4 TFLOP/s", "989,4 TFLOP/s"),
    (344.83, "{step}/s", False, 2, "344.83 steps/s", "344,83 pas/s"),
    (1.98e9, "Hz", True, 2, "1.98 GHz", "1,98 GHz"),
    (2.5e12, "ns", True, 2, "2,500.00 s", "2\u202f500,00 s"),
    (33, "Cel", False, 0, "33 °C", "33 °C"),
    (0.125, "1", False, 2, "0.12", "0,12"),
])
def test_quantities_as_printed(value, unit, si, decimals, english, french):
    assert format_quantity(value, unit, si, decimals, "en") == english
    assert format_quantity(value, unit, si, decimals, "fr") == french


@pytest.mark.parametrize("text, value", [("24ms", 24e6), ("68.72GFLOP", 68.72e9), ("68,72 GFLOP par appel", 68.72e9),
                                         ("1,205", 1205), ("32", 32), ("7B", 7e9), ("0.5s", 5e8)])
def test_quantities_of_a_client(text, value):
    assert client_quantity(text) == value


@pytest.mark.parametrize("expression, value", [("a - b - c", -4), ("max(0, a - b) / max(c, b) * 100", 0),
                                               ("a * (1 - b / 4)", 0.5), ("min(a, b * c)", 1), ("1e9 / b", 5e8)])
def test_formulas(expression, value):
    assert recompute.evaluate(expression, {"a": 1.0, "b": 2.0, "c": 3.0}) == value


@pytest.mark.parametrize("expression", ["a ** 2", "open(a)", "a.real", "[a]", "a if b else c", "'a'"])
def test_formulas_are_arithmetic_only(expression):
    with pytest.raises(recompute.Mismatch):
        recompute.evaluate(expression, {"a": 1.0, "b": 2.0, "c": 3.0})
