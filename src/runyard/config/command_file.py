"""A command in a text file: lines joined, with or without `python` before it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from runyard.errors import ConfigError, NotFoundError

# Linux runs no longer line of a shell, and the time that shlex takes grows with the square.
LONGEST_LINE = 100_000
# Where a command is read from that nobody named, as older submit scripts did; both were written.
COMMAND_FILES = ("experiment_configurations.txt", "experiment_configuration.txt")


def find_command_file(folders: Sequence[Path]) -> Path | None:
    """The usual file with the command, in the first of these folders that has one."""
    places = [folder / name for folder in folders for name in COMMAND_FILES]
    return next((place for place in places if place.is_file()), None)


def read_command_file(path: Path, origins: Mapping[str, str]) -> tuple[str, ...]:
    """The command that a file holds. Continued and broken lines are joined; an older form holds
    only what follows `python`."""
    origin = origins.get("command_file", path.name)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise NotFoundError(
            f"{origin}: there is no file {path}", mend="write the command into it, or mend its name"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{origin}: {path} cannot be read", said=error) from None
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = " ".join(line.rstrip().removesuffix("\\") for line in lines)
    try:
        if len(joined) > LONGEST_LINE:
            raise ValueError(f"it is longer than {LONGEST_LINE:,} characters")
        words = shlex.split(joined)
    except ValueError as error:
        raise ConfigError(
            f"{path}: the command cannot be read",
            said=error,
            mend="close the quotation, or write a shorter one",
        ) from None
    if not words:
        raise ConfigError(f"{path} holds no command", mend="write python train.py into it")
    if words[0].endswith(".py") or words[0] in ("-m", "-c"):
        words.insert(0, "python")
    return tuple(words)
