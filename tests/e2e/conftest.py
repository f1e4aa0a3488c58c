"""Runs the real programs: `solward analyze --local` starts a private coordinator and specialists."""
import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(os.environ.get("SOLWARD_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
BIN = pathlib.Path(os.environ.get("SOLWARD_BIN_DIR", ROOT / "build/release/bin"))
DATA = ROOT / "tests/data"


class Outcome:
    """What one command printed and how it ended."""

    def __init__(self, process):
        self.code = process.returncode
        self.out = process.stdout
        self.err = process.stderr

    @property
    def report(self):
        assert self.code == 0, f"exit {self.code}: {self.err}"
        return Report(json.loads(self.out))


class Report:
    """A report's JSON with look-ups by meaning instead of position."""

    def __init__(self, message):
        self.message = message
        self.by_key = {m["key"]: m for m in message.get("all_metrics", [])}

    def metrics(self, id, kind=None, name=None, device=None, rank=None):
        found = []
        for m in self.message.get("all_metrics", []):
            scope = m.get("scope", {})
            if m["id"] != id:
                continue
            if kind is not None and scope.get("kind") != f"SCOPE_KIND_{kind}":
                continue
            if name is not None and scope.get("name", "") != name:
                continue
            if device is not None and scope.get("device", 0) != device:
                continue
            if rank is not None and scope.get("rank", 0) != rank:
                continue
            found.append(m)
        return found

    def value(self, id, **scope):
        found = self.metrics(id, **scope)
        assert len(found) == 1, f"{id} {scope}: expected one metric, found {found}"
        return found[0].get("value", 0.0)

    @property
    def primary(self):
        return self.message["classification"]["primary"].removeprefix("BOTTLENECK_CLASS_")

    @property
    def unmeasured(self):
        return {u["id"]: u for u in self.message["metrics"].get("unmeasured", [])}

    @property
    def findings(self):
        return [f["finding"] for f in self.message["findings"].get("findings", [])]

    def finding(self, id):
        found = [f for f in self.findings if f["id"] == id]
        assert found, f"no finding {id}; there are {[f['id'] for f in self.findings]}"
        return found[0]


def run(*args, timeout=120, **kwargs):
    return Outcome(subprocess.run([str(BIN / "solward"), *map(str, args)], capture_output=True,
                                  text=True, timeout=timeout, stdin=subprocess.DEVNULL, **kwargs))


@pytest.fixture(scope="session")
def solward():
    return run


@pytest.fixture(scope="session")
def analyze():
    """analyze(captures, *options): the JSON report; each distinct call runs once."""
    cache = {}

    def call(captures, *options):
        captures = [captures] if isinstance(captures, str) else list(captures)
        key = (tuple(captures), options)
        if key not in cache:
            args = ["analyze", "--local", "--format", "json"]
            for capture in captures:
                args += ["--capture", DATA / capture]
            cache[key] = run(*args, *options)
        return cache[key]

    return call
