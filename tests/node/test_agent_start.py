"""What an agent brings in when it starts: five hundred may do so at once, from one file system."""

from __future__ import annotations

import subprocess
import sys

from runyard.actions.sweeping.agent_process import agent_command
from runyard.actions.sweeping.slots import Slots

HEAVY = (
    "argparse", "asyncio", "dataclasses", "email", "http", "logging", "numpy", "pathlib",
    "ssl", "subprocess", "tempfile", "threading", "typing", "urllib",
)  # fmt: skip
MOST_FILES = 60


def test_it_starts_with_few_files() -> None:
    command = agent_command(1, slots=Slots(), folder=".", control=0, quiet=True)
    place = command.index("-c") + 1
    begin, end = command[place].split("sys.exit(main())")
    ask = "print(*sys.modules.items(), sep='\\n')"
    done = subprocess.run(
        [*command[:place], f"{begin}{ask}{end}"], capture_output=True, text=True, check=True
    )
    modules = dict(line[2:].split("', ", 1) for line in done.stdout.splitlines() if line)
    assert not [name for name in HEAVY if name in modules]
    files = [name for name, told in modules.items() if " from '" in told]
    # The interpreter itself opens a dozen more before it reads its first line.
    assert len(files) + 12 <= MOST_FILES, sorted(files)


def test_it_is_told_what_it_does_not_understand() -> None:
    for words in (["--sweep"], ["--sweeps", "1"], []):
        done = subprocess.run(
            [sys.executable, "-m", "runyard.node.agent", *words],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 1
        assert "--sweep" in done.stderr
