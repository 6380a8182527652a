"""The files a cluster's daemons need before they start, all in the cluster's own folder."""

from __future__ import annotations

import secrets
import tempfile
from pathlib import Path

from tests.packages import search_path

from .config import ClusterSite, ClusterSpec, gres_conf, resume_script, slurm_conf, slurmdbd_conf

MUNGE_KEY_BYTES = 128
# The path of a Unix socket has 107 characters at most, and a job step's takes 55 after this.
LONGEST_PARENT = 50


def make_folder() -> Path:
    """A new private folder with a short path."""
    parent = Path(tempfile.gettempdir()).resolve()
    if len(str(parent)) > LONGEST_PARENT:
        parent = Path("/tmp")
    return Path(tempfile.mkdtemp(prefix="slurm-", dir=parent))


def write_files(spec: ClusterSpec, site: ClusterSite) -> None:
    for folder in (site.logs, site.state, site.spool, site.work, site.gpu_devices):
        folder.mkdir()
    _write_private(site.munge_key, secrets.token_bytes(MUNGE_KEY_BYTES))
    _write_private(site.folder / "slurm.conf", slurm_conf(spec, site).encode())
    _write_private(site.folder / "gres.conf", gres_conf(spec, site).encode())
    if spec.accounting:
        _write_private(site.folder / "slurmdbd.conf", slurmdbd_conf(site).encode())
        site.database_made.write_text("create database if not exists slurm_acct_db;\n")
    if spec.elastic:
        _write_private(site.resume_program, resume_script(site, search_path()).encode())
        site.resume_program.chmod(0o700)
    for number in range(spec.gpus * len(spec.gpu_types)):
        # Slurm insists on a character device and never opens it. A link to one needs no root.
        (site.gpu_devices / f"gpu{number}").symlink_to("/dev/null")


def _write_private(path: Path, content: bytes) -> None:
    # slurmdbd and munged refuse files that others may read.
    path.touch(mode=0o600)
    path.write_bytes(content)
