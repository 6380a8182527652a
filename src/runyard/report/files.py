"""A report in files: which form is meant, and each whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

from runyard.errors import RunyardError, UsageError
from runyard.home import written_aside
from runyard.report.drawing.shapes import Picture, stacked
from runyard.report.findings import Report

PICTURES = (".svg", ".png")
PLOTS = (
    "resources", "hours", "failures", "convergence", "front", "seeds", "importance", "slices",
)  # fmt: skip


def check_output(target: Path, plot: str | None) -> None:
    """Refuse what cannot be written, before anything is asked for."""
    suffix = target.suffix.lower()
    if suffix == ".png":
        from runyard.report.drawing.png import require_pillow

        require_pillow()
    if plot is not None and plot not in PLOTS:
        raise UsageError(f"there is no plot {plot!r}", mend=f"plots: {', '.join(PLOTS)}")
    if plot is not None and suffix not in PICTURES:
        raise UsageError(
            f"--plot is for pictures, and {target.name} is none",
            mend="end its name in .svg or .png",
        )
    if not _is_folder(target) and suffix not in (*FORMS, *PICTURES):
        raise UsageError(
            f"{target.name} does not say which form it is",
            mend=f"end its name in {', '.join((*FORMS, *PICTURES))}, or in / for a folder",
        )


def write(report: Report, target: Path, plot: str | None = None) -> Iterator[Path]:
    """Write it there; the files that were written."""
    try:
        if _is_folder(target):
            yield from _write_all(report, target)
        elif target.suffix.lower() in PICTURES:
            yield _picture(report, target, plot)
        else:
            yield _file(target, FORMS[target.suffix.lower()](report).encode())
    except OSError as error:
        raise RunyardError(
            f"{target} cannot be written", said=error.strerror, mend="name another place"
        ) from error


def _is_folder(target: Path) -> bool:
    return target.is_dir() or not target.suffix


def _write_all(report: Report, folder: Path) -> Iterator[Path]:
    """Everything; PNG where it can be had."""
    from runyard.report.drawing.png import has_pillow, png
    from runyard.report.drawing.svg import svg
    from runyard.report.forms.markdown import markdown
    from runyard.report.plots import pictures

    folder.mkdir(parents=True, exist_ok=True)
    drawn = pictures(report)
    if drawn:
        (folder / "plots").mkdir(exist_ok=True)
    for picture in drawn:
        yield _file(folder / "plots" / f"{picture.name}.svg", svg(picture).encode())
        if has_pillow():
            yield _file(folder / "plots" / f"{picture.name}.png", png(picture))
    beside = {picture.name: f"plots/{picture.name}.svg" for picture in drawn}
    for suffix, form in FORMS.items():
        content = markdown(report, beside) if suffix == ".md" else form(report)
        yield _file(folder / f"{_NAMES.get(suffix, 'report')}{suffix}", content.encode())


def _picture(report: Report, target: Path, plot: str | None) -> Path:
    from runyard.report.plots import pictures

    drawn = [picture for picture in pictures(report) if plot in (None, picture.name)]
    if not drawn:
        what = f"the plot {plot!r} of {report.title}" if plot else f"a plot of {report.title}"
        has = ", ".join(picture.name for picture in pictures(report))
        raise RunyardError(
            f"there is nothing to draw yet for {what}",
            mend=f"it has {has}" if has else "plots come with the first trials that end",
        )
    whole = drawn[0] if len(drawn) == 1 else stacked(drawn, target.stem, report.title)
    return _file(target, _as_bytes(whole, target.suffix.lower()))


def _as_bytes(picture: Picture, suffix: str) -> bytes:
    if suffix == ".png":
        from runyard.report.drawing.png import png

        return png(picture)
    from runyard.report.drawing.svg import svg

    return svg(picture).encode()


def _file(path: Path, content: bytes) -> Path:
    with written_aside(path) as file:
        file.write(content)
    return path


def _by(form: str) -> Callable[[Report], str]:
    """The function that a module of `forms` is named after, loaded when it writes."""

    def write(report: Report) -> str:
        text: str = getattr(import_module(f"runyard.report.forms.{form}"), form)(report)
        return text

    return write


def _json(report: Report) -> str:
    return json.dumps(report.to_json(), indent=2, ensure_ascii=False, default=str) + "\n"


def _csv(report: Report) -> str:
    import io

    from runyard.report.export import write_table

    out = io.StringIO()
    write_table([dict(row) for row in report.tries], out, "csv")
    return out.getvalue()


FORMS: dict[str, Callable[[Report], str]] = {
    ".html": _by("page"),
    ".md": _by("markdown"),
    ".tex": _by("latex"),
    ".csv": _csv,
    ".json": _json,
    ".txt": _by("text"),
}
_NAMES = {".csv": "trials"}
