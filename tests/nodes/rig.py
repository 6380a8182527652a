"""A Slurm whose nodes are nodes: network, name, processes, /tmp and /dev of each are its own.

    with Rig(Plan(nodes=2)) as rig:
        rig.run("login", "srun", "-N2", "hostname")
        with rig.cut_off("n1"): ...

Hosts are `controller`, the login nodes (`login`, `login2`) and `n1`, `n2`, ...: Linux namespaces,
joined by a bridge that nothing else is on. `home`, everybody's HOME, is the only folder they write
in common; with `locks="near"` a lock holds on one host only, as with Lustre's `localflock`. Control
groups are used where this machine lets us (version 1): GPUs of other jobs cannot be opened.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from tests.packages import ensure_packages, search_path, slurm_packages
from tests.slurm.daemon import ClusterError
from tests.slurm.releases import shared_folders

from .config import Plan, has_control_groups, write_files

_START_SECONDS = 120.0
_LOOK_EVERY = 0.05
_PROCESS_1 = Path(__file__).with_name("host.sh")
_CLOCK = Path(__file__).with_name("shifted_clock.c")
_GROUPS = Path("/sys/fs/cgroup")
_CONTROLLERS = ("cpuset", "cpu", "cpuacct", "memory", "devices", "freezer", "pids")
# Each host has these of its own.
_NOT_SHARED = ("/dev", "/sys", "/tmp")
_NAMESPACES = ("--mount", "--propagation=private", "--net", "--uts", "--ipc", "--pid", "--cgroup")


class Rig:
    """Runs from entering its context to leaving it."""

    def __init__(self, plan: Plan | None = None) -> None:
        self.plan = plan or Plan()
        self.folder = Path()
        self._undo = contextlib.ExitStack()
        self._switch = 0
        self._hosts: dict[str, subprocess.Popen[bytes]] = {}
        self._groups: dict[str, list[Path]] = {}

    def __enter__(self) -> Rig:
        ensure_packages(*slurm_packages(accounting=False), "bindfs", "fuse3", "iproute2", "procps")
        try:
            self._start()
        except BaseException:
            self._undo.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._undo.close()

    @property
    def home(self) -> Path:
        """The common folder, as hosts name it."""
        return self.folder / "home"

    @property
    def disk(self) -> Path:
        """The same from this machine."""
        return self.folder / "disk"

    @property
    def nodes(self) -> list[str]:
        return [name for name in self.plan.hosts if name.startswith("n")]

    def start(
        self,
        host: str,
        *words: str,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        output: int = subprocess.PIPE,
    ) -> subprocess.Popen[str]:
        """A command on a host, in the common folder unless `cwd` says another one."""
        enter = ["nsenter", "-t", str(self.pid(host)), "-m", "-n", "-u", "-i", "-p"]
        own = {"HOME": str(self.home), "PATH": search_path(), "LANG": "C.UTF-8", **(env or {})}
        return subprocess.Popen(
            [*enter, f"--wdns={cwd or self.home}", *words],
            env=own, stdin=subprocess.DEVNULL,
            stdout=output, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def run(
        self,
        host: str,
        *words: str,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        check: bool = True,
        timeout: float = 180,
    ) -> str:
        """What a command on a host printed; with `check`, its exit code has to be 0."""
        code, output = self.ask(host, *words, cwd=cwd, env=env, timeout=timeout)
        if check and code:
            raise ClusterError(f"{' '.join(words)} on {host} ended with {code}:\n{output}")
        return output

    def ask(
        self,
        host: str,
        *words: str,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float = 180,
    ) -> tuple[int, str]:
        """Exit code and output."""
        process = self.start(host, *words, cwd=cwd, env=env)
        output, _ = process.communicate(timeout=timeout)
        return process.returncode, output

    def pid(self, host: str) -> int:
        """Process 1 of a host, as this machine counts."""
        outer = self._hosts[host].pid
        return int(Path(f"/proc/{outer}/task/{outer}/children").read_text().split()[0])

    @contextlib.contextmanager
    def cut_off(self, *hosts: str, files: bool = False) -> Iterator[None]:
        """Without network; with `files` the common folder hangs too, as a network mount does.
        Afterwards all is as before."""
        for host in hosts:
            self.set_cable(host, "down")
            if files:
                self.run(host, "pkill", "-STOP", "-x", "bindfs", cwd=Path("/"))
        try:
            yield
        finally:
            for host in hosts:
                if files:
                    self.run(host, "pkill", "-CONT", "-x", "bindfs", cwd=Path("/"))
                self.set_cable(host, "up")

    def set_cable(self, host: str, state: str) -> None:
        self._on_switch("ip", "link", "set", f"to-{host}", state)

    def slow_down(self, host: str, rate: str) -> None:
        """So much a second from the host to the others, e.g. 200kbit."""
        limit = ("rate", rate, "burst", "16kb", "latency", "2s")
        self.run(host, "tc", "qdisc", "replace", "dev", "eth0", "root", "tbf", *limit)

    @contextlib.contextmanager
    def refuse(self, host: str, *sources: str) -> Iterator[None]:
        """Connections that begin at the sources do not reach the host, as behind a firewall; those
        that begin at the host go on."""

        def change(action: str) -> None:
            for source in sources:
                rule = ("-p", "tcp", "--syn", "-s", self.plan.hosts[source], "-j", "DROP")
                self.run(host, "iptables", action, "INPUT", *rule)

        change("-A")
        try:
            yield
        finally:
            change("-D")

    def set_clock(self, host: str, seconds: int) -> None:
        """What Python's programs that begin on a host from now on believe that the time is, against
        the other hosts. Linux has no time of day of a namespace."""
        library = self.folder / "etc" / f"clock-{host}.so"
        words = ("-shared", "-fPIC", f"-DOFFSET={seconds}", str(_CLOCK), "-o", str(library), "-ldl")
        subprocess.run(["cc", *words], check=True)
        where = f"/etc/slurm/{library.name}"
        self.run(host, "sh", "-c", f"echo {where} >/etc/ld.so.preload")

    def power_off(self, host: str) -> None:
        """At once, as a power cut does."""
        outer = self._hosts.pop(host)
        outer.kill()
        outer.wait()
        self._on_switch("ip", "link", "del", f"to-{host}", check=False)
        for name in ("up", "waits"):
            (self.folder / "run" / f"{host}.{name}").unlink(missing_ok=True)
        self._remove_groups(host)

    def power_on(self, host: str) -> None:
        self._boot(host)
        self._wait_until_up(host)

    def wait_for_nodes(self, count: int | None = None, states: str = "idle,mix,alloc") -> None:
        wanted = self.plan.nodes if count is None else count

        def are_there() -> bool:
            shown = self.run("login", "sinfo", "-h", "-r", "-t", states, "-o", "%D", check=False)
            return sum(int(word) for word in shown.split() if word.isdecimal()) >= wanted

        _wait_for(are_there, self.folder / "log" / "slurmctld")

    def _start(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="nodes-"))
        self._undo.callback(shutil.rmtree, self.folder, ignore_errors=True)
        for name in ("disk", "home", "etc", "log", "run", "state"):
            (self.folder / name).mkdir()
        write_files(self.plan, self.folder)
        switch = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        self._undo.callback(_end, switch)
        self._switch = switch.pid
        network = Path("/proc/self/ns/net").readlink()
        _wait_for(lambda: Path(f"/proc/{switch.pid}/ns/net").readlink() != network)
        self._on_switch("ip", "link", "add", "bridge", "type", "bridge")
        self._on_switch("ip", "link", "set", "bridge", "up")
        self._undo.callback(self._stop_all)
        for host in self.plan.hosts:
            self._boot(host)
        for host in self.plan.hosts:
            self._wait_until_up(host)
        self.wait_for_nodes()

    def _wait_until_up(self, host: str) -> None:
        _wait_for((self.folder / "run" / f"{host}.up").exists, self._log(host))

    def _stop_all(self) -> None:
        for host in list(self._hosts):
            self.power_off(host)

    def _boot(self, host: str) -> None:
        controllers = self._make_groups(host)
        settings = {
            **os.environ,
            "PATH": search_path(),
            "NAME": host,
            "ADDRESS": self.plan.hosts[host],
            "RIG": str(self.folder),
            "SYSTEM": str(self.plan.system),
            "SHARED": " ".join(_shared()),
            "GPUS": str(self.plan.gpus if host.startswith("n") else 0),
            "LOCKS": self.plan.locks,
            "CONTROL": " ".join(controllers),
        }
        enter = "".join(f"echo $$ >{group}/cgroup.procs; " for group in self._groups[host])
        words = f'{enter}exec unshare {" ".join(_NAMESPACES)} --fork --kill-child sh "$0"'
        with self._log(host).open("ab") as log:
            self._hosts[host] = subprocess.Popen(
                ["sh", "-c", words, str(_PROCESS_1)],
                env=settings, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip
        waits = self.folder / "run" / f"{host}.waits"
        _wait_for(waits.exists, self._log(host))
        near, far = (f"to-{host}", str(self.pid(host)))
        self._on_switch(
            "ip", "link", "add", near, "type", "veth", "peer", "name", "eth0", "netns", far
        )
        self._on_switch("ip", "link", "set", near, "master", "bridge", "up")
        waits.unlink()

    def _make_groups(self, host: str) -> list[str]:
        """A control group of its own for each controller; none where they cannot be made."""
        self._groups[host] = []
        if not has_control_groups():
            return []
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controller, place = line.split(":", 2)
            if controller not in _CONTROLLERS:
                continue
            group = _GROUPS / controller / place.strip("/") / f"{self.folder.name}-{host}"
            group.mkdir()
            self._groups[host].append(group)
            for name in ("cpuset.cpus", "cpuset.mems") if controller == "cpuset" else ():
                (group / name).write_text((group.parent / name).read_text())
        return [controller for controller in _CONTROLLERS if (_GROUPS / controller).is_dir()]

    def _remove_groups(self, host: str) -> None:
        deadline = time.monotonic() + 5
        for group in self._groups.pop(host, []):
            while group.exists() and time.monotonic() < deadline:
                for folder, _, _ in os.walk(group, topdown=False):
                    with contextlib.suppress(OSError):
                        Path(folder).rmdir()
                time.sleep(_LOOK_EVERY)

    def _on_switch(self, *words: str, check: bool = True) -> None:
        command = ["nsenter", "-t", str(self._switch), "-n", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if check and done.returncode:
            raise ClusterError(f"{' '.join(words)}: {done.stderr}")

    def _log(self, host: str) -> Path:
        return self.folder / "log" / f"{host}.boot"


def _shared() -> list[str]:
    """This machine's folders that every host sees; a checkout below one that it does not, too."""
    folders = [folder for folder in shared_folders() if folder not in _NOT_SHARED]
    checkout = Path(__file__).parents[2]
    is_seen = any(checkout.is_relative_to(folder) for folder in folders)
    return folders if is_seen else [*folders, str(checkout)]


def _wait_for(is_so: Callable[[], object], log: Path | None = None) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not is_so():
        if time.monotonic() > deadline:
            words = log.read_text(errors="replace")[-2000:] if log and log.exists() else ""
            raise ClusterError(f"the rig is not ready after {_START_SECONDS:.0f} s\n{words}")
        time.sleep(_LOOK_EVERY)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
