"""A real image of a container, of a few folders, for tests with Charliecloud and Apptainer.

It has next to nothing of its own: the host's /usr and Python are mounted into it, which says as
much of mounts as an image from a registry, and needs no network.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.packages import require


def make_image(root: Path) -> Path:
    """The image's folder; installs Charliecloud where that is possible."""
    require("charliecloud")
    return make_folders(root)


def make_folders(root: Path) -> Path:
    """What an image consists of."""
    for name in ("dev", "proc", "sys", "tmp", "etc", "usr", "ch"):
        (root / name).mkdir(parents=True)
    for name in ("bin", "lib", "lib64", "sbin"):
        target = Path("/") / name
        if target.is_symlink():
            (root / name).symlink_to(target.readlink())
    for name in ("passwd", "group", "hosts", "resolv.conf"):
        (root / "etc" / name).touch()
    (root / "ch" / "environment").write_text("FROM_IMAGE=yes\n")
    (root / "in-the-image").write_text("yes")
    return root


def host_mounts() -> tuple[str, ...]:
    real = [f"/{name}" for name in ("bin", "lib", "lib64") if not Path(f"/{name}").is_symlink()]
    folders = ["/usr", *(one for one in real if Path(one).is_dir()), sys.base_prefix, sys.prefix]
    return tuple(dict.fromkeys(folders))
