"""What is asked of Slurm where the user types little: the defaults of older submit scripts."""

from __future__ import annotations

import re
from typing import Any

import pytest

from runyard.config.check import check
from runyard.launch.script import script
from tests.launch.planning import planned, request


def asked(profile: str, **given: Any) -> dict[str, str]:
    """The options of sbatch, for an array of twelve."""
    wanted = check(request(profile, **given), environ={}).accepted()
    lines = re.findall(r"^#SBATCH --([\w-]+)=(.*)$", script(planned(wanted)), re.MULTILINE)
    return dict(lines)


PLAI = {"partition": "plai", "nodes": "1", "ntasks-per-node": "1", "cpus-per-task": "2",
        "gres": "gpu:1", "mem": "10240M", "time": "0-01:00:00", "array": "1-12%10"}  # fmt: skip
CEDAR = {"account": "def-fwood", "nodes": "1", "ntasks-per-node": "1", "cpus-per-task": "2",
         "gpus-per-node": "v100l:1", "mem-per-gpu": "10240M", "time": "0-01:00:00",
         "array": "1-12"}  # fmt: skip
ANY = {"nodes": "1", "ntasks-per-node": "1", "cpus-per-task": "1", "time": "0-01:00:00",
       "array": "1-12"}  # fmt: skip
_KEPT_OUT = ("job-name", "output", "chdir", "open-mode", "signal")


@pytest.mark.parametrize(
    ("profile", "given", "options"),
    [("plai", {}, PLAI), ("cedar", {"account": "def-fwood"}, CEDAR), ("generic", {}, ANY)],
)
def test_a_bare_submission_asks_for_the_old_scripts_defaults(
    profile: str, given: dict[str, str], options: dict[str, str]
) -> None:
    found = asked(profile, **given)
    assert {name: value for name, value in found.items() if name not in _KEPT_OUT} == options


def test_what_is_said_counts_and_not_the_default() -> None:
    said = asked("plai", partition="plai_towers", gpus=3, cpus=5, memory_per_gpu=2048, time=60.0)
    names = ("partition", "gres", "cpus-per-task", "mem", "time")
    assert [said[name] for name in names] == ["plai_towers", "gpu:3", "5", "6144M", "0-00:01:00"]
    typed = asked("cedar", account="rrg-kevinlb", gpu_type="p100l")
    assert (typed["account"], typed["gpus-per-node"]) == ("rrg-kevinlb", "p100l:1")


def test_zero_gpus_are_possible_where_one_is_the_default() -> None:
    for profile, given in (("plai", {}), ("cedar", {"account": "def-fwood"})):
        found = asked(profile, gpus=0, **given)
        assert not {"gres", "gpus-per-node"} & set(found)
