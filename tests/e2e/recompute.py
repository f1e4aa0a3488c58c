#!/usr/bin/env python3
"""Recomputes every number of a report from its captures, by the provenance alone.

    recompute.py REPORT.json --captures FILE... [--given step_time=24ms ...]
                 [--markdown REPORT.md --lang en|fr]

Exit code 0: every number matches. 1: those that do not are listed, one a line. Given values are compared with
--given and listed where nothing was passed. Shares no code with the product; needs PyYAML.
"""
import argparse
import ast
import functools
import hashlib
import json
import pathlib
import re
import sys

import yaml

import recompute_captures
from recompute_captures import Mismatch
from recompute_format import client_quantity, printed_number
from recompute_markdown import check_markdown

CONFIG = pathlib.Path(__file__).resolve().parents[2] / "config"

# Values are compared exactly. A standard deviation may be summed in another order; relative to the largest row.
CLOSE_DEVIATION = 1e-13
# The request holds a step time in seconds.
CLOSE_GIVEN = 1e-15

# Which of the tool's own names a metric may rest on: the number must mean what its name says.
TIMELINE_NAMES = {
    "window_time": "window", "profiled_step_time": "window", "step_count": "steps", "gpu_busy_time": "busy",
    "communication_time": "communication", "exposed_communication_time": "exposed_communication",
    "transfer_time": "transfer", "exposed_transfer_time": "exposed_transfer", "idle_launch_time": "idle_launch",
    "idle_sync_time": "idle_sync", "idle_host_time": "idle_host", "idle_queued_time": "idle_queued",
    "idle_unattributed_time": "idle_unattributed", "host_stretch_time": "host_stretches_1ms",
    "lead_in_time": "lead_in", "tail_time": "tail", "kernel_count": "kernels", "launch_call_count": "launch_calls",
    "graph_launch_count": "graph_launches", "graph_operation_count": "graph_operations",
    "synchronization_count": "synchronizations", "synchronization_time": "duration",
    "pageable_copy_count": "pageable_copies", "pageable_copy_bytes": "bytes", "pageable_copy_time": "duration",
    "kernel_total_time": "duration", "kernel_launches": "kernels",
}
CONDITIONS = {"synchronization_time": ("kind", "synchronizing"), "pageable_copy_bytes": ("host_memory", "pageable"),
              "pageable_copy_time": ("host_memory", "pageable")}
REFERENCES = {"peak_dram_bandwidth": ("dram_gb_per_s", 1e9), "peak_clock": ("tensor_mhz", 1e6),
              "boost_clock": ("boost_mhz", 1e6)}
PEAK_COLUMNS = ("fp64", "fp64_tc", "fp32", "tf32", "fp16_tc", "bf16_tc", "fp8_tc", "fp4_tc", "int8_tc")


class Catalogue:
    def __init__(self, config=CONFIG):
        def read(name):
            loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
            return yaml.load((config / name).read_text(encoding="utf-8"), loader)

        metrics = read("metrics.yaml")
        self.metrics = {m["id"]: m for m in metrics["metrics"]}
        self.formulas = {f["id"]: f for f in metrics["formulas"]}
        self.parameters = read("classification.yaml")
        self.peaks = {g["name"]: g for g in read("gpu_peaks.yaml")["gpus"]}


@functools.cache
def product_catalogue():
    return Catalogue()


def evaluate(expression, inputs):
    """+ - * / min max over names and numbers."""
    operators = {ast.Add: lambda a, b: a + b, ast.Sub: lambda a, b: a - b, ast.Mult: lambda a, b: a * b,
                 ast.Div: lambda a, b: a / b}

    def value(node):
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            return float(node.value)
        if isinstance(node, ast.Name):
            return inputs[node.id]
        if isinstance(node, ast.BinOp) and type(node.op) in operators:
            return operators[type(node.op)](value(node.left), value(node.right))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -value(node.operand)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("min", "max"):
            return {"min": min, "max": max}[node.func.id](value(a) for a in node.args)
        raise Mismatch(f"formula {expression!r} cannot be read")

    return value(ast.parse(expression, mode="eval").body)


def names_in(expression):
    return {n.id for n in ast.walk(ast.parse(expression)) if isinstance(n, ast.Name)} - {"min", "max"}


