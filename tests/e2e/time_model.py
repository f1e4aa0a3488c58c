"""The time model of docs/time-model.md, written a second time.

    timeline = load("launch.nsys.sqlite.gz")
    for lane in timeline.lanes():
        result = analyze(lane)
        result.window["kernel"], [step["idle_launch"] for step in result.steps]

Shares no code with the product: what both get from one capture must agree to the nanosecond.
Standard library only.
"""
import bisect
import collections
import gzip
import json
import os
import re
import sqlite3
import tempfile

HOST_STRETCH_NS = 200_000
LONG_HOST_STRETCH_NS = 1_000_000

PARTS = ("kernel", "exposed_communication", "exposed_transfer", "idle_queued", "idle_host", "idle_sync",
         "idle_launch", "idle_unattributed")
# Order in which operations that start together are asked for the reason of a gap.
SOURCES = ("kernel", "memcpy", "memset", "graph")


class Operation:
    """Something a GPU did."""
    __slots__ = ("start", "end", "kind", "source", "row", "correlation", "name", "graph_node", "bytes", "pageable",
                 "call")

    def __init__(self, start, end, kind, source, row, correlation, name="", graph_node=False, bytes=0,
                 pageable=False):
        self.start, self.end, self.kind, self.source, self.row = start, end, kind, source, row
        self.correlation, self.name, self.graph_node = correlation, name, graph_node
        self.bytes, self.pageable, self.call = bytes, pageable, None

    @property
    def in_graph(self):
        return self.graph_node or (self.call is not None and self.call.is_graph_launch)


class Call:
    """A CUDA or HIP call of a CPU thread."""
    __slots__ = ("start", "end", "thread", "correlation", "name", "row", "synchronizes", "is_graph_launch")

    def __init__(self, start, end, thread, correlation, name, row):
        self.start, self.end, self.thread, self.correlation, self.row = start, end, thread, correlation, row
        self.name = base_name(name)
        self.synchronizes = is_synchronizing(self.name)
        self.is_graph_launch = self.name.endswith("GraphLaunch")


Range = collections.namedtuple("Range", "start end thread name")


class Process:
    def __init__(self, pid):
        self.pid = pid
        self.calls = []
        self.ranges = []
        self.operations = collections.defaultdict(list)  # by device

    def link(self):
        """Gives each operation its launching call."""
        by_correlation = {}
        for call in sorted(self.calls, key=lambda c: (c.start, c.row)):
            if call.correlation is None:
                continue
            rank = 0 if "Launch" in call.name else 1 if "Memcpy" in call.name else 2
            known = by_correlation.get(call.correlation)
            if known is None or rank < known[0]:
                by_correlation[call.correlation] = (rank, call)
        for operations in self.operations.values():
            operations.sort(key=lambda o: (o.start, o.row))
            for operation in operations:
                operation.call = by_correlation.get(operation.correlation, (0, None))[1]


class Timeline:
    """tool: "nsys" or "torch.profiler"."""

    def __init__(self, tool, version=""):
        self.tool, self.version = tool, version
        self.processes = {}
        self.rank = -1  # of a trace that names its own

    def process(self, key, pid):
        return self.processes.setdefault(key, Process(pid))

    def lanes(self):
        return [Lane(p, device) for p in self.processes.values() for device in sorted(p.operations)]

    def lane(self, pid, device):
        found = [lane for lane in self.lanes() if (lane.process.pid, lane.device) == (pid, device)]
        if len(found) != 1:
            raise LookupError(f"{len(found)} lanes of pid {pid} on device {device}")
        return found[0]

    def rank_of(self, lane):
        """-1: unknown."""
        if self.tool != "nsys":
            return self.rank
        processes = sorted((p for p in self.processes.values() if p.operations), key=lambda p: p.pid)
        devices = [list(p.operations) for p in processes]
        collectives = any(o.kind == "communication" for p in processes for d in p.operations.values() for o in d)
        if len(processes) < 2 or not collectives or any(len(d) != 1 for d in devices):
            return -1
        order = [d[0] for d in devices]
        if order != sorted(set(order)):
            return -1
        return processes.index(lane.process)


