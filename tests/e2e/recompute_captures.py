"""What captures say, read by the rows and names of a provenance (ncu CSV, nvidia-smi, timelines)."""
import csv
import gzip
import io
import json
import math
import re
import xml.etree.ElementTree

import time_model
from recompute_format import printed_number, unit_scale


class Mismatch(Exception):
    """The provenance does not lead to the number."""


class Reading:
    """values: in base units, in the order of the rows; scale: of the first row. total: the value where it is no
    aggregate of such values, then with samples and spread_of (what the spread describes)."""

    def __init__(self, values=(), scale=0.0, total=None, samples=None, spread_of=None):
        self.values, self.scale = list(values), scale
        self.total, self.samples, self.spread_of = total, samples, spread_of


def open_capture(data):
    plain = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    if plain.startswith(b"SQLite format 3\0"):
        return NsysCapture(plain)
    head = plain.lstrip()[:4096]
    if head.startswith(b"{"):
        return TorchCapture(plain)
    if head.startswith(b"<"):
        return SmiXml(plain)
    text = plain.decode("utf-8-sig")
    for line in text.splitlines():
        if line.startswith('"ID",'):
            return NcuDetails(text) if '"Section Name"' in line else NcuRaw(text)
    return SmiCsv(text)


def ranges(rows):
    for r in rows.get("ranges", []):
        yield int(r.get("first", 0)), int(r.get("last", 0))


def conditions(rows):
    return {c["column"]: c["value"] for c in rows.get("conditions", [])}


def row_ids(rows):
    ids = [i for first, last in ranges(rows) for i in range(first, last + 1)]
    if len(ids) != len(set(ids)):
        raise Mismatch(f"ranges overlap: {rows['ranges']}")
    return ids


# --- ncu ---------------------------------------------------------------------


class NcuCapture:
    tool = "ncu"
    version = ""  # a CSV does not say it

    def __init__(self, text):
        lines = text.splitlines(keepends=True)
        first = next(i for i, line in enumerate(lines) if line.startswith('"ID",'))
        table = list(csv.reader(io.StringIO("".join(lines[first:]))))
        self.header, self.rows = table[0], [r for r in table[1:] if r]

    def cell(self, row, column):
        i = self.header.index(column) if column in self.header else None
        return row[i] if i is not None and i < len(row) else ""

    def begin(self):
        pass

    def tallies(self):
        """Cells that the tool left without a value."""
        return {"ncu_values_missing": sum(c.strip().lower() in ("no data", "n/a", "nan", "-nan")
                                          for r in self.rows for c in r)}

    def check_kernel(self, ids, having, scope):
        """The rows are all those of the kernel that have a value, and of nothing else."""
        if scope.get("rank", 0) != -1:
            raise Mismatch(f"scope says rank {scope.get('rank', 0)}, the capture none")
        kernel = scope.get("name", "").split("|")[0]
        device = str(scope.get("device", 0))
        if scope.get("kind") == "SCOPE_KIND_DEVICE":
            if any(i not in having or having[i][1] != device for i in ids):
                raise Mismatch(f"rows {ids} are not of device {device}")
            return
        wanted = {i for i, (name, on) in having.items() if name == kernel and on == device}
        if set(ids) != wanted:
            raise Mismatch(f"rows {sorted(ids)} are not those of the kernel with a value, {sorted(wanted)}")


