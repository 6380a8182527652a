"""How many nodes and GPUs one trial can use, where nobody says how its processes are started."""

from __future__ import annotations

import re
from dataclasses import replace

from runyard.config.request import Request
from runyard.config.settling import settle_resources

# Programs that start processes on several nodes by themselves. What a shell script does, nobody
# can know before it runs.
_STARTS_PROCESSES = re.compile(
    r"\b(srun|mpirun|mpiexec|torchrun|accelerate|deepspeed|horovodrun|torch\.distributed|bash|sh)\b"
)


def fit_array(request: Request, slots: int) -> tuple[Request, list[str]]:
    """Each task of an array is one agent on one node, whose trials are one process each."""
    resources = request.resources
    if request.distributed or request.agents.form == "nodes" or resources.tasks_per_node:
        return request, []
    notes = []
    if (resources.nodes or 1) > 1:
        notes.append(
            f"nodes ({request.origin('resources.nodes')}) is 1 for each task of an array: a trial "
            "is one process; with -W it works on several nodes, and --agents says how many tasks"
        )
        request = replace(request, resources=replace(resources, nodes=1))
    gpus = resources.gpus or 0
    if gpus > 1 and slots == 1 and request.agents.per_gpu is None:
        notes.append(
            f"each trial has {gpus} GPUs ({request.origin('resources.gpus')}): -g 1 asks for one, "
            f"-j {gpus} runs {gpus} trials at a time with one each"
        )
    return request, notes


def fit_single(request: Request, command_line: str) -> tuple[Request, list[str]]:
    """A program on several nodes runs on all of them: as Lightning's do, where nobody says how."""
    resources = request.resources
    nodes = resources.nodes or 1
    is_said = request.distributed or request.agents.form == "nodes" or resources.tasks_per_node
    if nodes == 1 or is_said:
        return request, []
    origin = request.origin("resources.nodes")
    if _STARTS_PROCESSES.search(command_line):
        return request, [
            f"{nodes} nodes ({origin}) and no -W: the command starts once, on the first node, and "
            "itself starts what runs on the others"
        ]
    note = (
        f"{nodes} nodes ({origin}) and no -W: as -W lightning, a process for each GPU of each "
        "node, which are told --num_nodes and --devices; -W srun tells them nothing"
    )
    settled = settle_resources(resources, "lightning", {})
    return replace(request, distributed="lightning", job_type="distributed", resources=settled), [
        note
    ]