class Lane:
    """One GPU as one process used it."""

    def __init__(self, process, device):
        self.process, self.device = process, device
        self.operations = process.operations[device]


def base_name(name):
    return re.sub(r"(_pt(sz|ds))?(_v\d+)?$", "", name)


def is_synchronizing(name):
    match = re.fullmatch(r"(?:cuda|cu|hip)(.*)", name)
    if not match:
        return False
    rest = match.group(1)
    if re.fullmatch(r"(Device|Stream|Event|Ctx|Thread)Synchronize", rest):
        return True
    return (rest.startswith("Memcpy") and not rest.startswith("MemcpyBatch") and "Async" not in rest
            and not any(word in rest for word in ("DtoD", "DtoA", "AtoD", "AtoA", "Peer")))


def is_collective(kernel):
    name = kernel.replace("(anonymous namespace)", "anonymous").replace("<unnamed>", "unnamed")
    name = re.split(r"[(<]", name, maxsplit=1)[0].split()
    function = name[-1].lower() if name else ""
    return function.startswith("nccl") or any(
        word in function for word in ("rccl", "nvshmem", "cross_device_reduce", "all_reduce", "allreduce"))


# --- reading -----------------------------------------------------------------


def load(path):
    with open(path, "rb") as file:
        data = file.read()
    return load_bytes(data)


def load_bytes(data):
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    if data.startswith(b"SQLite format 3\0"):
        return _load_nsys(data)
    return _load_trace(json.loads(data, parse_float=str))


def open_database(data):
    """A read-only connection to the bytes of an SQLite file."""
    descriptor, name = tempfile.mkstemp(suffix=".sqlite")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        connection = sqlite3.connect(f"file:{name}?mode=ro", uri=True)
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        connection.execute("PRAGMA cache_size=-65536")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        return connection
    finally:
        os.unlink(name)  # the open descriptor keeps it


def _columns(connection, table):
    return [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]


def _rows(connection, table, *wanted):
    """(rowid, wanted columns); a column that the table lacks is None."""
    present = _columns(connection, table)
    if not present:
        return
    select = ", ".join(column if column in present else f"NULL AS {column}" for column in wanted)
    yield from connection.execute(f"SELECT _rowid_, {select} FROM {table} ORDER BY _rowid_")


def _usable(start, end):
    return start is not None and end is not None and 0 <= start <= end


HOST_DEVICE_COPIES = {1: "src", 2: "dst", 3: "src", 4: "dst", 11: None, 12: None}  # copyKind: host side
HOST_TO_HOST = 9
PAGEABLE = 0  # ENUM_CUDA_MEM_KIND


