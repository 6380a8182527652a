"""Small files, and a large one, to the disks of two nodes: runyard's staging against `cp -r`.

    python -m benchmarks.staging [FILES [MILLISECONDS]]

Both read the same files from the same file system, in the same run, and both nodes at once: two
processes on this machine. The file system is this machine's own disk, and a real network file
system: sshfs, with a server on this machine to which each request takes a millisecond
(`far_away.c`), or as many as are given. An idle Lustre or NFS answers in less, a busy one in more.
It is mounted anew for each way, so that nobody profits from what another has read. Later jobs find
the archive. The nodes' folders are in memory where that is to be had: this machine's disk is not
what is measured.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from runyard.node.data.staging import fill, prepare

_EACH = 4096
_LARGE = 256 << 20
_NODES = 2
_ROUNDS = 1
_SFTP_SERVERS = ("/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server")

Way = Callable[[Path, list[Path], str], None]


def copy(scratch: Path, nodes: list[Path], what: str) -> None:
    """`cp -r` on both nodes at once, as scripts do it."""
    copies = [subprocess.Popen(["cp", "-r", scratch / what, node]) for node in nodes]
    for one in copies:
        if one.wait():
            raise SystemExit("cp failed")


def stage(scratch: Path, nodes: list[Path], what: str) -> None:
    """As a job's stewards do it: the first looks and packs, then all unpack at once."""
    name = prepare(scratch, nodes[0], [what])
    processes = []
    for node in nodes:
        pid = os.fork()
        if not pid:
            fill(scratch, node, name)
            os._exit(0)
        processes.append(pid)
    for pid in processes:
        if os.waitpid(pid, 0)[1]:
            raise SystemExit("staging failed")


def first(scratch: Path, nodes: list[Path], what: str) -> None:
    shutil.rmtree(scratch / ".runyard", ignore_errors=True)
    stage(scratch, nodes, what)


WAYS: dict[str, Way] = {"cp -r": copy, "first job": first, "later jobs": stage}


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    trip = float(sys.argv[2]) if len(sys.argv) > 2 else 1.0
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory() as name, tempfile.TemporaryDirectory(dir=memory) as disk:
        source, place = Path(name) / "source", Path(name) / "scratch"
        make(source, count)
        print(
            f"{count} files of {_EACH} bytes, and one of {_LARGE >> 20} MiB, to {_NODES} nodes; "
            f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.0f}; median of {_ROUNDS}"
        )
        place.mkdir()
        compare("from this machine's disk", lambda: contextlib.nullcontext(source), Path(disk))
        if not can_mount():
            print("sshfs or cc is not here: not measured over a network file system")
            return
        compare(
            f"over sshfs, {trip} ms a round trip",
            lambda: mounted(source, place, trip),
            Path(disk),
        )


def make(source: Path, count: int) -> None:
    for number in range(count):
        file = source / "small" / f"{number % 100}" / f"{number}.bin"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(os.urandom(_EACH))
    with (source / "large").open("wb") as large:
        for _ in range(_LARGE >> 20):
            large.write(os.urandom(1 << 20))


def compare(
    where: str, open_source: Callable[[], contextlib.AbstractContextManager[Path]], folder: Path
) -> None:
    for what in ("small", "large"):
        took: dict[str, list[float]] = {way: [] for way in WAYS}
        for _ in range(_ROUNDS):
            for way, bring in WAYS.items():
                nodes = [folder / f"node{number}" for number in range(_NODES)]
                for node in nodes:
                    node.mkdir()
                with open_source() as scratch:
                    began = time.perf_counter()
                    bring(scratch, nodes, what)
                    took[way].append(time.perf_counter() - began)
                for node in nodes:
                    shutil.rmtree(node)
        usual = {way: statistics.median(times) for way, times in took.items()}
        told = ", ".join(
            f"{way} {seconds:.2f} s"
            + (f" ({usual['cp -r'] / seconds:.1f} times as fast)" if way != "cp -r" else "")
            for way, seconds in usual.items()
        )
        print(f"{what} {where}: {told}", flush=True)


@contextlib.contextmanager
def mounted(source: Path, place: Path, milliseconds: float) -> Iterator[Path]:
    """The folder, over sshfs, with a server to which a request takes this long."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "far_away"
        text = Path(__file__).with_name("far_away.c")
        subprocess.run(["cc", "-O2", "-o", program, text], check=True)
        ours, theirs = socket.socketpair()
        late = [str(program), str(int(1000 * milliseconds)), sftp_server() or ""]
        server = subprocess.Popen(late, stdin=ours.fileno(), stdout=ours.fileno())
        words = ["sshfs", "-f", "-o", "passive", f"there:{source}", str(place)]
        mount = subprocess.Popen(words, stdin=theirs.fileno(), stdout=theirs.fileno())
        ours.close()
        theirs.close()
        while not place.is_mount():
            if mount.poll() is not None:
                raise SystemExit("sshfs could not mount")
            time.sleep(0.01)
        try:
            yield place
        finally:
            # A server that was stopped has files open for a moment longer.
            unmount = ["fusermount3", "-u", str(place)]
            while subprocess.run(unmount, stderr=subprocess.DEVNULL).returncode:
                time.sleep(0.2)
            mount.wait()
            server.wait()


def can_mount() -> bool:
    return bool(sftp_server() and shutil.which("sshfs") and shutil.which("cc"))


def sftp_server() -> str | None:
    return next((one for one in _SFTP_SERVERS if os.access(one, os.X_OK)), None)


if __name__ == "__main__":
    main()
