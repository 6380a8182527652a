"""Make what is published: a wheel with the built page, and the sources.

    .venv/bin/python scripts/release.py             into dist/
    .venv/bin/python scripts/release.py --to DIR

The version has one place, src/runyard/version.py. A release has a heading in CHANGELOG.md; one of
the form 1.2.dev3 needs none.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = "runyard/dashboard/static/index.html"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--to", type=Path, default=ROOT / "dist")
    parser.add_argument("--final", action="store_true", help="refuse what the changelog lacks")
    args = parser.parse_args()
    version = re.search(
        r'^__version__ = "(.+)"', (ROOT / "src/runyard/version.py").read_text(), re.M
    )
    assert version is not None
    if args.final and f"\n## [{version[1]}]" not in (ROOT / "CHANGELOG.md").read_text():
        sys.exit(f"CHANGELOG.md has no heading for {version[1]}")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", args.to, "-t", "wheel", "-t", "sdist"],
        cwd=ROOT,
        env={**os.environ, "RUNYARD_PAGE": "required"},
        check=True,
    )
    wheel = args.to / f"runyard-{version[1]}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
    if PAGE not in names:
        sys.exit(f"{wheel.name} has no {PAGE}")
    if odd := [name for name in names if name.endswith((".pyc", ".map"))]:
        sys.exit(f"{wheel.name} has {', '.join(odd)}")
    print(f"{wheel}: {wheel.stat().st_size / 1e6:.1f} MB, {len(names)} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
