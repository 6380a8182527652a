"""What programs find around them: the tracker's variables, and a project's environment.

  eval "$(runyard env)"                 so that wandb logs here (bash, zsh, sh)
  runyard env --shell fish | source     fish
  eval `runyard env --shell csh`        csh, tcsh
  runyard env check                     is the project's environment fit for jobs?
  runyard env build                     build it once, from the project's files
  runyard env show                      the lines and words that jobs get for it

Nothing is changed by `env` itself: it prints, and the shell sets. In Slurm jobs that runyard
submits all of it is set already.
"""

from __future__ import annotations

import argparse
import shlex

from runyard.actions.server.shell_variables import own_variables
from runyard.actions.tracking import other_server
from runyard.cli.connect import server
from runyard.cli.output import print_json, show
from runyard.cli.project_options import add_tracking, project_options
from runyard.errors import UsageError
from runyard.home import locate

SHELLS = ("sh", "bash", "zsh", "fish", "csh", "tcsh")
ACTIONS = ("build", "check", "show")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", choices=ACTIONS, metavar="ACTION",
                        help="build, check or show the project's environment (default: print "
                        "the tracker's variables)")  # fmt: skip
    parser.add_argument("--shell", choices=SHELLS, default="sh", help="whose words (default: sh)")
    add_tracking(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    from runyard.cli.admin.environment import add_environment_arguments

    add_environment_arguments(parser)


def run(args: argparse.Namespace) -> int:
    if args.action is not None:
        from runyard.cli.admin.environment import act

        return act(args)
    if args.plan is not None:
        raise UsageError("--plan is for `runyard env build`", mend="`runyard env --help`")
    variables = other_server(project_options(args), show) or own_variables(locate(), server, show)
    if args.json:
        print_json(variables)
        return 0
    for name, value in variables.items():
        print(setting(args.shell, name, value))
    return 0


def setting(shell: str, name: str, value: str) -> str:
    """The line by which a shell sets a variable for what it starts."""
    if shell == "fish":
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        return f"set -gx {name} '{escaped}';"
    if shell in ("csh", "tcsh"):
        # There, `!` and line ends keep their meaning between quotes.
        quoted = shlex.quote(value).replace("!", "\\!").replace("\n", "\\\n")
        return f"setenv {name} {quoted};"
    return f"export {name}={shlex.quote(value)}"
