"""Values that the captures of an H200 must give, read from the tools' own output and by hand."""
import csv
import gzip
import json
import statistics

import pytest
from conftest import DATA

BMM = ("--context", "B=32 M=512 N=1024 K=2048 dtype=fp16", "--metrics",
       "mfu,sol,compute_throughput,memory_throughput,dram_throughput,tensor_pipe_utilization,achieved_occupancy,"
       "warp_stalls,roofline,dram_bandwidth,bottleneck_class")
FLOPS = 2 * 32 * 512 * 1024 * 2048


@pytest.mark.parametrize("page", ["raw", "details"])
def test_batched_gemm_is_compute_bound_at_69_percent_mfu(analyze, page):
    report = analyze(f"h200/bmm.ncu.{page}.csv", *BMM,
                     *(["--context", "gpu=H200-SXM"] if page == "details" else [])).report
    assert report.value("mfu") == pytest.approx(69.2, abs=0.3)
    assert report.value("flops_per_call") == FLOPS
    assert 83.8 <= report.value("compute_throughput") <= 84.5
    assert report.value("dram_throughput") == pytest.approx(49.7, abs=0.2)
    assert report.value("sm_clock") == pytest.approx(1.50e9, abs=0.01e9)
    assert report.value("peak_clock") == 1.83e9
    assert report.value("peak_flops") == 989.4e12
    assert report.primary == "COMPUTE_BOUND"


def test_mfu_factors_are_in_the_summary(analyze):
    report = analyze("h200/bmm.ncu.raw.csv", *BMM).report
    used = {a.get("metric_key") for s in report.message["summary"]["statements"]
            for a in s.get("arguments", {}).values()}
    ids = {report.by_key[k]["id"] for k in used if k}
    assert {"mfu", "tensor_pipe_utilization", "sm_clock", "peak_clock"} <= ids


def test_kernel_time_is_the_mean_of_the_csv(analyze):
    rows = list(csv.DictReader(open(DATA / "h200/bmm.ncu.raw.csv")))
    unit, values = rows[0], rows[1:]
    assert unit["gpu__time_duration.sum"] == "us"
    mean = statistics.mean(float(v["gpu__time_duration.sum"].replace(",", "")) for v in values)
    report = analyze("h200/bmm.ncu.raw.csv", *BMM).report
    (time,) = report.metrics("kernel_time", kind="KERNEL")
    assert time["value"] == pytest.approx(mean * 1e3, rel=1e-12)
    assert time["provenance"]["measured"]["raw_name"] == "gpu__time_duration.sum"


def test_without_flops_and_dimensions_it_asks(analyze):
    outcome = analyze("h200/bmm.ncu.raw.csv", "--metrics", "mfu")
    assert outcome.code == 3
    assert "flops" in outcome.err.lower()


@pytest.mark.parametrize("page", ["raw", "details"])
def test_axpy_is_memory_bound_and_fma_loop_compute_bound(analyze, page):
    report = analyze(f"h200/axpy.ncu.{page}.csv").report
    limits = {k["kernel"].split("(")[0]: k for k in report.message["classification"]["kernel_limits"]}
    assert limits["axpy"]["limit"] == "BOTTLENECK_CLASS_MEMORY_BOUND"
    assert limits["fma_loop"]["limit"] == "BOTTLENECK_CLASS_COMPUTE_BOUND"
    dram = {m["scope"]["name"].split("(")[0]: m.get("value", 0) for m in report.metrics("dram_throughput")}
    assert dram["axpy"] == pytest.approx(70.7, abs=0.2)
    bandwidth = {m["scope"]["name"].split("(")[0]: m.get("value", 0) for m in report.metrics("dram_bandwidth")}
    assert bandwidth["axpy"] == pytest.approx(3.40e12, abs=0.02e12)
    compute = {m["scope"]["name"].split("(")[0]: m.get("value", 0) for m in report.metrics("compute_throughput")}
    assert compute["fma_loop"] == pytest.approx(93.7, abs=0.2)


@pytest.mark.parametrize("capture, idle", [("launch.nsys.sqlite.gz", 90), ("launch.torch.json.gz", 95)])
def test_launch_loop_is_launch_overhead_by_both_tools(analyze, capture, idle):
    report = analyze(f"h200/{capture}").report
    assert report.primary == "LAUNCH_OVERHEAD"
    assert report.value("kernel_count", kind="STEP") == 2045
    assert report.value("gpu_busy_time", kind="STEP") == pytest.approx(2.34e6, abs=0.05e6)
    assert 100 - report.value("gpu_busy_share", kind="RUN") == pytest.approx(idle, abs=1)


def test_both_launch_captures_together_say_that_the_profilers_slow_the_host(analyze):
    report = analyze(["h200/launch.nsys.sqlite.gz", "h200/launch.torch.json.gz"]).report
    assert report.primary == "LAUNCH_OVERHEAD"
    report.finding("profilers_slow_host_differently")


