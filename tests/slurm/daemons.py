"""The daemons of one cluster, run in the foreground as children of this process."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.packages import find_program

from .config import ClusterSite, ClusterSpec
from .daemon import ClusterError, Daemon, end_together

# Nothing in this database has to survive a crash, so it never waits for the disk.
DATABASE_OPTIONS = (
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-flush-method=nosync",
    "--innodb-log-file-size=8M",
    "--innodb-buffer-pool-size=64M",
)
DATABASE_TRIES = 3


class ClusterDaemons:
    """Starts the daemons in the order they need each other, and ends them in reverse."""

    def __init__(self, spec: ClusterSpec, site: ClusterSite, env: Mapping[str, str]) -> None:
        self.spec = spec
        self.site = site
        self.env = env
        # Daemons of one stage need nothing of each other, so they end together.
        self._stages: list[list[Daemon]] = []

    def __iter__(self) -> Iterator[Daemon]:
        return (daemon for stage in self._stages for daemon in stage)

    def start(self) -> None:
        """Start every daemon; only the nodes may still be on their way to the controller."""
        self._start_munge()
        if self.spec.accounting:
            self._start_accounting()
        self._start_controller()
        if not self.spec.elastic:
            self._start_nodes()

    def stop(self) -> None:
        while self._stages:
            end_together(self._stages.pop())

    def check_alive(self) -> None:
        for daemon in self:
            daemon.check_alive()

    def find(self, name: str) -> Daemon:
        return next(daemon for daemon in self if daemon.name == name)

    def start_again(self, name: str) -> None:
        """One that was killed."""
        for stage in self._stages:
            for index, daemon in enumerate(stage):
                if daemon.name == name:
                    stage[index] = daemon.again()
        if name == "slurmctld":
            self.find(name).wait_until(lambda: _answers(self.site.controller_port))

    def _start_munge(self) -> None:
        site = self.site
        daemon = self._start(
            "munged",
            "--foreground",
            # munged mistrusts a socket in a private folder; here that is what is wanted.
            "--force",
            f"--key-file={site.munge_key}",
            f"--socket={site.munge_socket}",
            f"--pid-file={site.folder}/munged.pid",
            f"--seed-file={site.folder}/munged.seed",
        )
        daemon.wait_until(lambda: _answers(site.munge_socket))

    def _start_accounting(self) -> None:
        """The database, and the daemon that asks it.

        MariaDB 10.11 was seen to die of a segmentation fault while its first tables were made.
        What Slurm does is tested here, not MariaDB: if that happens, it is set up anew.
        """
        for tries_left in reversed(range(DATABASE_TRIES)):
            database = self._start_database()
            try:
                self._start_asking_database()
            except ClusterError:
                if not tries_left or not database.has_ended():
                    raise
            else:
                return
            for _ in ("slurmdbd", "mariadbd"):
                end_together(self._stages.pop())
            shutil.rmtree(self.site.database)

    def _start_database(self) -> Daemon:
        site = self.site
        options = ["--no-defaults", f"--datadir={site.database}", *DATABASE_OPTIONS]
        # Not /tmp, where two that begin at once remove each other's tables.
        options += [f"--user={site.user}", f"--tmpdir={site.folder}"]
        prepare = [
            _program("mariadb-install-db", "mysql_install_db"),
            *options,
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
        ]
        done = subprocess.run(prepare, env=self.env, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ClusterError(f"{prepare[0]} failed:\n{done.stdout}{done.stderr}")
        daemon = self._start(
            _program("mariadbd", "mysqld"),
            *options,
            f"--socket={site.database_socket}",
            f"--pid-file={site.folder}/mysqld.pid",
            # Its root user has no password: only the socket in the private folder leads to it.
            "--skip-networking",
            # slurmdbd of 26.05 dies at its first start if it has to make its database itself.
            f"--init-file={site.database_made}",
        )
        daemon.wait_until(lambda: _answers(site.database_socket))
        return daemon

    def _start_asking_database(self) -> None:
        # slurmdbd has no setting for the database's socket, but its client library reads this.
        database = {"MYSQL_UNIX_PORT": str(self.site.database_socket)}
        daemon = self._start("slurmdbd", "-D", settings=database)
        daemon.wait_until(lambda: _answers(self.site.accounting_port))

    def _start_controller(self) -> None:
        # -i: one that was killed early starts again without the files that it writes late.
        daemon = self._start("slurmctld", "-D", "-i")
        daemon.wait_until(lambda: _answers(self.site.controller_port))

    def _start_nodes(self) -> None:
        self._stages.append([])
        for name in self.spec.node_names:
            command = [_program("slurmd"), "-D", "-N", name]
            daemon = Daemon.start(f"slurmd {name}", command, self.env, self.site.logs / name)
            self._stages[-1].append(daemon)

    def _start(
        self, program: str, *arguments: str, settings: Mapping[str, str] | None = None
    ) -> Daemon:
        """Start one daemon in a stage of its own."""
        name = Path(program).name
        command = [_program(program), *arguments]
        env = {**self.env, **(settings or {})}
        daemon = Daemon.start(name, command, env, self.site.logs / name)
        self._stages.append([daemon])
        return daemon


def _program(*names: str) -> str:
    path = find_program(*names)
    if path is None:
        raise ClusterError(f"{' or '.join(names)} is not installed")
    return path


def _answers(address: Path | int) -> bool:
    """Whether something listens on this Unix socket or this local port."""
    try:
        if isinstance(address, int):
            socket.create_connection(("127.0.0.1", address), timeout=1).close()
        else:
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(address))
    except OSError:
        return False
    return True
