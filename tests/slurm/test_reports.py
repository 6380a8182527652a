"""A report of a sweep that really ran on the cluster, held against `sacct` and against `/proc`."""

from __future__ import annotations

import csv
import json
import os
from typing import Any

import pytest

from tests.slurm.cluster import FINAL_STATES
from tests.slurm.test_cluster import wait_until
from tests.slurm.yard import Yard

pytestmark = pytest.mark.slurm

# Long enough for Slurm, which looks every five seconds. Each says what the kernel knows of it.
PROGRAM = """
import argparse, json, os, pathlib, resource, time
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
parser.add_argument("--width", type=int)
parser.add_argument("--kind")
args = parser.parse_args()
import wandb
run = wandb.init()
memory, begun = bytearray(args.width << 20), time.process_time()
while time.process_time() < begun + SECONDS:
    pass
loss = abs(args.lr - 0.3) + {"plain": 0.0, "odd": 0.4}[args.kind] + args.width / 10_000
for step in range(4):
    run.log({"loss": loss + 1 / (step + 1) - 0.25})
if 0.52 < args.lr < 0.56:
    raise SystemExit(3)
run.finish()
status = pathlib.Path("/proc/self/status").read_text()
peak = int(status.partition("VmHWM:")[2].split()[0]) << 10
used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
truth = {"peak": peak, "cpu": sum(one.ru_utime + one.ru_stime for one in used), "loss": loss}
folder = pathlib.Path(__file__).parent / "truth"
folder.mkdir(exist_ok=True)
(folder / os.environ["WANDB_RUN_ID"]).write_text(json.dumps(truth))
"""
SWEEP = {
    "program": "train.py",
    "name": "how much is too much",
    "method": "random",
    "metric": {"name": "loss", "goal": "minimize"},
    "parameters": {
        "lr": {"min": 0.0, "max": 1.0},
        "width": {"values": [20, 40, 80]},
        "kind": {"values": ["plain", "odd"]},
    },
}
MIB = 1 << 20


@pytest.fixture(scope="module")
def yard(module_yard: Yard) -> Yard:
    return module_yard


@pytest.mark.skipif(
    not os.environ.get("RUNYARD_ALL_SLURM"),
    reason="RUNYARD_ALL_SLURM=1 reports on a sweep of 80 trials; test_operations on a small one",
)
def test_a_report_of_eighty_trials_is_what_sacct_and_proc_say(yard: Yard) -> None:
    yard.write("train.py", PROGRAM.replace("SECONDS", "0.4"))
    sweep = yard.write("sweep.yaml", json.dumps({**SWEEP, "run_cap": 80})).name
    said = yard.submit(
        "sweep", sweep, "--on", "slurm", "--yes", "--agents", "4", "--cpus", "2", "-j", "1",
        "--memory", "1G", "--time", "30m",
    )  # fmt: skip
    (job,) = said["jobs"]
    found = yard.ended(said["sweep"], seconds=600)
    yard.cluster.wait_for(job["job_id"], FINAL_STATES, timeout=180)
    truth = {file.name: json.loads(file.read_text()) for file in (yard.project / "truth").iterdir()}

    def report() -> Any:
        return json.loads(yard.type("report", said["sweep"], "--json").stdout)

    # Slurm's last figures of a step may come a little after its end.
    wait_until(lambda: report()["jobs"][0]["source"] == ["accounting"], timeout=180)
    told = report()
    [group] = told["jobs"]

    # As sacct has it.
    lines = yard.cluster.run(
        "sacct", "-j", job["job_id"], "-X", "-n", "-P", "-o", "AllocCPUS,ElapsedRaw,TotalCPU"
    ).stdout.split()
    held = [tuple(line.split("|")) for line in lines]
    assert group["tasks"] == len(held) == 4
    assert told["hours"]["cpu_held"] * 3600 == sum(int(cpus) * int(s) for cpus, s, _ in held)
    steps = yard.cluster.run(
        "sacct", "-j", job["job_id"], "-n", "-P", "--units=K", "-o", "MaxRSS"
    ).stdout.split()
    assert group["memory_peak"] == max(int(float(one.rstrip("K"))) << 10 for one in steps)
    assert group["limit"] == 1800
    assert told["hours"]["cpu_wasted"] == pytest.approx(
        told["hours"]["cpu_held"] - told["hours"]["cpu_used"] + told["hours"]["cpu_lost"]
    )

    # As the kernel has it: agents measured each program, and Slurm all of them with the agents.
    rows = {one["run"]: one for one in told["trials"]}
    assert len(rows) == 80
    for run, true in truth.items():
        assert rows[run]["loss"] == pytest.approx(true["loss"])
        # Beside it stands the client's own process, which counts as well.
        assert true["peak"] <= rows[run]["memory_peak"] + 8 * MIB
        assert rows[run]["memory_peak"] <= true["peak"] + 200 * MIB
        assert rows[run]["cpu_seconds"] == pytest.approx(true["cpu"], rel=0.5, abs=1.0)
    used = sum(one["cpu"] for one in truth.values())
    assert told["hours"]["cpu_used"] * 3600 >= 0.9 * used

    # What failed, what was best, what matters, what to ask for.
    failed = [one for one in rows.values() if one["state"] == "failed"]
    assert len(truth) + len(failed) == 80
    causes = {one["cause"]: one["failed"] for one in told["failures"]}
    assert causes.get("program", 0) == len(failed) == found["counts"]["failed"]
    [of_sweep] = told["sweeps"]
    best = of_sweep["best"][0]["metrics"]["loss"]["mean"]
    assert best == pytest.approx(min(one["loss"] for one in truth.values()))
    assert {one["name"] for one in of_sweep["importance"]["parameters"] if one["is_sure"]} >= {
        "lr", "kind",
    }  # fmt: skip
    words = {one["option"]: one["words"] for one in group["changes"]}
    assert "instead of 1G" in words["--memory"]
    assert "instead of 30m" in words["--time"]

    pictures = yard.project / "results"
    yard.type("report", said["sweep"], "-o", f"{pictures}/")
    names = {str(file.relative_to(pictures)) for file in pictures.rglob("*") if file.is_file()}
    assert names >= {
        "report.html", "report.md", "report.tex", "report.txt", "report.json", "trials.csv",
        "plots/convergence.png", "plots/importance.svg", "plots/resources.png", "plots/hours.svg",
    }  # fmt: skip
    with (pictures / "trials.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == 80
