"""What a rank's program is called with, and what it finds in its environment. Pure."""

from __future__ import annotations

import re

from runyard.node.devices.gpus import read_names
from runyard.rank_forms import ONE_A_NODE, PLAIN
from runyard.schedulers.inside import this_job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

MOST_RESTARTS = 3
_PYTHON = re.compile(r"(.*/)?python[\d.]*")
_ASSIGNMENT = re.compile(r"\w+=.*", re.DOTALL)
_LINE = re.compile(
    r"\s*((?:exec\s+|\S*env\s+|\w+=\S*\s+)*(?:\S*/)?python[\d.]*|'[^']*/python[\d.]*')(?=\s)(.*)",
    re.DOTALL,
)
_OPTION = re.compile(r"\s--(?:num_nodes|num-nodes|devices|gpus)(?:=|\s+)\S+")
_NODES, _DEVICES = ("--num_nodes", "--num-nodes"), ("--devices", "--gpus")


class NotPython(Exception):
    """This way of starting ranks starts Python programs, and the command is none."""


class Meeting:
    """Where the ranks of one attempt meet: nodes, address and port, and a name for the meeting."""

    def __init__(self, nodes: int, address: str, port: int, name: str) -> None:
        self.nodes, self.address, self.port, self.name = nodes, address, port, name


def count_gpus(environ: Mapping[str, str], driver: Callable[[], Sequence[str]]) -> int:
    """The GPUs that are ours on this node: as named, counted by the job, or as the driver has."""
    for name in ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"):
        if name in environ:
            return len(read_names(environ[name]))
    count = this_job(environ).gpu_count
    return len(driver()) if count is None else count


def program_words(
    form: str, words: Sequence[str], meeting: Meeting, *, node: int, processes: int
) -> list[str]:
    """The command as this form starts it. `processes` is for those that start a node's own."""
    line_parts = _in_shell(words) if form in ("torchrun", "accelerate", "lightning") else None
    if line_parts is not None:
        # A line of a list is a shell's: its variables and quotes stay as they are.
        python, rest = line_parts
        if form == "lightning":
            rest = _OPTION.sub("", rest)
        start = program_words(form, ["python"], meeting, node=node, processes=processes)
        more = " ".join(start[1:])
        line = f"{python}{rest} {more}" if form == "lightning" else f"{python} {more}{rest}"
        return [*words[:2], line]
    if form == "torchrun":
        return _torchrun(words, meeting, processes)
    if form == "accelerate":
        return _accelerate(words, meeting, node, processes)
    if form == "lightning":
        return _lightning(words, meeting, processes)
    return list(words)


def _torchrun(words: Sequence[str], meeting: Meeting, processes: int) -> list[str]:
    at = _find_python(words)
    if meeting.nodes == 1:
        where = ["--standalone"]
    else:
        where = [
            f"--nnodes={meeting.nodes}", f"--rdzv-id={meeting.name}", "--rdzv-backend=c10d",
            f"--rdzv-endpoint={meeting.address}:{meeting.port}",
        ]  # fmt: skip
    options = [*where, f"--nproc-per-node={processes}", f"--max-restarts={MOST_RESTARTS}"]
    if at is None:
        return ["torchrun", *options, "--no-python", *words]
    return [*words[: at + 1], "-m", "torch.distributed.run", *options, *words[at + 1 :]]


def _accelerate(words: Sequence[str], meeting: Meeting, node: int, processes: int) -> list[str]:
    at = _need_python("accelerate", words)
    options = [
        f"--num_machines={meeting.nodes}", f"--num_processes={meeting.nodes * processes}",
        f"--machine_rank={node}", f"--main_process_ip={meeting.address}",
        f"--main_process_port={meeting.port}",
    ]  # fmt: skip
    return [*words[: at + 1], "-m", "accelerate.commands.launch", *options, *words[at + 1 :]]


def _lightning(words: Sequence[str], meeting: Meeting, processes: int) -> list[str]:
    _need_python("lightning", words)
    counted = _with_option(words, _NODES, meeting.nodes)
    return _with_option(counted, _DEVICES, processes)


def _with_option(words: Sequence[str], names: tuple[str, ...], value: int) -> list[str]:
    """With this option behind all others, in the spelling that was there, and there once."""
    others: list[str] = []
    spelled, left = names[0], list(words)
    while left:
        word = left.pop(0)
        name, equals, _ = word.partition("=")
        if name not in names:
            others.append(word)
            continue
        spelled = name
        if not equals and left:
            left.pop(0)
    return [*others, f"{spelled}={value}"]


def _in_shell(words: Sequence[str]) -> tuple[str, str] | None:
    """Of `sh -c LINE` where the line calls Python: up to the interpreter, and what is behind it."""
    if len(words) != 3 or words[1] != "-c" or not words[0].endswith("sh"):
        return None
    match = _LINE.fullmatch(words[2])
    return (match[1], match[2]) if match else None


def _need_python(form: str, words: Sequence[str]) -> int:
    at = _find_python(words)
    if at is None:
        raise NotPython(
            f"{form} starts Python programs, and {words[0]!r} is none: begin the command with "
            f"python, or choose --distributed {PLAIN}"
        )
    return at


def _find_python(words: Sequence[str]) -> int | None:
    """The place of the interpreter: first, or behind `env` and its assignments."""
    for at, word in enumerate(words):
        if _PYTHON.fullmatch(word):
            return at
        if not (word.rpartition("/")[2] == "env" or _ASSIGNMENT.fullmatch(word)):
            return None
    return None


def rank_variables(
    form: str, environ: Mapping[str, str], meeting: Meeting, interface: str | None
) -> dict[str, str]:
    """What a rank finds in its environment; what the user has set there stays."""
    job = this_job(environ)
    variables = {
        "MASTER_ADDR": meeting.address,
        "MASTER_PORT": str(meeting.port),
        "JAX_COORDINATOR_ADDRESS": f"{meeting.address}:{meeting.port}",
        "NODE_RANK": str(job.node_number),
    }
    if form not in ONE_A_NODE:
        variables |= {
            "RANK": str(job.rank),
            "WORLD_RANK": str(job.rank),
            "LOCAL_RANK": str(job.local_rank),
            "WORLD_SIZE": str(job.tasks),
        }
    # A rank that dies must not leave the others waiting; releases before 2.2 have the second name.
    usual = {"TORCH_NCCL_ASYNC_ERROR_HANDLING": "1", "NCCL_ASYNC_ERROR_HANDLING": "1"}
    if interface:
        usual |= {"NCCL_SOCKET_IFNAME": interface, "GLOO_SOCKET_IFNAME": interface}
    return {**{name: value for name, value in usual.items() if name not in environ}, **variables}