class NcuRaw(NcuCapture):
    table = "raw"
    UNPRINTED_UNITS = {"device__attribute_memory_clock_rate": "khz"}  # as CUDA defines the attribute

    def __init__(self, text):
        super().__init__(text)
        self.units, self.rows = self.rows[0], self.rows[1:]

    def unit(self, column):
        return self.UNPRINTED_UNITS.get(column, self.units[self.header.index(column)])

    def attribute(self, name, row):
        value = printed_number(self.cell(row, "device__attribute_" + name))
        return None if value is None else int(value)

    def read(self, measured, scope):
        ids, name = row_ids(measured["rows"]), measured["raw_name"]
        counting = measured["aggregation"] == "AGGREGATION_COUNT"
        if counting:
            name = "ID"
        if name not in self.header:
            raise Mismatch(f"the raw page has no column {name}")
        having = {int(self.cell(r, "ID")): (self.cell(r, "Kernel Name"), self.cell(r, "Device"))
                  for r in self.rows if printed_number(self.cell(r, name)) is not None}
        self.check_kernel(ids, having, scope)
        if counting:
            return Reading(samples=len(ids), total=len(ids))
        scale = unit_scale(self.unit(name))
        by_id = {int(self.cell(r, "ID")): r for r in self.rows}
        return Reading([printed_number(self.cell(by_id[i], name)) * scale for i in ids], scale)

    def gpus(self):
        for row in self.rows:
            clock, width = self.attribute("memory_clock_rate", row), self.attribute("global_memory_bus_width", row)
            yield int(self.cell(row, "Device")), {
                "name": self.cell(row, "device__attribute_display_name"),
                "compute_major": self.attribute("compute_capability_major", row),
                "compute_minor": self.attribute("compute_capability_minor", row),
                "sm_count": self.attribute("multiprocessor_count", row),
                "memory_bytes": self.attribute("total_memory", row),
                "memory_bandwidth": 2 * clock * 1000 * width // 8 if clock and width else None,
                "max_sm_clock_hz": (self.attribute("clock_rate", row) or 0) * 1000}


class NcuDetails(NcuCapture):
    table = "details"

    def read(self, measured, scope):
        ids = row_ids(measured["rows"])
        counting = measured["aggregation"] == "AGGREGATION_COUNT"
        where = conditions(measured["rows"])
        name = measured["raw_name"]
        if counting:
            having = {int(self.cell(r, "ID")): (self.cell(r, "Kernel Name"), self.cell(r, "Device"))
                      for r in self.rows}
            self.check_kernel(ids, having, scope)
            return Reading(samples=len(ids), total=len(ids))
        if where or name in self.header:
            chosen = [r for r in self.rows if all(self.cell(r, c) == v for c, v in where.items())]
            column, unit = name, lambda row: "%" if name == "Estimated Speedup" else ""
        else:
            section, _, metric = name.partition("/")
            chosen = [r for r in self.rows if self.cell(r, "Section Name") == section
                      and self.cell(r, "Metric Name") == metric]
            column, unit = "Metric Value", lambda row: self.cell(row, "Metric Unit")
        chosen = [r for r in chosen if printed_number(self.cell(r, column)) is not None]
        having = {int(self.cell(r, "ID")): (self.cell(r, "Kernel Name"), self.cell(r, "Device")) for r in chosen}
        self.check_kernel(ids, having, scope)
        by_id = {}
        for r in chosen:
            if by_id.setdefault(int(self.cell(r, "ID")), r) is not r:
                raise Mismatch(f"several rows of {name} in launch {self.cell(r, 'ID')}")
        rows = [by_id[i] for i in ids]
        scales = [unit_scale(unit(r)) for r in rows]
        return Reading([printed_number(self.cell(r, column)) * s for r, s in zip(rows, scales)], scales[0])

    def gpus(self):
        for row in self.rows:
            major, _, minor = self.cell(row, "CC").partition(".")
            found = {"compute_major": int(major), "compute_minor": int(minor or 0)}
            if self.cell(row, "Metric Name") == "# SMs":
                found["sm_count"] = int(printed_number(self.cell(row, "Metric Value")))
            yield int(self.cell(row, "Device")), found


# --- nvidia-smi --------------------------------------------------------------


class SmiCapture:
    tool, version, table = "nvidia-smi", "", "gpu"

    def begin(self):
        pass

    def driver(self):
        """Versions of the driver and of CUDA; None where the output does not say."""
        return None, None

    def read(self, measured, scope):
        ids = row_ids(measured["rows"])
        cells = [self.value(i, measured["raw_name"]) for i in ids]
        if scope.get("rank", 0) != -1:
            raise Mismatch(f"scope says rank {scope.get('rank', 0)}, the capture none")
        if self.device_rows(scope.get("device", 0)) != ids:
            raise Mismatch(f"rows {ids} are not those of device {scope.get('device', 0)}")
        numbers = []
        for text, unit in cells:
            match = re.fullmatch(r"([-\d.,]+)\s*(\S*)", text)
            if not match or printed_number(match.group(1)) is None:
                raise Mismatch(f"{measured['raw_name']} is {text!r}")
            numbers.append((printed_number(match.group(1)), unit_scale(match.group(2) or unit)))
        return Reading([n * s for n, s in numbers], numbers[0][1])


