"""Run the tests with other Pythons, or with the lowest packages that pyproject.toml allows.

    .venv/bin/python scripts/other_versions.py                every Python from 3.10 on
    .venv/bin/python scripts/other_versions.py 3.12           one
    .venv/bin/python scripts/other_versions.py --lowest 3.10  dependencies at their lower bounds
    .venv/bin/python scripts/other_versions.py 3.13 -- -k words tests/server

uv makes the environments, in .cache/versions. A Python that this machine does not have is passed
over with a line. Without words behind `--`, the parts that depend on Python and packages run; what
needs Slurm, a browser, torch or other wandb clients is left to ./test.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
KEPT = ROOT / ".cache" / "versions"
VERSIONS = ("3.10", "3.11", "3.12", "3.13")
EXTRAS = ("example", "export", "plots", "tls")
TOOLS = ("pytest", "pytest-xdist", "hypothesis", "jsonschema", "plotly", "hatchling", "uv")
PARTS = tuple(
    f"tests/{room}"
    for room in (
        "reading", "config", "clusters", "launch", "search", "client", "node", "server", "report",
        "cli",
    )
)  # fmt: skip
LEFT_OUT = "not slurm and not clients and not frameworks"


def main() -> int:
    words, rest = sys.argv[1:], list[str]()
    if "--" in words:
        words, rest = words[: words.index("--")], words[words.index("--") + 1 :]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("versions", nargs="*", metavar="VERSION", help="such as 3.12")
    parser.add_argument("--lowest", action="store_true", help="dependencies at their lower bounds")
    args = parser.parse_args(words)
    outcomes: dict[str, str] = {}
    for version in args.versions or VERSIONS:
        python = find_python(version)
        if python is None:
            outcomes[version] = "not on this machine"
            continue
        name = f"lowest-{version}" if args.lowest else version
        environment = make_environment(KEPT / name, python, lowest=args.lowest)
        code = run_tests(environment, rest or ["-m", LEFT_OUT, *PARTS])
        outcomes[version] = "passed" if code == 0 else f"failed (exit code {code})"
    for version, outcome in outcomes.items():
        print(f"Python {version}{', lowest packages' * args.lowest}: {outcome}")
    return any(outcome.startswith("failed") for outcome in outcomes.values())


def find_python(version: str) -> Path | None:
    """On the path, of pyenv, or of uv; one that is only a name for another is passed over."""
    named = shutil.which(f"python{version}")
    found = [Path(named)] if named else []
    for folder in (".pyenv/versions", ".local/share/uv/python"):
        found += sorted((Path.home() / folder).glob(f"*{version}.*/bin/python3"))
    for python in found:
        words = [str(python), "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        asked = subprocess.run(words, capture_output=True, text=True, check=False)
        if asked.returncode == 0 and asked.stdout.strip() == version:
            return python
    return None


def make_environment(folder: Path, python: Path, *, lowest: bool) -> Path:
    """An environment with what runyard needs, without runyard, which is run from its sources."""
    uv = str(Path(sys.executable).with_name("uv"))
    print(f"== {folder.relative_to(ROOT)}, with {python}", flush=True)
    subprocess.run(
        [uv, "venv", "--quiet", "--clear", "--python", str(python), str(folder)], check=True
    )
    install = [uv, "pip", "install", "--quiet", "--python", str(folder / "bin" / "python")]
    how = ["--resolution", "lowest-direct"] if lowest else []
    extras = [word for extra in EXTRAS for word in ("--extra", extra)]
    subprocess.run([*install, *how, "-r", "pyproject.toml", *extras], cwd=ROOT, check=True)
    # The tools in their newest versions, beside what was chosen before.
    subprocess.run([*install, *TOOLS], check=True)
    return folder


def run_tests(environment: Path, words: list[str]) -> int:
    surroundings = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "src"),
        "PATH": f"{environment / 'bin'}:{os.environ['PATH']}",
    }
    # Without CI, what cannot run here is skipped and says why.
    surroundings.pop("CI", None)
    command = [str(environment / "bin" / "python"), "-m", "pytest", "-p", "no:cacheprovider", "-q"]
    return subprocess.run([*command, *words], cwd=ROOT, env=surroundings, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
