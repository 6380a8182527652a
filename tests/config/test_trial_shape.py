"""Nodes and GPUs of one trial, where nobody says how its processes are started."""

from __future__ import annotations

from dataclasses import replace

import pytest

from runyard.config.request import Agents
from runyard.config.trial_shape import fit_array, fit_single
from tests.launch.planning import option, planned, request


def test_a_task_of_an_array_is_on_one_node_and_it_is_said() -> None:
    fitted, notes = fit_array(request(nodes=2, gpus=1), slots=1)
    made = planned(fitted, trials=6)
    assert (made.form, option(made, "nodes"), option(made, "gres")) == ("array", "1", "gpu:1")
    (note,) = notes
    assert note.startswith("nodes (--nodes) is 1 for each task of an array")


def test_several_gpus_for_a_trial_are_asked_for_and_said() -> None:
    fitted, notes = fit_array(request(gpus=4), slots=1)
    assert option(planned(fitted, trials=6), "gres") == "gpu:4"
    assert notes == [
        "each trial has 4 GPUs (--gpus): -g 1 asks for one, -j 4 runs 4 trials at a time with one "
        "each"
    ]


@pytest.mark.parametrize(
    ("asked", "slots"),
    [
        (request(gpus=1), 1),
        (request(gpus=4), 4),
        (request(gpus=4, agents=Agents(per_gpu=2)), 1),
        (replace(request(nodes=2, gpus=4), distributed="torchrun"), 1),
        (request(nodes=2, agents=Agents(form="nodes")), 1),
        (request(nodes=2, tasks_per_node=4), 1),
    ],
)
def test_what_uses_all_that_it_asks_for_stays_as_it_is(asked: object, slots: int) -> None:
    assert fit_array(asked, slots) == (asked, [])  # type: ignore[arg-type]


def test_a_program_on_several_nodes_runs_on_all_of_them() -> None:
    fitted, (note,) = fit_single(request(nodes=2, gpus=2, cpus=2), "python train.py")
    made = planned(fitted, trials=1, kind="run")
    shape = [option(made, name) for name in ("nodes", "ntasks-per-node", "cpus-per-task")]
    assert shape == ["2", "2", "2"]
    assert '"form": "lightning"' in str(made.job["launcher"])
    assert note.startswith("2 nodes (--nodes) and no -W: as -W lightning")


@pytest.mark.parametrize("command", ["srun python train.py", "torchrun train.py", "bash run.sh"])
def test_a_program_that_starts_its_own_processes_is_started_once(command: str) -> None:
    asked = request(nodes=2, gpus=2)
    fitted, (note,) = fit_single(asked, command)
    assert fitted == asked
    assert "the command starts once, on the first node" in note


def test_a_program_on_one_node_is_one_process() -> None:
    for asked in (request(gpus=2), replace(request(nodes=2), distributed="srun")):
        assert fit_single(asked, "python train.py") == (asked, [])
