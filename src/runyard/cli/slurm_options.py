"""The options of every command that can work on the cluster, and where they mean nothing."""

from __future__ import annotations

import argparse
import os
import sys

from runyard.cli.letters import LETTER_OF, advice_on
from runyard.cli.parser import add, flag, refuse_options
from runyard.errors import UsageError
from runyard.schedulers.choice import HERE, NAMES, has_queue

_BY_SRUN = {"distributed", "resources.nodes", "resources.tasks_per_node"}


def add_slurm_arguments(parser: argparse.ArgumentParser, *, default: str = HERE) -> None:
    """What every command has that can work on the cluster. Call it after the command's own."""
    text = f"where it runs: {', '.join(NAMES)} (default {default})"
    add(parser, "--on WHERE", text, choices=NAMES, default=default)
    flag(parser, "-y --yes", "ask nothing before submitting")
    flag(parser, "--no-snapshot", "run the project's files as they are when a job starts, not as "
         "they are now")  # fmt: skip
    if default != HERE or _may_be_meant(parser):
        from runyard.cli.resource_flags import add_resource_flags

        add_resource_flags(parser, title="on slurm")


def _may_be_meant(parser: argparse.ArgumentParser) -> bool:
    """Whether somebody may want the cluster's options. To load them is most of the start of a
    command that works here."""
    words = sys.argv[1:]
    own = words[: words.index("--")] if "--" in words else words
    known = parser._option_string_actions
    options = {word.partition("=")[0] for word in own if word.startswith("-")}
    wants_help = options & {"-h", "--help", "--on"} or "help" in own[:1]
    return bool(wants_help) or "_ARGCOMPLETE" in os.environ or not options <= set(known)


def refuse_slurm_options(args: argparse.Namespace) -> None:
    """Without --on slurm, what is meant for the cluster is no option: it would be passed over."""
    # Where programs share GPUs, how many is an option here too.
    meant_here = {"request:resources.gpus"} if hasattr(args, "mps") else set[str]()
    names = [name for name in vars(args) if name.startswith("request:") and name not in meant_here]
    if not has_queue(args.on) and names:
        from runyard.cli.resource_flags import given_flags

        flags = given_flags(args).given
        wanted = [name.removeprefix("request:") for name in names]
        named = next(iter(flags[name].option for name in wanted))
        if _BY_SRUN.intersection(wanted):
            named = next(flags[name].option for name in wanted if name in _BY_SRUN)
            raise UsageError(
                f"{named} takes srun, which works inside a job only, and this would run here",
                mend="add --on slurm; or get an allocation to try it in:  runyard shell",
            )
        raise UsageError(
            f"{named} is for the cluster, and this would run here",
            mend=f"add --on slurm, or leave it out{_on_letter(named, args)}",
        )


def _on_letter(named: str, args: argparse.Namespace) -> str:
    """What else a letter of the option may have been meant for."""
    options = {f"--{name.replace('_', '-')}" for name in vars(args)}
    letter = LETTER_OF.get(named.split()[0], "")
    advice = advice_on(letter, options) or ""
    return f"; {advice}" if ";" in advice else ""


def not_here(args: argparse.Namespace, names: str) -> None:
    """Refuse options that mean something on this machine alone."""
    why = "{0} is for this machine, and has no meaning with --on slurm"
    refuse_options(args, names, why, "leave one of the two out")