class SmiCsv(SmiCapture):
    def __init__(self, text):
        table = [[c.strip() for c in r] for r in csv.reader(io.StringIO(text)) if r]
        self.header = [re.fullmatch(r"(.*?)(?: \[(.*)\])?", h).groups() for h in table[0]]
        self.rows = table[1:]

    def value(self, row, name):
        for i, (column, unit) in enumerate(self.header):
            if column == name:
                return self.rows[row][i], unit or ""
        raise Mismatch(f"no column {name}")

    def driver(self):
        names = [h[0] for h in self.header]
        return self.rows[0][names.index("driver_version")] if "driver_version" in names else None, None

    def device_rows(self, device):
        names = [h[0] for h in self.header]
        column = next((names.index(n) for n in ("index", "uuid", "pci.bus_id") if n in names), None)
        if column is None:
            return list(range(len(self.rows)))
        order = list(dict.fromkeys(r[column] for r in self.rows))
        if names[column] == "index":
            wanted = str(device)
        else:
            wanted = order[device] if device < len(order) else None
        return [i for i, r in enumerate(self.rows) if r[column] == wanted]

    def _integer(self, row, name, factor=1):
        if name not in [h[0] for h in self.header]:
            return None
        text, unit = self.value(row, name)
        match = re.fullmatch(r"(\d+)\s*(\S*)", text)
        return int(int(match.group(1)) * unit_scale(match.group(2) or unit)) if match else None

    def gpus(self):
        for i, row in enumerate(self.rows):
            found = {h[0]: c for h, c in zip(self.header, row)}
            major, _, minor = found.get("compute_cap", "").partition(".")
            device = next(d for d in range(len(self.rows)) if i in self.device_rows(d))
            yield device, {"name": found.get("name"), "uuid": found.get("uuid"),
                           "compute_major": int(major) if major else None,
                           "compute_minor": int(minor) if minor else None,
                           "memory_bytes": self._integer(i, "memory.total"),
                           "max_sm_clock_hz": self._integer(i, "clocks.max.sm")}


class SmiXml(SmiCapture):
    def __init__(self, data):
        self.root = xml.etree.ElementTree.fromstring(data)
        self.gpu_elements = list(self.root.iter("gpu"))

    def driver(self):
        return self.root.findtext("driver_version"), self.root.findtext("cuda_version")

    def value(self, row, name):
        element = self.gpu_elements[row].find(name)
        if element is None or element.text is None:
            raise Mismatch(f"no element {name}")
        return element.text.strip(), ""

    def device_rows(self, device):
        return [device] if device < len(self.gpu_elements) else []

    def gpus(self):
        def integer(row, name):
            match = re.fullmatch(r"(\d+)\s*(\S*)", self.value(row, name)[0])
            return int(int(match.group(1)) * unit_scale(match.group(2)))

        for i in range(len(self.gpu_elements)):
            yield i, {"name": self.value(i, "product_name")[0], "uuid": self.value(i, "uuid")[0],
                      "memory_bytes": integer(i, "fb_memory_usage/total"),
                      "max_sm_clock_hz": integer(i, "max_clocks/sm_clock")}


# --- timelines ---------------------------------------------------------------