def test_launch_overhead_asked_the_cuda_graph_specialist(analyze):
    outcome = analyze("h200/launch.nsys.sqlite.gz")
    assert "perf-torch-cuda-graph-specialist" in json.dumps(outcome.report.message["findings"])


@pytest.mark.parametrize("captures", [["h200/comm.nsys.sqlite.gz"],
                                      ["h200/comm.rank0.torch.json.gz", "h200/comm.rank1.torch.json.gz"]])
def test_comm_is_communication_bound_on_both_ranks(analyze, captures):
    report = analyze(captures).report
    assert report.primary == "COMMUNICATION_BOUND"
    assert report.message["classification"].get("kernels_unrated") is True
    exposed = report.metrics("exposed_communication_share", kind="RUN")
    every = report.metrics("communication_share", kind="RUN")
    assert len(exposed) == 2 and len(every) == 2
    for m in exposed:
        assert 31.5 <= m["value"] <= 34.8
    for m in every:
        assert 60.7 <= m["value"] <= 65.6
    steps = report.metrics("step_count")
    assert sorted(m["value"] for m in steps) == ([10, 10] if len(captures) == 1 else [4, 4])


@pytest.mark.parametrize("capture", ["input.nsys.sqlite.gz", "input.torch.json.gz"])
def test_input_is_host_bound_with_unpinned_copies(analyze, capture):
    report = analyze(f"h200/{capture}").report
    assert report.primary == "HOST_BOUND"
    assert report.value("idle_host_share", kind="RUN") == pytest.approx(84, abs=1.5)
    report.finding("unpinned_copies")


@pytest.mark.parametrize("capture", ["graph.nsys.sqlite.gz", "graph.torch.json.gz"])
def test_graph_is_undetermined_between_kernel_classes(analyze, capture):
    report = analyze(f"h200/{capture}").report
    assert report.primary == "UNDETERMINED_KERNELS"
    assert report.value("idle_launch_share", kind="RUN") == pytest.approx(0, abs=0.1)
    assert report.value("idle_queued_share", kind="RUN") == pytest.approx(6.6, abs=1)
    missing = {i for m in report.message["classification"]["missing"] for i in m.get("metric_ids", [])}
    assert {"compute_throughput", "memory_throughput"} <= missing


@pytest.mark.parametrize("capture", ["sync.nsys.sqlite.gz", "sync.torch.json.gz"])
def test_sync_is_launch_overhead_with_30_synchronizations_a_step(analyze, capture):
    report = analyze(f"h200/{capture}").report
    assert report.primary == "LAUNCH_OVERHEAD"
    finding = report.finding("synchronizations_per_step")
    ids = {report.by_key[k]["id"]: report.by_key[k]["value"] for k in finding["metric_keys"].values()}
    assert ids["synchronization_count"] == pytest.approx(30, abs=0.2)
    assert ids["synchronization_time"] > 0


SHARE_COLUMNS = {"kernel": "kernel_share", "exposed_comm": "exposed_communication_share",
                 "all_comm": "communication_share", "exposed_transfer": "exposed_transfer_share",
                 "idle_launch": "idle_launch_share", "idle_sync": "idle_sync_share",
                 "idle_host": "idle_host_share", "idle_queued": "idle_queued_share"}


def share_rows():
    lines = [line for line in open(DATA / "shares.tsv") if not line.startswith("#")]
    return list(csv.DictReader(lines, delimiter="\t"))


@pytest.mark.parametrize("row", share_rows(), ids=lambda r: f"{r['file']}-{r['device']}")
def test_shares_agree_with_the_independent_script(analyze, row):
    report = analyze(row["file"]).report
    device = int(row["device"])
    for column, id in SHARE_COLUMNS.items():
        assert report.value(id, kind="RUN", device=device) == pytest.approx(float(row[column]), abs=1), column
    parts = ["kernel_share", "exposed_communication_share", "exposed_transfer_share", "idle_launch_share",
             "idle_sync_share", "idle_host_share", "idle_queued_share"]
    assert sum(report.value(p, kind="RUN", device=device) for p in parts) == pytest.approx(100, abs=1e-6)


PLAIN = {r["workload"]: float(r["plain_ms_per_step"])
         for r in csv.DictReader(open(DATA / "ground_truth/plain.tsv"), delimiter="\t")}


@pytest.mark.parametrize("tool", ["nsys.sqlite.gz", "torch.json.gz"])
@pytest.mark.parametrize("workload, verdict", [("sync_gemm", "SYNC_BOUND"), ("ew_chain", "UNDETERMINED_KERNELS"),
                                               ("h2d", "TRANSFER_BOUND"), ("rnn_small", "UNDETERMINED_KERNELS")])
