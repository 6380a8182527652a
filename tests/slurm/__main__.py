"""A Slurm to try things on: `python -m tests.slurm shell`, or `run -- COMMAND` for one command.

It goes away with the shell or the command.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.packages import MissingPackagesError

from .cluster import ClusterError, ClusterSpec, SlurmCluster

# The codes that timeout, env and docker run use for "the trouble is mine, not the command's".
EXIT_NO_CLUSTER = 125
EXIT_NO_COMMAND = 127
EXIT_BY_SIGNAL = 128

PROMPT = "(slurm) "


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse_options(arguments)
    try:
        spec = ClusterSpec(
            nodes=options.nodes,
            cpus=options.cpus,
            memory_mb=options.memory_mb,
            gpus=options.gpus,
            accounting=options.accounting,
        )
        with SlurmCluster(spec) as cluster:
            if options.action == "run":
                return run_in_foreground(options.command, cluster.env)
            print(describe(cluster), flush=True)
            command, env = shell_of(cluster)
            return run_in_foreground(command, env)
    except (ClusterError, MissingPackagesError, ValueError) as error:
        print(error, file=sys.stderr)
        return EXIT_NO_CLUSTER
    except KeyboardInterrupt:
        return EXIT_BY_SIGNAL + signal.SIGINT


def parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    usual = ClusterSpec()
    size = argparse.ArgumentParser(add_help=False)
    meanings = {
        "nodes": "how many nodes",
        "cpus": "CPUs of each node",
        "memory_mb": "memory of each node, in MB",
        "gpus": "GPUs of each node",
    }
    for name, meaning in meanings.items():
        option, default = f"--{name.replace('_', '-')}", getattr(usual, name)
        size.add_argument(
            option, type=int, default=default, metavar="N", help=f"{meaning} ({default})"
        )
    size.add_argument(
        "--no-accounting", dest="accounting", action="store_false", help="no sacct; starts faster"
    )
    parser = argparse.ArgumentParser(prog="python -m tests.slurm", description=__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    actions.add_parser("shell", parents=[size], help="open $SHELL with the cluster around it")
    run = actions.add_parser("run", parents=[size], help="run one command and pass its exit code")
    run.add_argument("command", nargs="+", metavar="COMMAND", help="after `--`")
    return parser.parse_args(arguments)


def describe(cluster: SlurmCluster) -> str:
    spec = cluster.spec
    per_node = f"{spec.cpus} CPUs, {spec.memory_mb} MB and {spec.gpus} GPUs each"
    return (
        f"A Slurm of your own: {spec.nodes} nodes with {per_node}; `high` preempts `main`.\n"
        f"{cluster.run('sinfo').stdout}"
        f"Logs: {cluster.folder}/log. Leave the shell (exit or Ctrl-D) and all of it is gone."
    )


def shell_of(cluster: SlurmCluster) -> tuple[list[str], dict[str, str]]:
    """The person's own shell, with a prompt that says where they are if that is easy."""
    shell = os.environ.get("SHELL") or "/bin/sh"
    env = {**cluster.env, "PS1": f"{PROMPT}$ "}
    if Path(shell).name != "bash":
        return [shell], env
    # An interactive bash takes its prompt from its startup file, so it gets one that adds to it.
    startup = cluster.folder / "bashrc"
    startup.write_text(f'[ -f ~/.bashrc ] && . ~/.bashrc\nPS1="{PROMPT}$PS1"\n')
    return [shell, "--rcfile", str(startup)], env


def run_in_foreground(command: Sequence[str], env: dict[str, str]) -> int:
    """Run a command on this terminal and return its exit code as a shell would."""
    # Ctrl-C is for the command; ignoring it outright would make the command ignore it, too.
    previous = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        code = subprocess.run(command, env=env, check=False).returncode
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)
        return EXIT_NO_COMMAND
    finally:
        signal.signal(signal.SIGINT, previous)
    return code if code >= 0 else EXIT_BY_SIGNAL - code


if __name__ == "__main__":
    sys.exit(main())
