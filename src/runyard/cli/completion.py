"""Print the completion script of a shell.

  bash   echo 'eval "$(runyard completion bash)"' >> ~/.bashrc
  zsh    echo 'eval "$(runyard completion zsh)"' >> ~/.zshrc
  fish   runyard completion fish > ~/.config/fish/completions/runyard.fish

A new shell completes commands, options, and the names of runs, sweeps and clusters with Tab.
"""

from __future__ import annotations

import argparse
import os
import shlex

from runyard.cli.parser import add

SHELLS = ("bash", "zsh", "fish", "tcsh")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add(parser, "shell SHELL", "bash, zsh, fish or tcsh", choices=SHELLS)


def run(args: argparse.Namespace) -> int:
    from argcomplete.shell_integration import shellcode

    print(shellcode(["runyard"], shell=args.shell))
    return 0


def complete() -> None:
    """Answer the shell that asks, and end."""
    import argcomplete

    from runyard.cli.catalog import COMMANDS, command_of
    from runyard.cli.parser import build_parser

    line = os.environ.get("COMP_LINE", "")[: int(os.environ.get("COMP_POINT") or 10**6)]
    try:
        words = shlex.split(line)
    except ValueError:
        words = line.split()
    begin = next((place for place, word in enumerate(words) if place and word in COMMANDS), None)
    argcomplete.autocomplete(build_parser(command_of(words[begin:]) if begin else None)[0])
