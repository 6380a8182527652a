"""What sbatch is asked for where several sources speak of the same option."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from runyard.clusters.load import load_profile
from runyard.clusters.profile import Profile
from runyard.schedulers.slurm.header import option_words
from tests.launch.planning import option, planned, request


def by(form: str) -> Profile:
    profile = load_profile("generic")
    return replace(profile, gpus=replace(profile.gpus, form=form))


def options_of(*words: str, form: str = "gres", **resources: Any) -> list[str]:
    """The options that ask for GPUs, memory and other parts of nodes."""
    made = planned(request(by(form), extra=words, **resources))
    wanted = ("g", "mem", "licenses", "exclude", "mail-type", "tres", "comment", "constraint")
    return [line for line in option_words(made.header) if line.lstrip("-").startswith(wanted)]


@pytest.mark.parametrize(
    ("words", "asked", "lines"),
    [
        (["--gres=lscratch:100"], {"gpus": 1}, ["--gres=gpu:1,lscratch:100"]),
        (["--gres lscratch:100"], {"gpus": 1}, ["--gres=gpu:1,lscratch:100"]),
        (
            ["--gres=lscratch:100", "--gres=tmp:1G", "--gres=lscratch:5"],
            {"gpus": 2, "gpu_type": "a100"},
            ["--gres=gpu:a100:2,tmp:1G,lscratch:5"],
        ),
        (["--gres=gpu:h100:4,nvme:1"], {"gpus": 1}, ["--gres=gpu:h100:4,nvme:1"]),
        (["--gres=none"], {"gpus": 1}, ["--gres=none"]),
        (["--gpus-per-node=2"], {"gpus": 1}, ["--gpus-per-node=2"]),
        (
            ["--gres=lscratch:1", "--gpus=4"],
            {"gpus": 1},
            ["--gres=lscratch:1", "--gpus=4"],
        ),
        (["--licenses=matlab:1", "--licenses=ansys:2"], {}, ["--licenses=matlab:1,ansys:2"]),
        (["--mem-per-cpu=2G"], {"memory": 4096}, ["--mem-per-cpu=2G"]),
        (["--exclude=n[1,3]"], {"exclude": ("n2",)}, ["--exclude=n2,n[1,3]"]),
        (["--mail-type=FAIL"], {"mail": ("END",)}, ["--mail-type=END,FAIL"]),
        # Not lists, or lists whose parts have no names.
        (["--comment=a:1", "--comment=b:2"], {}, ["--comment=b:2"]),
        (["--constraint=h100"], {"constraint": "a100"}, ["--constraint=h100"]),
    ],
)
def test_an_option_with_parts_is_put_together_part_by_part(
    words: list[str], asked: dict[str, Any], lines: list[str]
) -> None:
    assert options_of(*words, **asked) == lines


def test_a_list_beside_gpus_that_are_asked_for_in_another_way_takes_nothing_away() -> None:
    lines = options_of("--gres=lscratch:100", form="gpus_per_node", gpus=1)
    assert lines == ["--gpus-per-node=1", "--gres=lscratch:100"]
    lines = options_of("--gres=gpu:2,lscratch:100", form="gpus_per_node", gpus=1)
    assert lines == ["--gres=gpu:2,lscratch:100"]


def test_what_a_site_always_wants_is_put_together_with_what_is_asked() -> None:
    profile = by("gres")
    always = replace(
        profile, submission=replace(profile.submission, always=("--gres=lscratch:10",))
    )
    made = planned(request(always, gpus=1, extra=("--gres=nvme:1",)))
    assert option(made, "gres") == "gpu:1,lscratch:10,nvme:1"


@pytest.mark.parametrize(
    ("form", "gpus", "tasks", "line"),
    [
        ("gpus_per_task", 4, 4, "--gpus-per-task=1"),
        ("gpus_per_task", 8, 4, "--gpus-per-task=2"),
        ("gpus_per_task", 4, 1, "--gpus-per-task=4"),
        ("gpus_per_task", 2, 4, "--gpus-per-node=2"),
        ("gpus_per_task", 3, 2, "--gpus-per-node=3"),
        ("gpus_per_node", 4, 4, "--gpus-per-node=4"),
        ("gres", 4, 4, "--gres=gpu:4"),
    ],
)
def test_gpus_are_those_of_a_node_however_many_tasks_it_has(
    form: str, gpus: int, tasks: int, line: str
) -> None:
    assert options_of(form=form, gpus=gpus, tasks_per_node=tasks) == [line]


def test_the_type_stands_with_the_number_of_each_task() -> None:
    lines = options_of(form="gpus_per_task", gpus=4, tasks_per_node=4, gpu_type="a100")
    assert lines == ["--gpus-per-task=a100:1"]