def test_ground_truth_with_the_plain_step_time(analyze, workload, verdict, tool):
    report = analyze(f"ground_truth/{workload}.{tool}", "--context", f"step_time={PLAIN[workload]}ms").report
    assert report.primary == verdict
    assert report.message["classification"].get("rescaled") is True
    assert report.metrics("dilation")
    row = next(r for r in share_rows() if r["file"] == f"ground_truth/{workload}.{tool}")
    for part in row["rescaled"].split():
        name, value = part.split("=")
        id = {"kernel": "kernel_share", "comm_exposed": "exposed_communication_share",
              "transfer": "exposed_transfer_share", "queued": "idle_queued_share", "host": "idle_host_share",
              "sync": "idle_sync_share", "launch": "idle_launch_share"}[name]
        assert report.value(id, kind="STEP") == pytest.approx(float(value), abs=1), name


@pytest.mark.parametrize("workload, verdict", [("ew_chain", "MEMORY_BOUND"), ("rnn_small", "LATENCY_BOUND")])
def test_ground_truth_from_counters(analyze, workload, verdict):
    assert analyze(f"ground_truth/{workload}.ncu.raw.csv").report.primary == verdict


@pytest.mark.parametrize("tool", ["nsys.sqlite.gz", "torch.json.gz"])
@pytest.mark.parametrize("workload, flip_ms", [("rnn_small", 6.2), ("sync_gemm", 1.3)])
def test_without_a_step_time_the_verdict_is_undetermined_and_says_where_it_flips(analyze, workload, flip_ms, tool):
    report = analyze(f"ground_truth/{workload}.{tool}").report
    assert report.primary == "UNDETERMINED_PROFILER_DILATION"
    key = report.message["classification"]["flip_step_time_key"]
    assert report.by_key[key]["value"] == pytest.approx(flip_ms * 1e6, abs=0.06e6)
    assert not report.message["recommendations"].get("recommendations") or all(
        r.get("is_check") for r in report.message["recommendations"]["recommendations"])


GOOD_EXAMPLE = {
    "en": """Profile the batched GEMM kernel in bmm_workload.py with NCU.
The workload uses cudaProfilerStart/Stop markers to isolate the region of interest.
Collect kernel-level metrics: SOL%, compute/memory throughput, DRAM bandwidth,
tensor core utilization, occupancy, warp stall reasons, and roofline classification.
The batched GEMM performs 68.72 GFLOP per call (B=32, M=512, N=1024, K=2048, FP16).
Compute the MFU against the GPU's peak FP16 tensor core TFLOP/s.""",
    "fr": """Profiler le kernel GEMM en batch dans bmm_workload.py avec NCU.
La charge de travail utilise des marqueurs cudaProfilerStart/Stop pour isoler la région d'intérêt.
Collecter les métriques au niveau kernel: SOL%, throughput calcul/mémoire, bande passante DRAM,
utilisation tensor core, occupancy, raisons des stalls de warp, et classification roofline.
Le GEMM en batch effectue 68,72 GFLOP par appel (B=32, M=512, N=1024, K=2048, FP16).
Calculer le MFU par rapport aux TFLOP/s de crête FP16 tensor core du GPU.""",
}


def test_the_good_example_as_statement_gives_the_same_report_in_both_languages(analyze):
    def facts(report):
        return {(m["id"], json.dumps(m["scope"], sort_keys=True)): m.get("value", 0)
                for m in report.message["all_metrics"]}
    english = analyze("h200/bmm.ncu.raw.csv", "--statement", GOOD_EXAMPLE["en"]).report
    french = analyze("h200/bmm.ncu.raw.csv", "--statement", GOOD_EXAMPLE["fr"]).report
    assert facts(english) == facts(french)
    assert english.value("mfu") == pytest.approx(69.2, abs=0.3)
    assert english.primary == french.primary == "COMPUTE_BOUND"


def test_throughput_from_a_profiled_capture_is_unmeasured(analyze):
    report = analyze("h200/launch.nsys.sqlite.gz").report
    assert report.unmeasured["throughput"]["reason"] == "UNMEASURED_REASON_NEEDS_UNPROFILED_RUN"
    assert report.unmeasured["latency"]["remedy"]


def test_throughput_follows_from_a_given_step_time_and_batch(analyze):
    report = analyze("h200/launch.nsys.sqlite.gz", "--context", "step_time=10ms batch=8", "--metrics",
                     "throughput,sample_throughput").report
    assert report.value("throughput") == pytest.approx(100)
    assert report.value("sample_throughput") == pytest.approx(800)


def test_every_kernel_inside_a_graph_is_attributed_to_its_launch(analyze):
    # 20 replays of 2,045 kernels and one copy, counted in the export by hand.
    report = analyze("h200/graph.nsys.sqlite.gz").report
    assert report.value("graph_launch_count") == 20
    assert report.value("graph_operation_count") == 20 * 2046


def test_kernel_counts_are_those_of_the_trace(analyze):
    trace = json.load(gzip.open(DATA / "h200/launch.torch.json.gz"))
    kernels = sum(1 for e in trace["traceEvents"] if e.get("cat") == "kernel")
    assert kernels == 6 * 2045
    report = analyze("h200/launch.torch.json.gz").report
    assert report.value("kernel_count", kind="STEP") * report.value("step_count") == pytest.approx(kernels)