class TimelineCapture:
    def __init__(self, data):
        self.timeline = time_model.load_bytes(data)
        self.tool, self.version = self.timeline.tool, self.timeline.version
        self.results = {}
        self.readings = {}
        self.lanes = {}

    def begin(self):
        """A new report: it says by its timeline metrics which windows there are."""
        self.windows = {}  # (pid, device) -> {(start, end): steps}

    def lane(self, where):
        """(lane, its rank)"""
        key = where.get("pid"), where.get("device")
        if key not in self.lanes:
            try:
                lane = self.timeline.lane(int(where["pid"]), int(where["device"]))
            except (KeyError, LookupError) as error:
                raise Mismatch(f"conditions name no lane: {error}") from None
            self.lanes[key] = lane, self.timeline.rank_of(lane)
        return self.lanes[key]

    def result(self, where):
        key = tuple(where.get(c) for c in ("pid", "device", "region", "skip_steps", "max_steps"))
        if key not in self.results:
            try:
                self.results[key] = time_model.analyze(self.lane(where)[0], where.get("region"),
                                                       int(where.get("skip_steps", 0)),
                                                       int(where.get("max_steps", 0)))
            except LookupError as error:
                raise Mismatch(str(error)) from None
        return self.results[key]

    def read(self, measured, scope):
        rows = measured["rows"]
        where = conditions(rows)
        unknown = set(where) - {"pid", "device", "region", "skip_steps", "max_steps", "name", "kind", "category",
                                "host_memory"}
        if unknown or rows.get("ranges"):
            raise Mismatch(f"unknown row selection: {sorted(unknown)} {rows.get('ranges', '')}")
        window = int(rows.get("window_start_ns", 0)), int(rows.get("window_end_ns", 0))
        lane, rank = self.lane(where)
        if scope.get("device", 0) != lane.device:
            raise Mismatch(f"scope says device {scope.get('device', 0)}, the rows are of {lane.device}")
        if scope.get("rank", 0) != rank:
            raise Mismatch(f"scope says rank {scope.get('rank', 0)}, the capture {rank}")
        if rows["table"] == "timeline":
            return self._time(measured, where, window)
        windows = self.windows.get((lane.process.pid, lane.device), {})
        if window not in windows:
            raise Mismatch(f"{list(window)} is no window of this GPU and process")
        steps, known = int(measured.get("samples", 0)), windows[window]
        if measured["aggregation"].endswith("PER_STEP") and (steps != known or not steps):
            raise Mismatch(f"per {steps} steps, the window holds {known}")
        key = json.dumps([measured["raw_name"], rows, measured["aggregation"], steps, scope], sort_keys=True)
        if key not in self.readings:
            self.readings[key] = self._rows(measured, lane, where, window, scope)
        return self.readings[key]

    def _time(self, measured, where, window):
        result, name, aggregation = self.result(where), measured["raw_name"], measured["aggregation"]
        if window != (result.window_start, result.window_end):
            raise Mismatch(f"window is [{result.window_start}, {result.window_end}], not {list(window)}")
        self.windows.setdefault((result.lane.process.pid, result.lane.device), {})[window] = len(result.steps)
        if aggregation == "AGGREGATION_COUNT" and name == "steps":
            return Reading(total=len(result.steps), samples=len(result.steps))
        if aggregation == "AGGREGATION_TIME_MODEL":
            whole = dict(result.window, lead_in=result.lead_in, tail=result.tail)
            if name not in whole:
                raise Mismatch(f"the time model has no part {name}")
            return Reading(total=whole[name], samples=1)
        if aggregation != "AGGREGATION_TIME_MODEL_PER_STEP" or name not in result.window or not result.steps:
            raise Mismatch(f"{aggregation} of {name} over {len(result.steps)} steps")
        parts = [step[name] for step in result.steps]
        return Reading(total=sum(parts) / len(parts), samples=len(parts), spread_of=parts)

    def _rows(self, measured, lane, where, window, scope):
        name, table = measured["raw_name"], measured["rows"]["table"]
        first, last = window
        inside = [o for o in lane.operations if first <= o.start <= last]
        kernels = [o for o in inside if o.source == "kernel"]
        if "name" in where and scope.get("kind") == "SCOPE_KIND_KERNEL":
            if scope.get("name") != where["name"]:
                raise Mismatch("the condition names another kernel than the scope")
            kernels = [o for o in kernels if o.name == where["name"]]
        if where.get("category") == "compute":
            kernels = [o for o in kernels if o.kind == "kernel"]
        elif where.get("category") == "communication":
            kernels = [o for o in kernels if o.kind == "communication"]
        in_graph = [o for o in inside if o.in_graph]
        calls = {
            "launch_calls": {id(o.call): o.call for o in kernels + in_graph if o.call},
            "graph_launches": {id(o.call): o.call for o in in_graph if o.call},
        }
        threads = {o.call.thread for o in inside if o.call}
        waits = [c for c in lane.process.calls if c.synchronizes and c.thread in threads
                 and first <= c.start <= last and where.get("name", c.name) == c.name]
        pageable = [o for o in inside if o.source == "memcpy" and o.kind == "transfer" and o.pageable]
        copies = [o for o in inside if o.source == "memcpy"]
        if where.get("host_memory") == "pageable":
            copies = pageable

        counted = {"kernels": kernels, "launch_calls": list(calls["launch_calls"].values()),
                   "graph_launches": list(calls["graph_launches"].values()), "graph_operations": in_graph,
                   "synchronizations": waits, "pageable_copies": pageable}
        if where.get("kind") == "synchronizing" or name in ("launch_calls", "graph_launches", "synchronizations"):
            subject, summed = "call", {"duration": waits}
        elif "host_memory" in where or name in ("bytes", "pageable_copies"):
            subject, summed = "copy", {"duration": copies, "bytes": copies}
        else:
            subject, summed = "kernel", {"duration": kernels}
        self.check_table(table, subject)

        steps = int(measured.get("samples", 0))
        aggregation = measured["aggregation"]
        available = counted if "COUNT" in aggregation else summed
        if name not in available:
            raise Mismatch(f"{aggregation} of {name} in {table}")
        rows = available[name]
        if available is counted:
            values = [1] * len(rows)
        else:
            values = [o.bytes if name == "bytes" else o.end - o.start for o in rows]
        if aggregation.endswith("PER_STEP"):
            return Reading(total=sum(values) / steps, samples=steps)
        if aggregation in ("AGGREGATION_COUNT", "AGGREGATION_SUM"):
            return Reading(total=sum(values), samples=len(rows))
        return Reading(values)