def _load_nsys(data):
    db = open_database(data)
    strings = dict(db.execute("SELECT id, value FROM StringIds")) if _columns(db, "StringIds") else {}
    meta = {}
    for table in ("META_DATA_EXPORT", "EXPORT_META_DATA"):
        if _columns(db, table):
            meta.update(db.execute(f"SELECT name, value FROM {table}"))
    timeline = Timeline("nsys", meta.get("EXPORT_PRODUCT_VERSION", ""))

    def process(global_id):
        return timeline.process(global_id >> 24, (global_id >> 24) & 0xFFFFFF)

    prefix = "CUPTI_ACTIVITY_KIND_"
    for row, start, end, device, correlation, pid, name, short, node in _rows(
            db, prefix + "KERNEL", "start", "end", "deviceId", "correlationId", "globalPid", "demangledName",
            "shortName", "graphNodeId"):
        if _usable(start, end):
            name = strings.get(name) or strings.get(short, "")
            process(pid).operations[device].append(
                Operation(start, end, "communication" if is_collective(name) else "kernel", "kernel", row,
                          correlation, name, bool(node)))
    for row, start, end, device, correlation, pid, size, kind, source, target, node in _rows(
            db, prefix + "MEMCPY", "start", "end", "deviceId", "correlationId", "globalPid", "bytes", "copyKind",
            "srcKind", "dstKind", "graphNodeId"):
        if _usable(start, end) and kind != HOST_TO_HOST:
            host = HOST_DEVICE_COPIES.get(kind)
            pageable = {"src": source, "dst": target}.get(host, None) == PAGEABLE
            process(pid).operations[device].append(
                Operation(start, end, "transfer" if kind in HOST_DEVICE_COPIES else "kernel", "memcpy", row,
                          correlation, "", bool(node), size, pageable))
    for source, table in (("memset", "MEMSET"), ("graph", "GRAPH_TRACE")):
        for row, start, end, device, correlation, pid, node in _rows(
                db, prefix + table, "start", "end", "deviceId", "correlationId", "globalPid", "graphNodeId"):
            if _usable(start, end):
                process(pid).operations[device].append(
                    Operation(start, end, "kernel", source, row, correlation, "", bool(node)))
    for row, start, end, thread, correlation, name in _rows(
            db, prefix + "RUNTIME", "start", "end", "globalTid", "correlationId", "nameId"):
        if _usable(start, end):
            process(thread).calls.append(
                Call(start, end, thread & 0xFFFFFF, correlation, strings.get(name, ""), row))
    for _, start, end, kind, text, text_id, thread in _rows(
            db, "NVTX_EVENTS", "start", "end", "eventType", "text", "textId", "globalTid"):
        if kind in (59, 60) and _usable(start, end):
            process(thread).ranges.append(
                Range(start, end, thread & 0xFFFFFF, text if text is not None else strings.get(text_id, "")))
    db.close()
    for p in timeline.processes.values():
        p.link()
    return timeline


def _nanoseconds(microseconds):
    """Exactly, from the decimal text."""
    if isinstance(microseconds, int):
        return microseconds * 1000
    if re.search(r"[eE]", microseconds):
        return round(float(microseconds) * 1000)
    negative = microseconds.startswith("-")
    whole, _, fraction = microseconds.lstrip("-").partition(".")
    value = int(whole or 0) * 1000 + int((fraction + "000")[:3])
    if fraction[3:4] >= "5":
        value += 1
    return -value if negative else value


def _load_trace(trace):
    timeline = Timeline("torch.profiler")
    timeline.rank = int(trace.get("distributedInfo", {}).get("rank", -1))
    operations = []
    pid_of_correlation = {}
    for row, event in enumerate(trace["traceEvents"]):
        category = event.get("cat", "")
        if event.get("ph") != "X" or "ts" not in event:
            continue
        start = _nanoseconds(event["ts"])
        end = start + _nanoseconds(event.get("dur", 0))
        if not _usable(start, end):
            continue
        args, name = event.get("args", {}), event.get("name", "")
        lower = category.lower()
        if lower in ("kernel", "gpu_memcpy", "memcpy", "gpu_memset", "memset"):
            source = lower.removeprefix("gpu_")
            kind = "kernel"
            if source == "kernel" and is_collective(name):
                kind = "communication"
            if source == "memcpy":
                if "HtoH" in name:
                    continue
                if any(word in name for word in ("HtoD", "DtoH", "HtoA", "AtoH")):
                    kind = "transfer"
            operations.append((args.get("device", event.get("pid")), Operation(
                start, end, kind, source, row, args.get("correlation"), name,
                bool(int(args.get("graph node id", 0))), int(args.get("bytes", 0)), "Pageable" in name)))
        elif lower in ("cuda_runtime", "cuda_driver", "hip_runtime", "runtime"):
            call = Call(start, end, event["tid"], args.get("correlation"), name, row)
            timeline.process(event["pid"], event["pid"]).calls.append(call)
            if call.correlation is not None:
                pid_of_correlation.setdefault(call.correlation, event["pid"])
        elif category == "user_annotation" or (lower in ("cpu_op", "operator") and name.startswith("ProfilerStep")):
            timeline.process(event["pid"], event["pid"]).ranges.append(Range(start, end, event["tid"], name))
    callers = [p for p in timeline.processes.values() if p.calls]
    main = max(callers, key=lambda p: len(p.calls)).pid if callers else 0
    for device, operation in operations:
        pid = pid_of_correlation.get(operation.correlation, main)
        timeline.process(pid, pid).operations[device].append(operation)
    for p in timeline.processes.values():
        p.link()
    return timeline


