"""The services as a person runs them: started by hand, killed, asked again."""
import os
import re
import signal
import subprocess
import time

import pytest
from conftest import BIN, DATA, run

BMM = ("--capture", DATA / "h200/bmm.ncu.raw.csv")
CONTEXT = ("--context", "B=32 M=512 N=1024 K=2048 dtype=fp16")


class Stack:
    """A coordinator and a profiling specialist on Unix sockets below one folder."""

    def __init__(self, folder):
        self.folder = folder
        self.target = f"unix:{folder}/c.sock"
        self.processes = {}

    def start(self, name, program, *args):
        log = open(self.folder / f"{name}.log", "ab")
        self.processes[name] = subprocess.Popen([str(BIN / program), "--die-with-parent", *map(str, args)],
                                                stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def start_coordinator(self):
        self.start("coordinator", "solward-coordinator", "--listen", self.target, "--state-dir", self.folder / "c")

    def start_specialist(self):
        self.start("profiling", "solward-profiling-agent", "--listen", f"unix:{self.folder}/p.sock", "--workspace",
                   self.folder / "p", "--coordinator", self.target)

    def solward(self, *args, **kwargs):
        return run("--coordinator", self.target, *args, **kwargs)

    def wait_ready(self):
        for _ in range(200):
            if "healthy" in self.solward("specialists").out:
                return
            time.sleep(0.05)
        raise AssertionError((self.folder / "coordinator.log").read_text())

    def stop(self):
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            assert process.wait(timeout=20) is not None


@pytest.fixture(scope="module")
def stack(tmp_path_factory):
    stack = Stack(tmp_path_factory.mktemp("s"))
    stack.start_coordinator()
    stack.start_specialist()
    stack.wait_ready()
    yield stack
    stack.stop()


@pytest.fixture(scope="module")
def finished(stack):
    """Id of a finished analysis of the batched GEMM."""
    outcome = stack.solward("analyze", *BMM, *CONTEXT, "--metrics", "mfu,sol", "--key", "finished")
    assert outcome.code == 0, outcome.err
    return re.search(r"analysis (\S+)", outcome.err).group(1)


def test_the_same_key_returns_the_first_analysis(stack, finished):
    again = stack.solward("analyze", *BMM, *CONTEXT, "--metrics", "mfu,sol", "--key", "finished", "--detach")
    assert (again.code, again.out.strip()) == (0, finished), again.err


def test_the_same_key_with_another_request_is_refused(stack, finished):
    other = stack.solward("analyze", *BMM, *CONTEXT, "--metrics", "sol", "--key", "finished")
    assert other.code == 2
    assert "finished" in other.err


def test_a_report_survives_kill_9_byte_for_byte(stack, finished):
    forms = [("--lang", "en"), ("--lang", "fr"), ("--format", "json")]
    before = [stack.solward("report", finished, *form).out for form in forms]
    assert all(before)
    stack.processes["coordinator"].send_signal(signal.SIGKILL)
    stack.processes["coordinator"].wait()
    stack.start_coordinator()
    stack.wait_ready()
    assert [stack.solward("report", finished, *form).out for form in forms] == before


def test_every_number_verifies(stack, finished):
    outcome = stack.solward("verify", finished)
    assert outcome.code == 0, outcome.out + outcome.err
    assert "0 do not" in outcome.out


def test_a_number_is_explained_down_to_the_tool(stack, finished):
    outcome = stack.solward("explain", finished, "mfu")
    assert outcome.code == 0
    assert "gpu__time_duration.sum" in outcome.out and "989.4 TFLOP/s" in outcome.out


def test_questions_are_answered_and_the_analysis_goes_on(stack):
    asked = stack.solward("analyze", *BMM, "--metrics", "mfu")
    assert asked.code == 3
    id = re.search(r"analysis (\S+)", asked.err).group(1)
    questions = re.findall(r"Question (\S+):", asked.err)
    answers = []
    for question in questions:
        answers += [question, "dtype=fp16" if "dtype" in question else "flops_per_call=68.72GFLOP"]
    answered = stack.solward("answer", id, *answers)
    assert answered.code == 0, answered.err
    for _ in range(5):  # a dtype may be asked for after the FLOPs
        stack.solward("watch", id, timeout=30) if "succeeded" in stack.solward("get", id).out else time.sleep(0.3)
        state = stack.solward("get", id).out
        if "input-required" in state:
            question = re.search(r"Question (\S+):", state).group(1)
            stack.solward("answer", id, question, "dtype=fp16")
    report = stack.solward("report", id)
    assert "69.2 %" in report.out, report.err + state


def test_listing_pages_and_filters(stack, finished):
    assert finished in stack.solward("list", "--filter", "state=SUCCEEDED").out
    assert finished not in stack.solward("list", "--filter", "state=FAILED").out
    assert stack.solward("list", "--filter", "colour=red").code == 2


def test_cancelling_after_the_end_tells_the_truth(stack, finished):
    outcome = stack.solward("cancel", finished)
    assert outcome.code == 0 and "already ended" in outcome.out


def test_an_artifact_comes_back_as_it_was_put(stack, finished, tmp_path):
    artifact = re.search(r"artifact (\S+)\)", stack.solward("get", finished).out).group(1)
    assert stack.solward("artifact", artifact, "-o", tmp_path / "a.csv").code == 0
    assert (tmp_path / "a.csv").read_bytes() == BMM[1].read_bytes()


def test_the_plan_shows_what_was_read(stack):
    outcome = stack.solward("analyze", *BMM, "--plan-only", "--statement",
                            "Compute the MFU of the batched GEMM (B=32, M=512, N=1024, K=2048, FP16).")
    assert outcome.code == 0
    for word in ("mfu", "512", "1,024", "2,048", "fp16", "68.72 GFLOP"):
        assert word in outcome.out, word


@pytest.mark.parametrize("program", ["solward-coordinator", "solward-profiling-agent", "solward-cuda-graph-agent"])
def test_another_address_without_tls_is_refused(program, tmp_path):
    folder = "--state-dir" if program == "solward-coordinator" else "--workspace"
    process = subprocess.run([str(BIN / program), "--listen", "0.0.0.0:0", folder, str(tmp_path / "s")],
                             capture_output=True, text=True, timeout=30)
    assert process.returncode == 2
    assert "TLS" in process.stderr




@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_local_run_leaves_no_process(kind, tmp_path):
    environment = dict(os.environ, TMPDIR=str(tmp_path))
    process = subprocess.Popen([str(BIN / "solward"), "analyze", "--local", "--capture",
                                str(DATA / "h200/launch.torch.json.gz")], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, env=environment)
    time.sleep(0.25)
    process.send_signal(kind)
    process.communicate(timeout=20)
    for _ in range(100):
        left = subprocess.run(["pgrep", "-f", str(tmp_path)], capture_output=True, text=True).stdout.split()
        if not left:
            break
        time.sleep(0.05)
    assert not left
    if kind == signal.SIGINT:
        assert not list(tmp_path.iterdir())


def test_watching_an_analysis_that_waits_shows_its_questions(stack):
    asked = stack.solward("analyze", *BMM, "--metrics", "mfu", "--key", "waits")
    id = re.search(r"analysis (\S+)", asked.err).group(1)
    for args in (("watch", id), ("watch", id, "--after", "1000"), ("report", id)):
        outcome = stack.solward(*args, timeout=20)
        assert outcome.code == 3, args
    assert "flops_missing" in stack.solward("watch", id, timeout=20).err


def test_without_a_coordinator_every_command_says_so_at_once(tmp_path):
    for args in (("watch", "x"), ("get", "x"), ("list",), ("analyze", *BMM)):
        outcome = run("--coordinator", f"unix:{tmp_path}/none.sock", *args, timeout=20)
        assert outcome.code == 4, args


def test_a_metric_that_the_capture_cannot_give_is_asked_about(stack):
    outcome = stack.solward("analyze", *BMM, "--metrics", "gpu_busy_share")
    assert outcome.code == 3
    assert "capture_cannot_give" in outcome.err
