"""The independent time model against the shares of a third script and against a worked example. Needs no programs."""
import csv

import pytest

import time_model
from conftest import DATA
from time_model import Call, Lane, Operation, Process, Range

COLUMNS = {"kernel": "kernel", "exposed_comm": "exposed_communication", "all_comm": "communication",
           "exposed_transfer": "exposed_transfer", "idle_launch": "idle_launch", "idle_sync": "idle_sync",
           "idle_host": "idle_host", "idle_queued": "idle_queued"}


def rows():
    with open(DATA / "shares.tsv", encoding="utf-8") as file:
        return list(csv.DictReader((line for line in file if not line.startswith("#")), delimiter="\t"))


@pytest.mark.parametrize("row", rows(), ids=lambda r: f"{r['file']}-{r['device']}")
def test_shares_within_a_point_of_the_table(row):
    timeline = time_model.load(DATA / row["file"])
    lane, = [lane for lane in timeline.lanes() if lane.device == int(row["device"])]
    result = time_model.analyze(lane)
    assert len(result.steps) == int(row["steps"])
    assert result.window["window"] / 1e6 == pytest.approx(float(row["window_ms"]), abs=0.006)
    for column, part in COLUMNS.items():
        assert 100 * result.window[part] / result.window["window"] == pytest.approx(float(row[column]), abs=1), column
    if row["busy_ms_per_step"] != "-":
        busy = sum(step["busy"] for step in result.steps) / len(result.steps) / 1e6
        assert busy == pytest.approx(float(row["busy_ms_per_step"]), abs=0.001)


def example():
    """Section 5 of docs/time-model.md, in microseconds there."""
    process = Process(1)
    operations = []

    def launch(call, start, end, kind, source, begin, finish):
        correlation = len(process.calls)
        process.calls.append(Call(start * 1000, end * 1000, 7, correlation, call, correlation))
        operations.append(Operation(begin * 1000, finish * 1000, kind, source, correlation, correlation))

    launch("cudaLaunchKernel", 10, 20, "kernel", "kernel", 30, 100)
    launch("cudaLaunchKernel", 20, 30, "kernel", "kernel", 105, 200)
    launch("cudaMemcpyAsync", 30, 40, "transfer", "memcpy", 200, 230)
    process.calls.append(Call(40_000, 240_000, 7, None, "cudaStreamSynchronize", 99))
    launch("cudaLaunchKernel", 260, 270, "kernel", "kernel", 275, 300)
    launch("cudaLaunchKernel", 650, 660, "kernel", "kernel", 670, 800)
    launch("cudaLaunchKernelExC", 660, 670, "communication", "kernel", 750, 900)
    launch("cudaMemcpyAsync", 670, 680, "transfer", "memcpy", 850, 960)
    launch("cudaLaunchKernel", 1000, 1010, "kernel", "kernel", 1015, 1100)
    process.ranges += [Range(0, 400_000, 7, "step"), Range(400_000, 1_500_000, 7, "step")]
    process.operations[0] = operations
    process.link()
    return Lane(process, 0)


def microseconds(parts):
    return {name: ns / 1000 for name, ns in parts.items() if ns}


def test_worked_example():
    result = time_model.analyze(example())
    assert (result.window_start, result.window_end) == (30_000, 1_100_000)
    assert (result.lead_in, result.tail) == (30_000, 400_000)
    assert microseconds(result.window) == {
        "window": 1070, "kernel": 405, "exposed_communication": 100, "exposed_transfer": 90, "busy": 595,
        "communication": 150, "transfer": 140, "idle_queued": 5, "idle_sync": 45, "idle_host": 350,
        "idle_launch": 75}
    assert [microseconds(step) for step in result.steps] == [
        {"window": 640, "kernel": 190, "exposed_transfer": 30, "busy": 220, "transfer": 30, "idle_queued": 5,
         "idle_sync": 45, "idle_host": 350, "idle_launch": 20},
        {"window": 430, "kernel": 215, "exposed_communication": 100, "exposed_transfer": 60, "busy": 375,
         "communication": 150, "transfer": 110, "idle_launch": 55}]


def test_parts_of_a_skipped_region_end_before_the_next_step():
    result = time_model.analyze(example(), "nvtx:step", keep=1)
    assert (result.window_start, result.window_end) == (30_000, 669_999)
    assert [step["window"] for step in result.steps] == [639_999]
    with pytest.raises(LookupError):
        time_model.analyze(example(), "nvtx:other")


@pytest.mark.parametrize("call", ["cudaStreamSynchronize_v3020", "cuCtxSynchronize", "hipDeviceSynchronize",
                                  "cudaMemcpy_v3020", "cuMemcpyDtoH_v2"])
def test_synchronizing_calls(call):
    assert Call(0, 1, 0, 0, call, 0).synchronizes


@pytest.mark.parametrize("call", ["cudaMemcpyAsync_v3020", "cuMemcpyDtoD_v2", "cudaMemcpyPeer", "cudaMalloc",
                                  "cudaMemcpyBatchAsync", "cudaLaunchKernel_v7000", "cudaEventQuery"])
def test_other_calls(call):
    assert not Call(0, 1, 0, 0, call, 0).synchronizes


@pytest.mark.parametrize("name, marker", [("step", "step"), ("Step 80 to 90", "step"), ("train_step 3", "train step"),
                                          ("Optimizer.step#SGD.step", None), ("forward", None),
                                          ("iteration 12 of 20", "iteration")])
def test_step_markers(name, marker):
    assert time_model.step_marker(name) == marker


@pytest.mark.parametrize("kernel, collective", [
    ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", True),
    ("void ncclKernel<float>(int)", True),
    ("void at::native::(anonymous namespace)::multi_tensor_apply_kernel<nccl>(int)", False)])
def test_collective_kernels(kernel, collective):
    assert time_model.is_collective(kernel) == collective


@pytest.mark.parametrize("text, ns", [(12, 12000), ("5217457667026.751", 5217457667026751), ("0.8", 800),
                                      ("1.0005", 1001), ("28381.224", 28381224)])
def test_microseconds_of_a_trace_are_exact(text, ns):
    assert time_model._nanoseconds(text) == ns