# --- interval arithmetic -----------------------------------------------------


class Union:
    """Merged intervals that answer how much of [a, b) they cover."""

    def __init__(self, intervals):
        self.starts, self.ends = [], []
        for start, end in sorted(intervals):
            if self.starts and start <= self.ends[-1]:
                self.ends[-1] = max(self.ends[-1], end)
            else:
                self.starts.append(start)
                self.ends.append(end)
        self.before = [0]
        for start, end in zip(self.starts, self.ends):
            self.before.append(self.before[-1] + end - start)

    def _until(self, time):
        i = bisect.bisect_right(self.starts, time)
        if i == 0:
            return 0
        return self.before[i - 1] + min(time, self.ends[i - 1]) - self.starts[i - 1]

    def length(self, a, b):
        return self._until(b) - self._until(a)

    def uncovered(self, a, b):
        """Longest stretches of [a, b] that nothing covers; what lasts no time divides them too."""
        position = a
        i = bisect.bisect_left(self.ends, a)
        while i < len(self.starts) and self.starts[i] < b:
            if self.starts[i] > position:
                yield position, self.starts[i]
            position = max(position, self.ends[i])
            i += 1
        if position < b:
            yield position, b


class Thread:
    """What one CPU thread called."""

    def __init__(self, calls):
        self.covered = Union((c.start, c.end) for c in calls)
        waits = sorted((c.start, c.end) for c in calls if c.synchronizes)
        self.wait_starts = [start for start, _ in waits]
        self.latest_end = []
        for _, end in waits:
            self.latest_end.append(max(end, self.latest_end[-1]) if self.latest_end else end)

    def waits(self, since, before):
        """Whether a synchronizing call that began before `before` had not ended at `since`."""
        i = bisect.bisect_left(self.wait_starts, before)
        return i > 0 and self.latest_end[i - 1] > since


# --- region and steps --------------------------------------------------------


class Launches:
    """A lane's operations by the start of their launching calls."""

    def __init__(self, lane):
        self.launched = sorted((o for o in lane.operations if o.call), key=lambda o: o.call.start)
        self.times = [o.call.start for o in self.launched]

    def within(self, start, end):
        return self.launched[bisect.bisect_left(self.times, start):bisect.bisect_right(self.times, end)]


STEP_WORDS = {"step", "iteration", "iter", "trainstep", "trainingstep"}
WORDS_BESIDE_STEP = {"train", "training", "global", "model", "inference", "eval", "decode", "engine", "benchmark",
                     "bench", "timed", "measured", "to", "of"}


def step_marker(name):
    """The marker that a range named like a step belongs to; None: not like a step."""
    words = re.findall(r"[a-z]+", name.lower())
    if not STEP_WORDS & set(words) or not set(words) <= STEP_WORDS | WORDS_BESIDE_STEP:
        return None
    return " ".join(word for word in words if word not in ("to", "of"))


def _marker_ranges(lane, launches, region):
    ranges = lane.process.ranges
    if region is not None and region.startswith("nvtx:"):
        name = region.removeprefix("nvtx:")
        return ([r for r in ranges if r.name == name] or
                [r for r in ranges if re.fullmatch(re.escape(name) + r"[\s#:_\-]*\d+", r.name)])
    profiler = [r for r in ranges if re.match(r"ProfilerStep#\d+", r.name)]
    if any(launches.within(r.start, r.end) for r in profiler):
        return profiler
    groups = collections.defaultdict(list)
    for r in ranges:
        marker = step_marker(r.name)
        if marker is not None:
            groups[marker].append(r)
    for _, group in sorted(groups.items(), key=lambda g: -sum(r.end - r.start for r in g[1])):
        if any(launches.within(r.start, r.end) for r in group):
            return group
    return []


