"""The shape of runyard.yaml: its keys at the top, and what may stand under `clusters:`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runyard.config.command_file import LONGEST_LINE
from runyard.config.request import (
    JOB_TYPES,
    Agents,
    Checkpoints,
    Environment,
    Gauge,
    Resources,
    Rung,
    Staging,
    Tracking,
)
from runyard.rank_forms import RANK_FORMS
from runyard.reading.kinds import Items, Kind, Schema, Table, Text, Unfit, VariableText, Word
from runyard.reading.records import Section, section, setting

if TYPE_CHECKING:
    from runyard.clusters.profile import Profile


class CommandLine(Kind):
    """A command: a list of words, or one line as a shell would split it."""

    metavar = "COMMAND"

    def read(self, value: Any) -> tuple[str, ...]:
        import shlex

        if isinstance(value, str):
            if len(value) > LONGEST_LINE:
                what = f"a line of more than {LONGEST_LINE:,} characters"
                raise Unfit(what, "write a script, and run that")
            try:
                words = tuple(shlex.split(value))
            except ValueError as error:
                raise Unfit(f"{str(error).lower()}", "close the quotation") from None
        else:
            words = Items(VariableText()).read(value)
        if not words:
            raise Unfit("a command has at least one word", "write python train.py")
        return words

    def schema(self) -> Schema:
        words = {"type": "array", "minItems": 1, "items": {"type": ["string", "number", "boolean"]}}
        return {"anyOf": [{"type": "string", "minLength": 1}, words]}


@dataclass(frozen=True)
class ClusterFile:
    """What a project says for one cluster only."""

    name: str | None = setting(
        Text(), "name of the experiment", flags=("-e", "--exp-name", "--name"), shared=True
    )
    command: tuple[str, ...] | None = setting(CommandLine(), "the program and its arguments")
    command_file: str | None = setting(
        Text("FILE"), "a file that holds the command", flags=("-C", "--configs", "--command-file")
    )
    sweep: str | None = setting(Text("FILE"), "the sweep file")
    sweep_id: str | None = setting(
        Text("SWEEP"), "the id of an existing sweep",
        flags=("-w", "--sweep-id", "--wandb-sweepid"),
    )  # fmt: skip
    job_type: str | None = setting(
        Word(*JOB_TYPES), "what kind of job it is; the other keys decide it, and it must agree",
        flags=("--job-type",),
    )  # fmt: skip
    distributed: str | None = setting(
        Word(*RANK_FORMS, also={"script": "torchrun"}),
        "how the processes of one trial find each other",
        flags=("-W", "--distributed", "--which-distributed", "--launcher"),
    )  # fmt: skip
    resources: Resources = section(Resources, "what each agent gets")
    environment: Environment = section(Environment, "where the program's packages come from")
    agents: Agents = section(Agents, "how many agents, and in which form")
    staging: Staging = section(Staging, "what is copied between scratch and the node's disk")
    tracking: Tracking = section(Tracking, "where wandb's calls go")
    checkpoints: Checkpoints = section(Checkpoints, "how an interrupted program continues")
    gauge: Gauge = section(Gauge, "how programs are measured, and the margins")
    rehearse: Mapping[str, Rung] = setting(
        Table(Section(Rung)),
        "small versions of the program to try before a launch, in this order",
        {},
    )
    profile: Profile = section(
        "runyard.clusters.profile:Profile",
        "fields of the cluster's profile that are different for this project",
    )


@dataclass(frozen=True)
class ProjectFile(ClusterFile):
    """The whole file."""

    cluster: str | None = setting(
        Text("NAME"), "the cluster's profile (default: recognised)", flags=("--cluster",)
    )
    clusters: Mapping[str, ClusterFile] = setting(
        Table(Section(ClusterFile)), "what is different on one cluster", {}
    )
