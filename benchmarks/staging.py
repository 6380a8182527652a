"""Small files, and a large one, to the disks of two nodes: runyard's staging against `cp -r`.

    python -m benchmarks.staging [FILES]

Both read the same files from the same file system, in the same run, and both nodes at once: two
processes on this machine. The file system is one of this machine's disk, and a real network file
system (sshfs, where it is installed) in whose way a round trip takes half a millisecond, as it does
with a cluster's: an idle Lustre or NFS answers about as fast, a busy one slower. It is mounted anew
for each way, so that nobody profits from what another has read. Later jobs find the archive. The
nodes' folders are in memory where that is to be had: this machine's disk is not what is measured.
"""

from __future__ import annotations

import contextlib
import os
import queue
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from runyard.node.staging import fill, prepare

_EACH = 4096
_LARGE = 256 << 20
_NODES = 2
_ROUNDS = 1
_ROUND_TRIP = 0.0005
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
        server = next((one for one in _SFTP_SERVERS if os.access(one, os.X_OK)), None)
        if server is None or shutil.which("sshfs") is None:
            print("no sshfs here: not measured over a network file system")
            return
        compare(
            f"over sshfs, {1000 * _ROUND_TRIP} ms a round trip",
            lambda: mounted(server, source, place),
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
def mounted(server: str, source: Path, place: Path) -> Iterator[Path]:
    """The folder, over sshfs, with a server whose answers take their time."""
    ours, theirs = socket.socketpair()
    serving = subprocess.Popen([server], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    words = ["sshfs", "-f", "-o", "passive", f"there:{source}", str(place)]
    mount = subprocess.Popen(words, stdin=theirs.fileno(), stdout=theirs.fileno())
    theirs.close()
    threading.Thread(target=_pass_on_late, args=(ours, serving), daemon=True).start()
    threading.Thread(target=_pass_back, args=(serving, ours), daemon=True).start()
    while not place.is_mount():
        if mount.poll() is not None:
            raise SystemExit("sshfs could not mount")
        time.sleep(0.01)
    try:
        yield place
    finally:
        subprocess.run(["fusermount3", "-u", str(place)], check=True)
        mount.wait()
        ours.close()
        serving.kill()
        serving.wait()


def _pass_on_late(ours: socket.socket, serving: subprocess.Popen[bytes]) -> None:
    """Requests arrive later, however many are under way at once."""
    waiting: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()

    def deliver() -> None:
        assert serving.stdin is not None
        while True:
            due, part = waiting.get()
            time.sleep(max(0.0, due - time.monotonic()))
            with contextlib.suppress(OSError, ValueError):
                serving.stdin.write(part)
                serving.stdin.flush()
            if not part:
                return

    threading.Thread(target=deliver, daemon=True).start()
    while True:
        try:
            part = ours.recv(1 << 16)
        except OSError:
            part = b""
        waiting.put((time.monotonic() + _ROUND_TRIP, part))
        if not part:
            return


def _pass_back(serving: subprocess.Popen[bytes], ours: socket.socket) -> None:
    assert serving.stdout is not None
    with contextlib.suppress(OSError):
        while part := os.read(serving.stdout.fileno(), 1 << 16):
            ours.sendall(part)


if __name__ == "__main__":
    main()
