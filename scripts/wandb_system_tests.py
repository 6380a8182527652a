"""Run W&B's own system tests against this server, and print a score.

    git clone https://github.com/wandb/wandb && git -C wandb checkout v0.28.2
    .venv/bin/python scripts/wandb_system_tests.py wandb             # the files that count
    .venv/bin/python scripts/wandb_system_tests.py wandb test_core/test_resume.py -- -k rewind

Nothing of theirs is kept here or changed there: their `tests` folder is copied beside a stand-in
for their server tool, into a temporary folder. The client is the release of the checkout's version
from the package registry, in an environment of its own below `.cache`. `--write-docs` writes the
score into docs/wandb-compatibility.md.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.wandb_clients.page import put_section  # noqa: E402

# What runs of a single user are made of; the score that the documentation shows.
THAT_COUNT = (
    *(
        f"test_core/test_{name}.py"
        for name in (
            "metric_full", "wandb_run", "label_full", "wandb_settings", "mode_disabled_full",
            "file_stream", "wandb_init", "wandb_init_reinit", "wandb_setup", "resume_auto",
            "telemetry_full", "wandb_login", "time_resolution", "resume", "offline_sync",
            "offline_sync_beta", "public_api",
        )
    ),
    "test_api",
    "test_artifacts",
)  # fmt: skip
# Why a test of theirs fails here, where its own words do not tell.
_NEEDS_THE_INTERNET = "it fetches a file from W&B's own store on the internet"
_REASONS = {
    "test_reference_download": _NEEDS_THE_INTERNET,
    "test_wandb_artifact_config_update": _NEEDS_THE_INTERNET,
    "test_wandb_artifact_config_set_item": _NEEDS_THE_INTERNET,
    "test_wandb_artifact_init_config": _NEEDS_THE_INTERNET,
    "test_storage_policy_storage_region_not_available": "it wants a region of W&B's cloud refused; "
    "here regions mean nothing, and any is taken",
    "test_syncs_resumed_run": "it looks at the numbers with which the client sends its rows, and "
    "wants those of a server that appends to an id that is used again; what is stored in the end "
    "is the three rows that it wants",
}
# What their tests import besides what their own list of test requirements names.
_MORE = (
    "bokeh", "filelock", "google-cloud-storage", "matplotlib", "moviepy", "pillow", "plotly",
    "polars", "pyarrow", "tenacity", "tensorboard",
)  # fmt: skip


@dataclass
class Score:
    """How one file of theirs went."""

    passed: int = 0
    skipped: int = 0
    failed: dict[str, str] = field(default_factory=dict)  # test → reason


def main() -> int:
    args, for_pytest = _arguments()
    version = read_version(args.checkout)
    python = ensure_environment(args.checkout, version)
    with tempfile.TemporaryDirectory(prefix="runyard-system-tests-") as folder:
        place = lay_out(args.checkout, Path(folder))
        with stand_in(Path(folder) / "state") as ports:
            answer_for_their_tool(place, ports)
            report = Path(folder) / "report.xml"
            words = ["-n", str(args.workers), *for_pytest]
            run_pytest(python, place, args.files, report, args.log, words)
        scores = read_report(report)
    print("\n".join(describe(scores)))
    if args.write_docs:
        put_section("system tests", table(version, scores))
    return 0


def _arguments() -> tuple[argparse.Namespace, list[str]]:
    words = sys.argv[1:]
    split = words.index("--") if "--" in words else len(words)
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkout", type=Path, help="a checkout of wandb's repository")
    parser.add_argument(
        "files",
        nargs="*",
        default=THAT_COUNT,
        help="below tests/system_tests (default: the score's)",
    )
    parser.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--log", type=Path, default=Path(os.devnull), help="keep pytest's words")
    parser.add_argument("--write-docs", action="store_true", help="write the score into docs/")
    return parser.parse_args(words[:split]), words[split + 1 :]


def read_version(checkout: Path) -> str:
    """The release of the checkout."""
    text = (checkout / "wandb" / "__init__.py").read_text()
    found = re.search(r'^__version__ = "([^"]+)"', text, re.MULTILINE)
    if found is None:
        raise SystemExit(f"{checkout} is no checkout of wandb's repository")
    if "dev" in found[1]:
        raise SystemExit(
            f"{checkout} is at {found[1]}, which is no release\n"
            f"  try:  git -C {checkout} tag, then check out the newest v0.…"
        )
    return found[1]


def ensure_environment(checkout: Path, version: str) -> Path:
    """A Python with that release and what its tests need."""
    folder = ROOT / ".cache" / "wandb-system-tests" / version
    python, stamp = folder / "bin" / "python", folder / "installed"
    if not stamp.exists():
        print(f"installing wandb {version} and what its tests need (minutes)", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, symlinks=True, with_pip=False)
        theirs = checkout / "requirements" / "requirements_test.txt"
        pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
        # Their own note: newer ones break tests of theirs.
        click = "click!=8.4.0,!=8.4.1,!=8.4.2"
        subprocess.run([*pip, f"wandb=={version}", "-r", theirs, click, *_MORE], check=True)
        stamp.touch()
    return python


def lay_out(checkout: Path, folder: Path) -> Path:
    """Their tests alone: beside their sources, `import wandb` would find those, without a core."""
    place = folder / "wandb"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(checkout / "tests", place / "tests", ignore=ignored)
    shutil.copy(checkout / "pyproject.toml", place)
    return place


@contextmanager
def stand_in(state: Path) -> Iterator[str]:
    """Our server and the service beside it; gives the line that tells their ports."""
    command = [sys.executable, str(Path(__file__).with_name("wandb_stand_in.py")), str(state)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        ports = process.stdout.readline()
        if not ports:
            raise SystemExit("the server did not start; its own message is above")
        try:
            yield ports
        finally:
            process.communicate("")


def answer_for_their_tool(place: Path, ports: str) -> None:
    """Their fixtures ask this program where the server is."""
    (place / "tools").mkdir()
    (place / "tools" / "local_wandb_server.py").write_text(f"print({ports.strip()!r})\n")


def run_pytest(
    python: Path, place: Path, files: Sequence[str], report: Path, log: Path, more: list[str]
) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WANDB_")}
    kept.pop("PYTHONPATH", None)
    kept.pop("CI", None)
    words = ["-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
    paths = [f"tests/system_tests/{name}" for name in files]
    done = subprocess.run(
        [str(python), "-m", "pytest", *words, *more, *paths],
        cwd=place,
        env={**kept, "PATH": f"{python.parent}{os.pathsep}{kept['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    log.write_bytes(done.stdout)
    if not report.exists():
        raise SystemExit(done.stdout.decode(errors="replace")[-3000:])


def read_report(report: Path) -> dict[str, Score]:
    """Scores by file."""
    scores: dict[str, Score] = {}
    for case in ElementTree.parse(report).iter("testcase"):  # noqa: S314 (pytest wrote it)
        place = case.get("classname", "").removeprefix("tests.system_tests.")
        score = scores.setdefault(place, Score())
        trouble = case.find("failure")
        if trouble is None:
            trouble = case.find("error")
        if trouble is not None:
            name = case.get("name", "?")
            score.failed[name] = _REASONS.get(name) or _reason(trouble)
        elif case.find("skipped") is not None:
            score.skipped += 1
        else:
            score.passed += 1
    return dict(sorted(scores.items()))


def _reason(trouble: ElementTree.Element) -> str:
    lines = (trouble.get("message") or trouble.text or "?").strip().splitlines()
    return " ".join(line.strip() for line in lines[:3])[:300]


def describe(scores: dict[str, Score]) -> list[str]:
    lines = []
    for place, score in scores.items():
        count = score.passed + len(score.failed)
        lines.append(f"{place:<40} {score.passed:>4} of {count}, {score.skipped} skipped")
        lines += [f"    {test}: {reason}" for test, reason in score.failed.items()]
    passed, count = total(scores)
    return [*lines, f"{'together':<40} {passed:>4} of {count}"]


def total(scores: dict[str, Score]) -> tuple[int, int]:
    passed = sum(score.passed for score in scores.values())
    return passed, passed + sum(len(score.failed) for score in scores.values())


def table(version: str, scores: dict[str, Score]) -> str:
    """The score as a section of the page."""
    passed, count = total(scores)
    lines = [
        f"W&B's own tests of its client, release {version}: **{passed} of {count}** pass.",
        "",
        "| file | passed | of | skipped by itself |",
        "| --- | ---: | ---: | ---: |",
    ]
    notes = []
    for place, score in scores.items():
        count = score.passed + len(score.failed)
        lines.append(f"| `{place}` | {score.passed} | {count} | {score.skipped} |")
        notes += [f"- `{place}::{test}`: {reason}" for test, reason in score.failed.items()]
    if notes:
        lines += ["", "What fails, in the test's own words or ours:", "", *notes]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
