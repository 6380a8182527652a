"""Reads files that people write, as text or as one mapping; one error lists all mistakes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from runyard.errors import ConfigError
from runyard.reading.documents import Document, DocumentError, read_document
from runyard.reading.problems import Path as Place
from runyard.reading.problems import Problem, kind_of


def read_mapping(
    path: Path,
    name: str,
    *,
    noun: str,
    mend: str,
    title: str | None = None,
    largest: int | None = None,
    typed: Sequence[Place] = (),
    part: Callable[[str], str] | None = None,
) -> Document:
    """The document in a file, which is a mapping or empty; ConfigError calls the file `name`.

    `noun` and `mend` describe what it should be. `part` chooses the lines to read. `typed` is that
    of `read_document`.
    """
    try:
        content = path.read_bytes()
        if largest is not None and len(content) > largest:
            raise ConfigError(
                f"{name} is larger than {largest >> 10} KiB",
                mend="is it the right file? Long lists belong into files of their own",
            )
        text = content.decode("utf-8-sig")
        document = read_document(part(text) if part else text, clocks=True, typed=typed)
    except OSError as error:
        raise ConfigError(f"{title or name} cannot be read", said=error.strerror) from None
    except UnicodeDecodeError:
        raise ConfigError(f"{name} is no UTF-8 text", mend="save it as UTF-8") from None
    except DocumentError as error:
        raise ConfigError(error.text_with_place(name), mend=error.mend) from None
    if document.data is not None and not isinstance(document.data, Mapping):
        raise ConfigError(f"{name} is {kind_of(document.data)}, and no {noun}", mend=mend)
    return document


def refusal(name: str, problems: Sequence[Problem], where: Callable[[Problem], str]) -> ConfigError:
    """One mistake alone; for several, a line each with the place from `where`."""
    if len(problems) == 1:
        (problem,) = problems
        return ConfigError(f"{where(problem)}: {problem.message}", mend=problem.mend)
    lines = "".join(f"\n  {line}" for line in listed_problems(problems, where))
    return ConfigError(f"{name} has {len(problems)} mistakes:{lines}")


def listed_problems(problems: Sequence[Problem], where: Callable[[Problem], str]) -> list[str]:
    return [f"{where(problem)}: {problem.message}; {problem.mend}" for problem in problems]
