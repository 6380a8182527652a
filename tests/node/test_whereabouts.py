"""What an agent says of where it is."""

from __future__ import annotations

import pytest

from runyard.node.agent.job_end import whereabouts


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({}, {}),
        ({"SLURM_JOB_ID": "12"}, {"job": "12"}),
        ({"SLURM_JOB_ID": "12", "SLURMD_NODENAME": "n3"}, {"job": "12", "node": "n3"}),
        # A task has a number of its own, which nobody types: the array's is meant.
        (
            {"SLURM_JOB_ID": "19", "SLURM_ARRAY_JOB_ID": "12", "SLURM_ARRAY_TASK_ID": "4"},
            {"job": "12_4"},
        ),
        ({"SLURM_JOB_ID": "", "SLURMD_NODENAME": "n3"}, {}),
    ],
)
def test_the_job_and_the_node(environ: dict[str, str], said: dict[str, str]) -> None:
    assert whereabouts(environ) == said