def _own_ranges(lane, ranges):
    """Ranges on launching threads where there are such, none inside an earlier one."""
    threads = {o.call.thread for o in lane.operations if o.call}
    ranges = [r for r in ranges if r.thread in threads] or ranges
    kept, reach = [], -1
    for r in sorted(ranges, key=lambda r: (r.start, -r.end)):
        if r.end <= reach:
            continue
        kept.append(r)
        reach = max(reach, r.end)
    return kept


def _profiler_intervals(process):
    """From the return of each ProfilerStart to the start of the next ProfilerStop; None: the recording's border."""
    marks = sorted([(c.end, True) for c in process.calls if c.name.endswith("ProfilerStart")] +
                   [(c.start, False) for c in process.calls if c.name.endswith("ProfilerStop")])
    intervals = []
    recording, since = not marks or not marks[0][1], None
    for time, starts in marks:
        if starts and not recording:
            recording, since = True, time
        elif not starts and recording:
            intervals.append((since, time))
            recording = False
    return intervals + [(since, None)] if recording else intervals


# --- the model ---------------------------------------------------------------


class Result:
    """window_start, window_end; window and steps: parts in ns; lead_in, tail."""


def analyze(lane, region=None, skip=0, keep=0):
    """region: None, "nvtx:NAME", "profiler_step" or "cuda_profiler_api"."""
    launches = Launches(lane)
    ranges = _own_ranges(lane, _marker_ranges(lane, launches, region))
    by_range = region is not None and region != "cuda_profiler_api"
    kept = ranges[skip:skip + keep if keep else None]
    launching = [r for r in kept if launches.within(r.start, r.end)]
    after = [r for r in ranges[skip + len(kept):] if launches.within(r.start, r.end)]

    if by_range or skip or keep:
        selected = [o for r in launching for o in launches.within(r.start, r.end)]
        border = (kept[0].start, max(r.end for r in kept)) if kept else None
    elif region == "cuda_profiler_api":
        intervals = _profiler_intervals(lane.process)
        finite = [(a if a is not None else -1, b if b is not None else 1 << 63) for a, b in intervals]
        selected = [o for a, b in finite for o in launches.within(a, b)]
        border = (intervals[0][0], intervals[-1][1]) if intervals else None
        launching = [r for r in launching if any(a <= r.start and r.end <= b for a, b in finite)]
        after = []
    else:
        selected, border = lane.operations, None
    if not selected:
        raise LookupError(f"the region {region} launches nothing on device {lane.device}")

    result = Result()
    result.lane = lane
    result.window_start = min(o.start for o in selected)
    result.window_end = max(o.end for o in selected)
    if after:
        result.window_end = min(o.start for o in launches.within(after[0].start, after[0].end)) - 1
    extent = _extent(lane.process)
    first, last = border or extent
    result.lead_in = max(0, result.window_start - (extent[0] if first is None else first))
    result.tail = max(0, (extent[1] if last is None else last) - result.window_end)

    inside = [o for o in lane.operations if o.start <= result.window_end and o.end >= result.window_start]
    parts = _Parts(lane, inside, result.window_start, result.window_end)
    result.window = parts.of(result.window_start, result.window_end)
    result.step_borders = _step_borders(launches, launching, result.window_end if after else None)
    result.steps = [parts.of(a, b) for a, b in result.step_borders]
    return result


def _extent(process):
    starts = [e.start for e in process.calls] + [e.start for e in process.ranges]
    ends = [e.end for e in process.calls] + [e.end for e in process.ranges]
    for operations in process.operations.values():
        starts += [o.start for o in operations]
        ends += [o.end for o in operations]
    return min(starts), max(ends)


