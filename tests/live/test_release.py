"""What is published, as a stranger gets it: a wheel in an empty environment, without Node."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from runyard.home import Home
from tests.environments import Missing, pip_install, skip_or_fail

pytestmark = pytest.mark.live

ROOT = Path(__file__).parents[2]


def test_the_wheel_alone_runs_the_quickstart(state_folder: Home, tmp_path: Path) -> None:
    made = tmp_path / "dist"
    script = [sys.executable, str(ROOT / "scripts" / "release.py"), "--to", str(made)]
    subprocess.run(script, check=True, capture_output=True)
    (wheel,) = made.glob("*.whl")
    environment = tmp_path / "empty"
    venv.create(environment, symlinks=True, with_pip=False)
    try:
        pip_install(environment / "bin" / "python", "the wheel", [f"{wheel}[example]"])
    except Missing as missing:
        skip_or_fail(str(missing))
    shutil.copytree(ROOT / "examples" / "spirals", tmp_path / "spirals")
    # Nothing of this checkout, and no Node: the environment's programs and the system's.
    around = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    around["PATH"] = f"{environment / 'bin'}:/usr/bin:/bin"

    def typed(*words: str) -> str:
        return subprocess.run(
            words, env=around, cwd=tmp_path, check=True, capture_output=True, text=True, timeout=300
        ).stdout

    assert typed("runyard", "--version").split()[1] in wheel.name
    typed("runyard", "sweep", "spirals/sweep.yaml", "-j", "2", "--run-cap", "2", "--no-check")
    assert typed("runyard", "show", "--best").count("\n") >= 3
    page = (
        "import urllib.request as u; from runyard.home import *; "
        "asked = u.Request(read_discovery(locate()).url, headers={'Accept': 'text/html'}); "
        "print(u.urlopen(asked).read().decode())"
    )
    assert "<script" in typed("python", "-c", page)
    typed("runyard", "server", "stop")