_opened = {}  # SHA-256 -> capture; reading a large one takes seconds


class Recomputation:
    """Checks one report; `problems` and `given` are filled by check()."""

    def __init__(self, report, captures, given=None, catalogue=None):
        self.report, self.catalogue = report, catalogue or product_catalogue()
        self.wanted_given = given or {}
        self.problems, self.given, self.values = [], [], {}
        self.by_key = {}
        self.captures = {}  # artifact id -> opened capture
        self._match_artifacts(captures)

    def problem(self, where, what):
        self.problems.append(f"{where}: {what}")

    def _match_artifacts(self, paths):
        by_hash = {}
        for path in paths:
            data = pathlib.Path(path).read_bytes()
            by_hash[hashlib.sha256(data).hexdigest()] = data
        for artifact in self.report.get("artifacts", []):
            where, digest = f"artifact {artifact.get('label')}", artifact.get("sha256")
            if digest not in by_hash:
                self.problem(where, f"no capture given has the SHA-256 {digest}")
                continue
            if int(artifact.get("size", 0)) != len(by_hash[digest]):
                self.problem(where, f"size {artifact.get('size')}, is {len(by_hash[digest])}")
            if digest not in _opened:
                _opened[digest] = recompute_captures.open_capture(by_hash[digest])
                _opened[digest].known_gpus = list(_opened[digest].gpus())
            _opened[digest].begin()
            self.captures[artifact["id"]] = _opened[digest]

    def check(self):
        for metric in self.report.get("all_metrics", []):
            if metric["key"] in self.by_key:
                self.problem(metric["key"], "two metrics have this key")
            self.by_key[metric["key"]] = metric
        # The windows first: counts and sums refer to them.
        keys = sorted(self.by_key, key=lambda k: self._table(self.by_key[k]) != "timeline")
        for key in keys:
            try:
                self.value(key)
            except Mismatch:
                pass  # already told
        self._check_references(self.report, "")
        self._check_places()
        self._check_tools()
        self._check_environment()
        self._check_tallies()
        return self.problems

    @staticmethod
    def _table(metric):
        return metric.get("provenance", {}).get("measured", {}).get("rows", {}).get("table")

    def value(self, key, path=()):
        """The recomputed value of a metric; raises Mismatch where it has none."""
        if key in path:
            raise Mismatch(f"{key} is derived from itself")
        if key not in self.by_key:
            raise Mismatch(f"there is no metric {key}")
        if key not in self.values:
            try:
                self.values[key] = self._recompute(self.by_key[key], path + (key,))
            except (Mismatch, ArithmeticError, LookupError, TypeError, ValueError) as error:
                self.values[key] = None
                self.problem(self._name(key), f"cannot be recomputed: {type(error).__name__}: {error}")
        if self.values[key] is None:
            raise Mismatch(f"{key} cannot be recomputed")
        return self.values[key]

    def _name(self, key):
        metric = self.by_key[key]
        return f"{key} {metric['id']} {metric.get('scope', {}).get('name', '')[:60]}".strip()

    def _recompute(self, metric, path):
        entry = self.catalogue.metrics.get(metric["id"])
        if entry is None:
            raise Mismatch("the catalogue has no such metric")
        if metric.get("unit") != entry["unit"]:
            self.problem(self._name(metric["key"]), f"unit {metric.get('unit')}, catalogue {entry['unit']}")
        provenance = metric["provenance"]
        if len(provenance) != 1:
            raise Mismatch(f"provenance of {len(provenance)} kinds")
        (kind, source), = provenance.items()
        value = {"measured": self._measured, "derived": self._derived, "given": self._given,
                 "reference": self._reference}[kind](metric, source, path)
        reported = float(metric.get("value", 0.0))
        if value != reported:
            self.problem(self._name(metric["key"]), f"value {reported!r}, recomputed {value!r}")
        return value

    # --- the four kinds ------------------------------------------------------

    def _measured(self, metric, measured, path):
        capture = self.captures.get(measured["artifact_id"])
        if capture is None:
            raise Mismatch(f"artifact {measured['artifact_id']} is not at hand")
        where = self._name(metric["key"])
        if measured["tool"] != capture.tool:
            self.problem(where, f"tool {measured['tool']}, the capture is of {capture.tool}")
        if measured.get("tool_version", "") != capture.version:
            self.problem(where, f"tool version {measured.get('tool_version')}, the capture says {capture.version!r}")
        table = measured.get("rows", {}).get("table")
        if table != getattr(capture, "table", table):
            raise Mismatch(f"the capture has no table {table}")
        self._check_meaning(metric, measured, capture)
        reading = capture.read(measured, metric.get("scope", {}))
        value, samples, population = recompute_captures.aggregate(reading, measured["aggregation"])
        if int(measured.get("samples", 0)) != samples:
            self.problem(where, f"samples {measured.get('samples')}, recomputed {samples}")
        if measured.get("unit_scale", 1.0) != (reading.scale or 1.0):
            self.problem(where, f"unit scale {measured['unit_scale']}, recomputed {reading.scale}")
        averaged = measured["aggregation"] in ("AGGREGATION_MEAN", "AGGREGATION_TIME_MODEL_PER_STEP")
        self._check_spread(where, measured.get("spread"), recompute_captures.spread(population) if averaged else None)
        return value

    def _check_spread(self, where, reported, recomputed):
        if (reported is None) != (recomputed is None):
            self.problem(where, f"spread {reported}, recomputed {recomputed}")
        elif recomputed is not None:
            tolerance = CLOSE_DEVIATION * max(abs(recomputed["min"]), abs(recomputed["max"]))
            for name, value in recomputed.items():
                difference = abs(float(reported.get(name, 0.0)) - value)
                if difference > (tolerance if name == "stddev" else 0):
                    self.problem(where, f"spread {name} {reported.get(name)!r}, recomputed {value!r}")

    def _check_meaning(self, metric, measured, capture):
        """A number may be right and yet be another one than its name says."""
        id, raw = metric["id"], measured["raw_name"]
        kind = metric.get("scope", {}).get("kind", "").removeprefix("SCOPE_KIND_")
        where = self._name(metric["key"])
        if capture.tool in ("nsys", "torch.profiler"):
            expected = TIMELINE_NAMES.get(id)
            if id == "kernel_time":
                expected = "duration" if kind == "KERNEL" else "kernel"
            if raw != expected:
                self.problem(where, f"rests on {raw}, which is not what {id} is")
            column, value = CONDITIONS.get(id, (None, None))
            if column and recompute_captures.conditions(measured["rows"]).get(column) != value:
                self.problem(where, f"needs the condition {column}={value}")
            per_step = measured["aggregation"].endswith("PER_STEP")
            if kind != "KERNEL" and (kind == "STEP") != per_step:
                self.problem(where, f"scope {kind} with {measured['aggregation']}")
        elif capture.tool == "ncu" and measured["rows"]["table"] == "raw":
            definition = self.catalogue.metrics[id]["definition"]
            named = re.match(r"[a-z0-9]+__[\w.]+(?= |;|$)", definition)
            if named and raw != named.group(0) and raw.split(".")[0] != named.group(0).split(".")[0]:
                self.problem(where, f"rests on {raw}; the catalogue says {named.group(0)}")
            reason = metric["scope"].get("name", "").partition("|")[2]
            if id == "stall_cycles" and f"_stalled_{reason}_per_issue_active" not in raw:
                self.problem(where, f"rests on {raw}, not on the stall {reason}")

    def _derived(self, metric, derived, path):
        formula = self.catalogue.formulas.get(derived["formula_id"])
        if formula is None or formula["metric"] != metric["id"]:
            raise Mismatch(f"the catalogue has no formula {derived['formula_id']} of {metric['id']}")
        inputs = {i["name"]: i["metric_key"] for i in derived["inputs"]}
        if set(inputs) != names_in(formula["expression"]) or len(inputs) != len(derived["inputs"]):
            raise Mismatch(f"inputs {sorted(inputs)} are not those of {formula['expression']!r}")
        place = _place(metric["scope"])
        places = {_place(self.by_key[k]["scope"]) for k in inputs.values() if k in self.by_key}
        if place not in places and place != (-1, -1):
            self.problem(self._name(metric["key"]), f"device and rank {place}, its inputs have {sorted(places)}")
        return evaluate(formula["expression"], {n: self.value(k, path) for n, k in inputs.items()})

    def _given(self, metric, given, path):
        reported = float(metric.get("value", 0.0))
        name = metric["scope"].get("name") if metric["id"] == "dimension" else metric["id"]
        if not given.get("field"):
            raise Mismatch("no field of the request")
        if given.get("text") and not _text_says(given["text"], reported, name):
            raise Mismatch(f"{given['text']!r} does not say {reported!r}")
        if name not in self.wanted_given:
            self.given.append(f"{metric['key']} {name} = {reported!r} {metric['unit']} ({given['field']})")
            return reported
        wanted = client_quantity(self.wanted_given[name])
        return reported if abs(wanted - reported) <= CLOSE_GIVEN * wanted else wanted

    def _reference(self, metric, reference, path):
        if reference["table"] == "classification":
            parameter = self.catalogue.parameters[reference["row"]]
            if reference.get("column"):
                raise Mismatch("a parameter has no column")
            if ("ns" in reference["row"].split("_")) != (metric["unit"] == "ns"):
                raise Mismatch(f"{reference['row']} in {metric['unit']}")
            return float(parameter["value"])
        if reference["table"] != "gpu_peaks":
            raise Mismatch(f"no table {reference['table']}")
        row, column = self.catalogue.peaks[reference["row"]], reference["column"]
        if metric["id"] == "peak_flops" and column in PEAK_COLUMNS:
            scale = 1e12
        elif REFERENCES.get(metric["id"], (None,))[0] == column:
            scale = REFERENCES[metric["id"]][1]
        else:
            raise Mismatch(f"{metric['id']} is not column {column}")
        where = self._name(metric["key"])
        if reference.get("source") != row["source"]:
            self.problem(where, f"source {reference.get('source')!r}, the table says {row['source']!r}")
        confidence = _confidence(row["confidence"], column)
        if reference.get("confidence") != confidence:
            self.problem(where, f"confidence {reference.get('confidence')!r}, the table says {confidence!r}")
        return float(row[column]) * scale

    # --- everything else in a report -----------------------------------------

    def _check_references(self, part, path):
        """Every key that any part of the report names is a metric's; every artifact is listed."""
        if isinstance(part, list):
            for i, element in enumerate(part):
                self._check_references(element, f"{path}[{i}]")
        if not isinstance(part, dict):
            return
        artifacts = {a["id"] for a in self.report.get("artifacts", [])}
        for name, value in part.items():
            where = f"{path}.{name}".lstrip(".")
            keys = []
            if name.endswith("_key") and isinstance(value, str):
                keys = [value]
            elif name.endswith("_keys"):
                keys = list(value.values()) if isinstance(value, dict) else value
            for key in keys:
                if key and key not in self.by_key:
                    self.problem(where, f"there is no metric {key}")
            if name == "artifact_id" and value not in artifacts:
                self.problem(where, f"artifact {value} is not listed")
            if name in ("device", "rank") and value < -1:
                self.problem(where, f"{value}; unknown is -1")
            if isinstance(value, (dict, list)):
                self._check_references(value, where)

    def _check_places(self):
        """Device and rank of a table are those of the metrics in it; recommendations are in order."""
        classification = self.report.get("classification", {})
        parts = [("metrics.kernels", k, k.get("metric_keys", [])) for k in self.report["metrics"].get("kernels", [])]
        parts += [("metrics.time_tables", t, t.get("share_keys", []))
                  for t in self.report["metrics"].get("time_tables", [])]
        parts += [("classification", classification, [r["share_key"]])
                  for r in classification.get("ranking", [])[:1] if r.get("share_key")]
        for where, part, keys in parts:
            places = {_place(self.by_key[k]["scope"]) for k in keys if k in self.by_key}
            if _place(part) not in places:
                self.problem(where, f"device and rank {_place(part)}, its metrics have {sorted(places)}")
        for i, r in enumerate(self.report["recommendations"].get("recommendations", []), 1):
            if r.get("priority", 0) != i:
                self.problem(f"recommendation {r['id']}", f"priority {r.get('priority')}, is number {i}")

    def _check_tools(self):
        said = {(c.tool, c.version) for c in self.captures.values()}
        parts = [("captures", c) for c in self.report.get("captures", []) if c.get("artifact_id") in self.captures]
        parts += [("environment.tools", t) for t in self.report.get("environment", {}).get("tools", [])]
        for where, part in parts:
            tool = part["tool"], part.get("tool_version", part.get("version", ""))
            if tool not in said:
                self.problem(where, f"{' '.join(tool)}, the captures say {sorted(said)}")

    def _check_environment(self):
        numbers = ("compute_major", "compute_minor", "sm_count", "memory_bytes", "memory_bandwidth",
                   "max_sm_clock_hz")
        environment = self.report.get("environment", {})
        drivers = [c.driver() for c in self.captures.values() if c.tool == "nvidia-smi"]
        for i, name in enumerate(("driver_version", "cuda_version")):
            if name in environment and environment[name] not in [d[i] for d in drivers]:
                self.problem("environment", f"{name} {environment[name]}, the captures say {[d[i] for d in drivers]}")
        for i, gpu in enumerate(environment.get("gpus", [])):
            where, capture = f"environment.gpus[{i}]", self.captures.get(gpu.get("artifact_id"))
            if capture is None:
                self.problem(where, "its artifact is not at hand")
                continue
            found = {}
            for device, properties in capture.known_gpus:
                if device == gpu.get("device", 0):
                    found.update({k: v for k, v in properties.items() if v is not None})
            for name in numbers + ("name", "uuid"):
                if name not in gpu:
                    continue
                reported = int(gpu[name]) if name in numbers else gpu[name]
                if reported != found.get(name):
                    self.problem(where, f"{name} {gpu[name]!r}, the capture says {found.get(name)!r}")

    def _check_tallies(self):
        """A reader's own tallies have no rows to cite; those whose meaning a capture shows are counted again."""
        for statistic in self.report.get("findings", {}).get("parse_statistics", []):
            capture = self.captures.get(statistic.get("artifact_id"))
            where = f"parse statistic {statistic['name']}"
            if int(statistic.get("count", 0)) <= 0:
                self.problem(where, f"count {statistic.get('count')}")
            counted = getattr(capture, "tallies", lambda: {})().get(statistic["name"])
            if counted is not None and counted != int(statistic["count"]):
                self.problem(where, f"count {statistic['count']}, recounted {counted}")


