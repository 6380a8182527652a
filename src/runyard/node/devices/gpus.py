"""Which GPUs an agent may use, under the names that its programs are to be given.

Names are kept as they were given: indexes, UUIDs, and those of MIG slices.
"""

from __future__ import annotations

import json

from runyard.schedulers.inside import this_job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

# Whoever names GPUs in one of these is answered in the same one. The first that is set counts.
_VARIABLES = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")
# "NoDevFiles" is Slurm's word where a job has no GPU; CUDA takes -1 for none.
_NONE = ("", "-1", "NoDevFiles", "none")
_DRIVER_SECONDS = 30.0


class Gpus:
    """The names, and the variable in which programs are told theirs."""

    def __init__(self, names: tuple[str, ...], variable: str = _VARIABLES[0]) -> None:
        self.names = names
        self.variable = variable


def find_gpus(wish: str, environ: Mapping[str, str], driver: Callable[[], list[str]]) -> Gpus:
    """What was asked for (`auto`, `auto:2`, `none`, names); `driver` lists what the machine has.

    `auto` is what the environment names, or else the job's, or else all of the machine.
    """
    wish, _, most = wish.partition(":")
    if wish in _NONE or most == "0":
        return Gpus(())
    gpus = _find(wish, environ, driver)
    return Gpus(gpus.names[: int(most)] if most else gpus.names, gpus.variable)


def _find(wish: str, environ: Mapping[str, str], driver: Callable[[], list[str]]) -> Gpus:
    set_one = next((name for name in _VARIABLES if name in environ), None)
    if wish != "auto":
        return Gpus(read_names(wish), set_one or _VARIABLES[0])
    if set_one is not None:
        return Gpus(read_names(environ[set_one]), set_one)
    there = tuple(driver())
    of_job = read_names(this_job(environ).gpus)
    if of_job and len(there) > len(of_job):
        # The node shows them all: the job's own are those that the scheduler counts.
        return Gpus(of_job)
    return Gpus(there)


def read_names(text: str) -> tuple[str, ...]:
    """The GPUs that a variable names, as CUDA reads it."""
    names = [name.strip() for name in text.split(",")]
    # CUDA ignores what stands behind a name that it does not know; -1 is such a name.
    known: list[str] = []
    for name in names:
        if name in _NONE:
            break
        known.append(name)
    return tuple(dict.fromkeys(known))


def ask_driver() -> list[str]:
    """The UUIDs of this machine's GPUs."""
    return _ask("--list")


def refusing(names: Sequence[str]) -> list[str]:
    """Those of these GPUs that let one process in at a time."""
    return _ask("--exclusive", *names)


def ask_cards(names: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Name, model, and bytes in all and in use of these GPUs, or of all of this machine."""
    return [json.loads(line) for line in _say("--cards", *names).splitlines() if line]


def _ask(*words: str) -> list[str]:
    return _say(*words).split()


def _say(*words: str) -> str:
    """Ask in a process of its own: a driver in trouble may not answer."""
    import subprocess

    from runyard.node.devices.sampler_client import SAMPLER

    try:
        answer = subprocess.run(
            [*SAMPLER, *words], capture_output=True, text=True, timeout=_DRIVER_SECONDS,
            check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return ""
    return answer.stdout
