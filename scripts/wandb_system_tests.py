"""Run W&B's own system tests against this server, and print a score by group.

    git clone https://github.com/wandb/wandb && git -C wandb checkout v0.28.2
    .venv/bin/python scripts/wandb_system_tests.py wandb                       # all of them
    .venv/bin/python scripts/wandb_system_tests.py wandb --group test_core     # a group
    .venv/bin/python scripts/wandb_system_tests.py wandb test_core/test_resume.py -- -k rewind

Nothing of theirs is kept here or changed there: their `tests` folder is copied beside a stand-in
for their server tool, into a temporary folder. The client is the release of the checkout's version
from the package registry (`--client` names another one), in an environment of its own below
`.cache`. A group is a folder of their tests; each has a fresh server, and its result is kept below
`.cache` too. What fails for no reason that `wandb_reasons.py` knows is run a second time: some
tests need a quiet machine, some a process in which certain others of theirs did not run.
`--write-docs` writes the results of all groups, from now and from before, into
docs/wandb-compatibility.md.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

from tests.environments import CACHE, Missing, ensure, pip_install  # noqa: E402
from tests.wandb_clients.page import put_section  # noqa: E402
from wandb_scores import (  # noqa: E402
    Scores,
    count_second_try,
    describe,
    read_report,
    read_results,
    table,
    unexplained,
    write_result,
)

# What their tests import besides what their own list of test requirements names.
_MORE = (
    "bokeh", "boto3", "filelock", "google-cloud-storage", "ipykernel", "kubernetes-asyncio",
    # torch's SummaryWriter imports moviepy.editor, which moviepy 2 has not.
    "matplotlib", "moviepy<2", "nbclient", "nbconvert", "pillow", "plotly", "polars", "pyarrow",
    "soundfile", "tenacity", "tensorboard", "tqdm",
)  # fmt: skip
# What some of them need, and not every machine can have. Their tests are skipped without it.
_EXTRAS = (
    "torch==2.13.0+cpu" if sys.platform == "linux" else "torch==2.13.0", "sweeps", "catboost",
    "dspy", "jax", "jupyter_server", "keras", "lightning", "metaflow", "stable-baselines3",
    "tensorboardX", "tensorflow", "xgboost", "cwsandbox==0.26.0",
)  # fmt: skip
_HOME = CACHE / "wandb-system-tests"


def main() -> int:
    args, for_pytest = _arguments()
    # A shell's job in the background ignores Ctrl-C, which tests of theirs send to their programs.
    signal.signal(signal.SIGINT, signal.default_int_handler)
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
        tests = written_version(args.checkout)
        put_section(f"system tests {client}", table(client, tests, read_results(results)))
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


def written_version(checkout: Path) -> str:
    """The version that the checkout's own files name."""
    text = (checkout / "wandb" / "__init__.py").read_text()
    match = re.search(r'^__version__ = "([^"]+)"', text, re.MULTILINE)
    if match is None:
        raise SystemExit(f"{checkout} is no checkout of wandb's repository")
    return match[1]


def read_version(checkout: Path) -> str:
    """The release of the checkout."""
    version = written_version(checkout)
    if "dev" in version:
        raise SystemExit(
            f"{checkout} is at {version}, which is no release\n"
            f"  try:  --client 0.… (a release that is no older), or\n"
            f"        git -C {checkout} tag, then check out the newest v0.…"
        )
    return version


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
            scores = read_report(report)
            if again := unexplained(report):
                report = Path(folder) / "second.xml"
                run_pytest(python, place, again, report, args.log, ["-n", "1", *for_pytest])
                count_second_try(scores, report)
        return scores


def ensure_environment(checkout: Path, version: str) -> Path:
    """A Python with that release and what its tests need."""
    # Their own note: newer ones break tests of theirs.
    wanted = [f"wandb=={version}", "click!=8.4.0,!=8.4.1,!=8.4.2", *_MORE]

    def install(python: Path) -> None:
        print(f"installing wandb {version} and what its tests need (minutes)", flush=True)
        requirements = checkout / "requirements" / "requirements_test.txt"
        pip_install(python, f"wandb {version}", [*wanted, "-r", str(requirements)])
        # Their notebooks name this kernel.
        kernel = ["-m", "ipykernel", "install", "--sys-prefix", "--name=wandb_python"]
        subprocess.run([str(python), *kernel], check=True, capture_output=True)
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
    # Each of their hundreds of processes would compile what it imports, some of them torch.
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    # Theirs is a minute, which a busy machine needs for an import.
    words = ["-q", "-p", "no:cacheprovider", f"--junitxml={report}", "--timeout=180"]
    paths = [f"tests/system_tests/{name}" for name in files]
    # With the file of each test, which it is named by for a second try.
    words += ["-o", "junit_family=xunit1"]
    with log.open("ab") as output:
        subprocess.run(
            [str(python), "-m", "pytest", *words, *more, *paths],
            cwd=place,
            env={**kept, "PATH": f"{python.parent}{os.pathsep}{kept['PATH']}"},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    if not report.exists():
        raise SystemExit("pytest made no report; --log FILE keeps its words")


if __name__ == "__main__":
    sys.exit(main())