def _place(part):
    """(device, rank) of a scope or table; zeros are left out of the JSON form."""
    return part.get("device", 0), part.get("rank", 0)


def _confidence(text, column):
    """"A (fp64/fp32: C, clock: B)" for one column."""
    letter, _, exceptions = text.partition(" (")
    aliases = {"clock": ("boost_mhz", "tensor_mhz"), "int8": ("int8_tc",), "sm": ("sm",)}
    for part in exceptions.rstrip(")").split(", "):
        names, _, other = part.partition(": ")
        # "sm, clock: C": the letter stands behind the last of them.
        for name in names.split("/"):
            if column in aliases.get(name, (name,)) and other:
                return other
    return letter


def _text_says(text, value, name):
    if any(abs(client_quantity(m) - value) <= 1e-12 * abs(value)
           for m in re.findall(r"\d[\d.,]*\s*[^\d\s,;()]*", text)):
        return True
    return printed_number(text) == value


def check(report, captures, given=None, markdown=None, language="en", catalogue=None):
    """(what does not match, given values that nothing was passed for)."""
    recomputation = Recomputation(report, captures, given, catalogue)
    problems = recomputation.check()
    if markdown is not None:
        problems += check_markdown(markdown, recomputation, language)
    return problems, recomputation.given


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("report")
    parser.add_argument("--captures", nargs="+", required=True)
    parser.add_argument("--given", nargs="*", default=[], metavar="KEY=VALUE")
    parser.add_argument("--markdown")
    parser.add_argument("--lang", choices=["en", "fr"], default="en")
    options = parser.parse_args(arguments)
    with open(options.report, encoding="utf-8") as file:
        report = json.load(file)
    markdown = pathlib.Path(options.markdown).read_text(encoding="utf-8") if options.markdown else None
    problems, given = check(report, options.captures, dict(g.split("=", 1) for g in options.given), markdown,
                            options.lang)
    for line in given:
        print(f"given by the client, not checked: {line}")
    for line in problems:
        print(line)
    print(f"{len(report.get('all_metrics', []))} metrics, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