def _step_borders(launches, ranges, cut):
    if not ranges:
        return []
    work = [launches.within(r.start, r.end) for r in ranges]
    starts = sorted(min(o.start for o in operations) for operations in work)
    end = cut if cut is not None else max(o.end for operations in work for o in operations)
    return list(zip(starts, starts[1:] + [end]))


class _Parts:
    """Divides any [a, b] whose borders are starts or ends of work."""

    def __init__(self, lane, operations, start, end):
        clipped = [(o.kind, max(o.start, start), min(o.end, end)) for o in operations]

        def union(*kinds):
            return Union((a, b) for kind, a, b in clipped if kind in kinds)

        self.kernel = union("kernel")
        self.kernel_communication = union("kernel", "communication")
        self.busy = union("kernel", "communication", "transfer")
        self.communication = union("communication")
        self.transfer = union("transfer")
        self.gaps = []  # (g0, g1, {cause: ns}, host in long stretches)
        self._divide_gaps(lane, start, end)

    def _divide_gaps(self, lane, start, end):
        threads = collections.defaultdict(list)
        for call in lane.process.calls:
            threads[call.thread].append(call)
        threads = {t: Thread(calls) for t, calls in threads.items()}
        started = {}  # graph launch -> first start of its operations
        for o in lane.operations:
            if o.call is not None and o.in_graph:
                key = id(o.call)
                started[key] = min(started.get(key, o.start), o.start)
        reach = start
        operations = lane.operations
        i = 0
        while i < len(operations):
            together = [operations[i]]
            while i + len(together) < len(operations) and operations[i + len(together)].start == together[0].start:
                together.append(operations[i + len(together)])
            i += len(together)
            begin, finish = together[0].start, max(o.end for o in together)
            if begin > reach and reach < end and begin >= start:
                ending = min(together, key=lambda o: (-o.end, SOURCES.index(o.source), o.row))
                gap_end = min(begin, end)
                self.gaps.append((reach, gap_end) + self._causes(reach, gap_end, ending, threads, started))
            if finish >= start:
                reach = max(reach, finish)
        self.gap_starts = [g[0] for g in self.gaps]

    @staticmethod
    def _causes(g0, g1, operation, threads, started):
        call = operation.call
        if call is None:
            return {"unattributed": g1 - g0}, 0
        if operation.in_graph and started[id(call)] < operation.start:
            return {"queued": g1 - g0}, 0
        if call.end <= g0:
            return {"queued": g1 - g0}, 0
        until = min(call.start, g1)
        host = long_host = 0
        thread = threads[call.thread]
        if until > g0:
            for a, b in thread.covered.uncovered(g0, until):
                if b - a >= HOST_STRETCH_NS:
                    host += b - a
                if b - a >= LONG_HOST_STRETCH_NS:
                    long_host += b - a
        rest = "sync" if thread.waits(g0, until) else "launch"
        return {"host": host, rest: g1 - g0 - host}, long_host

    def of(self, a, b):
        kernel = self.kernel.length(a, b)
        kernel_communication = self.kernel_communication.length(a, b)
        busy = self.busy.length(a, b)
        result = {"window": b - a, "kernel": kernel, "exposed_communication": kernel_communication - kernel,
                  "exposed_transfer": busy - kernel_communication, "busy": busy,
                  "communication": self.communication.length(a, b), "transfer": self.transfer.length(a, b),
                  "idle_queued": 0, "idle_host": 0, "idle_sync": 0, "idle_launch": 0, "idle_unattributed": 0,
                  "host_stretches_1ms": 0}
        for g0, g1, causes, long_host in self.gaps[bisect.bisect_left(self.gap_starts, a):]:
            if g0 >= b:
                break
            for cause, length in causes.items():
                result["idle_" + cause] += length
            result["host_stretches_1ms"] += long_host
        total = sum(result[part] for part in PARTS)
        if total != b - a:
            raise ArithmeticError(f"parts of [{a}, {b}] sum to {total}, not {b - a}")
        return result
