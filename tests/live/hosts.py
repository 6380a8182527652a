"""Two machines that share a folder and nothing else: no locks, no process, one network cable.

Each has a network, a name and mounts of its own (Linux namespaces). The shared folder is mounted by
bindfs on each, so that each kernel mount keeps its own table of locks, as Lustre's `localflock` or
NFS's `local_lock` do.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.conftest import wait_until
from tests.packages import require

_SET_UP = """
mount --make-rprivate / && hostname "$1" && ip link set lo up &&
exec bindfs -f -o subtype=bindfs "$2" "$3"
"""


class Host:
    """One of the machines. `run` types a command on it."""

    def __init__(self, name: str, address: str, keeper: subprocess.Popen[bytes]) -> None:
        self.name = name
        self.address = address
        self.pid = keeper.pid

    def start(self, *words: str, cwd: Path) -> subprocess.Popen[str]:
        command = ["nsenter", "-t", str(self.pid), "-n", "-u", "-m", *words]
        return subprocess.Popen(
            command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def run(self, *words: str, cwd: Path) -> tuple[int, str]:
        """Exit code and output of a command that was typed on this machine."""
        process = self.start(*words, cwd=cwd)
        output, _ = process.communicate(timeout=60)
        return process.returncode, output

    def start_runyard(self, *words: str, cwd: Path) -> subprocess.Popen[str]:
        return self.start(sys.executable, "-m", "runyard", *words, cwd=cwd)

    def runyard(self, *words: str, cwd: Path) -> tuple[int, str]:
        return self.run(sys.executable, "-m", "runyard", *words, cwd=cwd)

    def set_network(self, state: str) -> None:
        code, output = self.run("ip", "link", "set", "cable", state, cwd=Path("/"))
        assert code == 0, output


@contextlib.contextmanager
def two_hosts(folder: Path) -> Iterator[tuple[Host, Host, Path]]:
    """Two machines, and the folder that both see at the same path."""
    require("bindfs", "fuse3", "iproute2")
    behind, shared = folder / "behind", folder / "shared"
    behind.mkdir()
    shared.mkdir()
    with contextlib.ExitStack() as running:
        hosts = [
            running.enter_context(_host(name, f"10.77.0.{number}", behind, shared))
            for number, name in enumerate(("alpha", "beta"), start=1)
        ]
        alpha, beta = hosts
        cable = ["ip", "link", "add", "cable", "netns", str(alpha.pid), "type", "veth",
                 "peer", "name", "cable", "netns", str(beta.pid)]  # fmt: skip
        subprocess.run(cable, check=True)
        for host in hosts:
            code, output = host.run(
                "ip", "addr", "add", f"{host.address}/24", "dev", "cable", cwd=folder
            )
            assert code == 0, output
            host.set_network("up")
        yield alpha, beta, shared


@contextlib.contextmanager
def _host(name: str, address: str, behind: Path, shared: Path) -> Iterator[Host]:
    words = ["unshare", "--net", "--uts", "--mount", "sh", "-c", _SET_UP, "host", name]
    keeper = subprocess.Popen([*words, str(behind), str(shared)])
    try:
        mounts = Path(f"/proc/{keeper.pid}/mounts")
        wait_until(lambda: "fuse.bindfs" in mounts.read_text())
        yield Host(name, address, keeper)
    finally:
        # As root of another mount namespace, it is ended and its mount goes with it.
        keeper.send_signal(signal.SIGTERM)
        keeper.wait()


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
