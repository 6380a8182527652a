"""Run W&B's own system tests against this server, and print a score by group.

    git clone https://github.com/wandb/wandb && git -C wandb checkout v0.28.2
    .venv/bin/python scripts/wandb_system_tests.py wandb                       # all of them
    .venv/bin/python scripts/wandb_system_tests.py wandb --group test_core     # a group
    .venv/bin/python scripts/wandb_system_tests.py wandb test_core/test_resume.py -- -k rewind

Nothing of theirs is kept here or changed there: their `tests` folder is copied beside a stand-in
for their server tool, into a temporary folder. The client is the release of the checkout's version
from the package registry (`--client` names another one), in an environment of its own below
`.cache`. A group is a folder of their tests; each has a fresh server, and its result is kept below
`.cache` too. `--write-docs` writes the results of all groups, from now and from before, into
docs/wandb-compatibility.md.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

from tests.environments import CACHE, Missing, ensure, pip_install  # noqa: E402
from tests.wandb_clients.page import put_section  # noqa: E402
from wandb_reasons import NOT_BUILT, REASONS  # noqa: E402

# What their tests import besides what their own list of test requirements names.
_MORE = (
    "bokeh", "boto3", "filelock", "google-cloud-storage", "ipykernel", "kubernetes-asyncio",
    "matplotlib", "moviepy", "nbclient", "nbconvert", "pillow", "plotly", "polars", "pyarrow",
    "soundfile", "tenacity", "tensorboard", "tqdm",
)  # fmt: skip
# What some of them need, and not every machine can have. Their tests are skipped without it.
_EXTRAS = (
    "torch==2.13.0+cpu" if sys.platform == "linux" else "torch==2.13.0", "sweeps", "catboost",
    "dspy", "jax", "jupyter_server", "keras", "lightning", "metaflow", "stable-baselines3",
    "tensorboardX", "tensorflow", "xgboost",
)  # fmt: skip
_HOME = CACHE / "wandb-system-tests"


@dataclass
class Score:
    """How one file of theirs went."""

    passed: int = 0
    skipped: int = 0
    failed: dict[str, str] = field(default_factory=dict)  # test → reason


Scores = dict[str, Score]


def main() -> int:
    args, for_pytest = _arguments()
    client = args.client or read_version(args.checkout)
    results = _HOME / "results" / client
    if args.files:
        print("\n".join(describe(run(args.checkout, client, args.files, args, for_pytest))))
        return 0
    for group in args.group or groups(args.checkout):
        scores = run(args.checkout, client, [group], args, for_pytest)
        print("\n".join(describe(scores)), flush=True)
        write_result(results, group, scores)
    if args.write_docs:
        put_section(f"system tests {client}", table(client, read_results(results)))
    return 0


def _arguments() -> tuple[argparse.Namespace, list[str]]:
    words = sys.argv[1:]
    split = words.index("--") if "--" in words else len(words)
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkout", type=Path, help="a checkout of wandb's repository")
    parser.add_argument("files", nargs="*", help="below tests/system_tests; no result is kept")
    parser.add_argument("--group", action="append", help="a folder of their tests (default: all)")
    parser.add_argument("--client", help="release of the client (default: the checkout's)")
    parser.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--log", type=Path, default=Path(os.devnull), help="keep pytest's words")
    parser.add_argument("--write-docs", action="store_true", help="write the score into docs/")
    return parser.parse_args(words[:split]), words[split + 1 :]


def read_version(checkout: Path) -> str:
    """The release of the checkout."""
    text = (checkout / "wandb" / "__init__.py").read_text()
    match = re.search(r'^__version__ = "([^"]+)"', text, re.MULTILINE)
    if match is None:
        raise SystemExit(f"{checkout} is no checkout of wandb's repository")
    if "dev" in match[1]:
        raise SystemExit(
            f"{checkout} is at {match[1]}, which is no release\n"
            f"  try:  --client 0.… (a release that is no older), or\n"
            f"        git -C {checkout} tag, then check out the newest v0.…"
        )
    return match[1]


def groups(checkout: Path) -> list[str]:
    """The folders of their tests, and what lies beside them."""
    place = checkout / "tests" / "system_tests"
    return sorted(path.name for path in place.glob("test_*"))


def run(
    checkout: Path,
    client: str,
    files: Sequence[str],
    args: argparse.Namespace,
    for_pytest: Sequence[str],
) -> Scores:
    """Run tests of theirs against a fresh server."""
    python = ensure_environment(checkout, client)
    with tempfile.TemporaryDirectory(prefix="runyard-system-tests-") as folder:
        place = lay_out(checkout, Path(folder))
        with stand_in(Path(folder) / "state") as ports:
            answer_for_their_tool(place, ports)
            report = Path(folder) / "report.xml"
            words = ["-n", str(args.workers), *for_pytest]
            run_pytest(python, place, files, report, args.log, words)
        return read_report(report)


def ensure_environment(checkout: Path, version: str) -> Path:
    """A Python with that release and what its tests need."""
    # Their own note: newer ones break tests of theirs.
    wanted = [f"wandb=={version}", "click!=8.4.0,!=8.4.1,!=8.4.2", *_MORE]

    def install(python: Path) -> None:
        print(f"installing wandb {version} and what its tests need (minutes)", flush=True)
        requirements = checkout / "requirements" / "requirements_test.txt"
        pip_install(python, f"wandb {version}", [*wanted, "-r", str(requirements)])
        for extra in _EXTRAS:
            try:
                pip_install(python, extra, [extra])
            except Missing as missing:
                print(f"{missing}; tests that need it are skipped, or fail for it", flush=True)

    return ensure(_HOME / version, [*wanted, *_EXTRAS], install)


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
    # Theirs is a minute, which a busy machine needs for an import.
    words = ["-q", "-p", "no:cacheprovider", f"--junitxml={report}", "--timeout=180"]
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


def read_report(report: Path) -> Scores:
    """Scores by file."""
    scores: Scores = {}
    for case in ElementTree.parse(report).iter("testcase"):  # noqa: S314 (pytest wrote it)
        name, place = case.get("name", "?"), case.get("classname", "")
        # A file that could not be imported has only a name.
        place = (place or name).removeprefix("tests.system_tests.")
        score = scores.setdefault(place, Score())
        trouble = case.find("failure")
        if trouble is None:
            trouble = case.find("error")
        if trouble is not None:
            score.failed[name] = REASONS.get(name.partition("[")[0]) or _reason(trouble)
        elif case.find("skipped") is not None:
            score.skipped += 1
        else:
            score.passed += 1
    return dict(sorted(scores.items()))


def _reason(trouble: ElementTree.Element) -> str:
    message = (trouble.get("message") or "").strip()
    if message == "collection failure":
        message = ((trouble.text or "").strip().splitlines() or [message])[-1].lstrip("E ")
    lines = (message or trouble.text or "?").strip().splitlines()
    text = " ".join(line.strip() for line in lines[:3])[:300]
    # Addresses and the tests' users differ from run to run.
    text = re.sub(r"0x[0-9a-f]{6,}", "0x…", text)
    return re.sub(r"\b(user|team|org)([_-]\w+)-[0-9a-z]{12,40}\b", r"\1\2-…", text)


def write_result(results: Path, group: str, scores: Scores) -> None:
    results.mkdir(parents=True, exist_ok=True)
    text = json.dumps({place: asdict(score) for place, score in scores.items()}, indent=1)
    (results / f"{group}.json").write_text(text)


def read_results(results: Path) -> dict[str, Scores]:
    """Scores by group, as far as the groups were run."""
    return {
        path.stem: {name: Score(**score) for name, score in json.loads(path.read_text()).items()}
        for path in sorted(results.glob("*.json"))
    }


def describe(scores: Scores) -> list[str]:
    lines = []
    for place, score in scores.items():
        count = score.passed + len(score.failed)
        lines.append(f"{place:<40} {score.passed:>4} of {count}, {score.skipped} skipped")
        lines += [f"    {test}: {reason}" for test, reason in score.failed.items()]
    passed, count, _ = total(scores)
    return [*lines, f"{'together':<40} {passed:>4} of {count}"]


def total(scores: Scores) -> tuple[int, int, int]:
    """How many passed, of how many, and how many were skipped."""
    passed = sum(score.passed for score in scores.values())
    failed = sum(len(score.failed) for score in scores.values())
    return passed, passed + failed, sum(score.skipped for score in scores.values())


def table(client: str, results: dict[str, Scores]) -> str:
    """The score as a section of the page."""
    totals = {group: total(scores) for group, scores in results.items()}
    passed, count = _sum(totals[group] for group in totals if group not in NOT_BUILT)
    all_passed, all_count = _sum(totals.values())
    lines = [
        f"With the client's release {client}: **{passed} of {count}** pass outside of what is not "
        f"built ({_names(NOT_BUILT)}), {all_passed} of {all_count} in all.",
        "",
        "| group | passed | of | skipped by itself |",
        "| --- | ---: | ---: | ---: |",
    ]
    notes = []
    for group, scores in results.items():
        passed, count, skipped = totals[group]
        lines.append(f"| `{group}` | {passed} | {count} | {skipped} |")
        if group in NOT_BUILT:
            notes.append(f"- `{group}`: {NOT_BUILT[group]}")
            continue
        for place, score in scores.items():
            notes += [f"- `{place}::{test}`: {reason}" for test, reason in score.failed.items()]
    if notes:
        lines += ["", "What fails, in the test's own words or ours:", "", *notes]
    return "\n".join(lines)


def _sum(totals: Iterable[tuple[int, int, int]]) -> tuple[int, int]:
    known = list(totals)
    return sum(passed for passed, _, _ in known), sum(count for _, count, _ in known)


def _names(group_reasons: dict[str, str]) -> str:
    return ", ".join(f"`{group}`" for group in group_reasons)


if __name__ == "__main__":
    sys.exit(main())