class NsysCapture(TimelineCapture):
    TABLES = {"kernel": "CUPTI_ACTIVITY_KIND_KERNEL", "call": "CUPTI_ACTIVITY_KIND_RUNTIME",
              "copy": "CUPTI_ACTIVITY_KIND_MEMCPY"}

    def __init__(self, data):
        super().__init__(data)
        self.data = data

    def check_table(self, table, subject):
        if table != self.TABLES[subject]:
            raise Mismatch(f"{table} is not the table of a {subject}")

    def gpus(self):
        db = time_model.open_database(self.data)
        db.row_factory = lambda cursor, row: {c[0]: v for c, v in zip(cursor.description, row)}
        gpus = {g["id"]: g for g in db.execute("SELECT * FROM TARGET_INFO_GPU")}
        for row in db.execute("SELECT DISTINCT gpuId, cudaId FROM TARGET_INFO_CUDA_DEVICE"):
            gpu = gpus[row["gpuId"]]
            yield row["cudaId"], {"name": gpu["name"], "uuid": gpu["uuid"], "compute_major": gpu["computeMajor"],
                                  "compute_minor": gpu["computeMinor"], "sm_count": gpu["smCount"],
                                  "memory_bytes": gpu["totalMemory"], "memory_bandwidth": gpu["memoryBandwidth"],
                                  "max_sm_clock_hz": gpu["clockRate"]}
        db.close()


class TorchCapture(TimelineCapture):
    def __init__(self, data):
        super().__init__(data)
        self.properties = json.loads(data).get("deviceProperties", [])

    def check_table(self, table, subject):
        if table != "traceEvents":
            raise Mismatch(f"{table} is not the array of a {subject}")

    def gpus(self):
        for device in self.properties:
            yield device["id"], {"name": device["name"], "compute_major": device["computeMajor"],
                                 "compute_minor": device["computeMinor"], "sm_count": device["numSms"],
                                 "memory_bytes": device["totalGlobalMem"]}


# --- combining rows ----------------------------------------------------------


def aggregate(reading, aggregation):
    """(value, samples, what a spread describes)."""
    if reading.total is not None:
        return float(reading.total), reading.samples, reading.spread_of
    values = reading.values
    if not values:
        raise Mismatch("no rows")
    ordered = sorted(values)
    middle = len(values) // 2
    value = {
        "AGGREGATION_SINGLE": lambda: values[0],
        "AGGREGATION_SUM": lambda: sum(values),
        "AGGREGATION_MEAN": lambda: sum(values) / len(values),
        "AGGREGATION_MEDIAN": lambda: (ordered[middle] + ordered[-middle - 1]) / 2,
        "AGGREGATION_MIN": lambda: ordered[0],
        "AGGREGATION_MAX": lambda: ordered[-1],
        "AGGREGATION_COUNT": lambda: len(values),
    }.get(aggregation)
    if value is None or (aggregation == "AGGREGATION_SINGLE" and len(values) != 1):
        raise Mismatch(f"{aggregation} of {len(values)} rows")
    return float(value()), len(values), values


def spread(values):
    if not values or len(values) < 2:
        return None
    mean = math.fsum(values) / len(values)
    return {"min": min(values), "max": max(values),
            "stddev": math.sqrt(math.fsum((v - mean)**2 for v in values) / (len(values) - 1))}
