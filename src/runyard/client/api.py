"""The server's own API, typed."""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO

from runyard.client.artifacts import ArtifactsApi
from runyard.client.figures import FiguresApi
from runyard.client.http import Connection
from runyard.client.jobs import JobsApi
from runyard.client.people import PeopleApi
from runyard.client.sweeps import SweepApi
from runyard.client.trash import TrashApi
from runyard.errors import ServerError
from runyard.shapes.people import LoginCode
from runyard.shapes.projects import Project
from runyard.shapes.runs import (
    ArchiveDetail,
    Console,
    Health,
    Lines,
    NewRun,
    Received,
    Record,
    Run,
    RunDetail,
    Series,
)


class Api:
    """Every call of the server's own API."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.artifacts = ArtifactsApi(connection)
        self.figures = FiguresApi(connection)
        self.jobs = JobsApi(connection)
        self.people = PeopleApi(connection)
        self.sweeps = SweepApi(connection)
        self.trash = TrashApi(connection)

    @property
    def url(self) -> str:
        return self._connection.url

    def close(self) -> None:
        """Close the connection; the next call opens it again."""
        self._connection.close()

    def health(self) -> Health:
        return self._connection.get("/api/health")

    def login_code(self) -> LoginCode:
        return self._connection.post("/api/login/codes")

    def stop_server(self, *, keep_port: bool = False) -> None:
        """`keep_port`: the next server is started at once, and nobody else gets its port."""
        self._connection.post("/api/server/stop", keep_port=1 if keep_port else None)

    def backup(self, path: str, progress: Callable[[int, int], None]) -> int:
        """Have the server copy its state folder there, on its machine; the copy's size.

        `progress` hears once a second how many bytes are copied, of how many.
        """
        for line in self._connection.post_for_lines("/api/server/backup", {"path": path}):
            if "copied" in line:
                progress(line["copied"], line["total"])
            elif "error" in line:
                raise ServerError(
                    f"the state folder could not be copied to {path}",
                    said=line["error"],
                    mend="nothing of the copy is left: free space there or name another folder",
                )
            else:
                return line["bytes"]
        raise ServerError(f"the copy to {path} broke off", mend="repeat the command")

    def projects(self) -> list[Project]:
        """The one with the latest activity first."""
        return self._connection.get("/api/projects")["projects"]

    def runs(
        self,
        *,
        project: str | None = None,
        state: str | None = None,
        limit: int | None = None,
        alone: bool = False,
        sweep: int | None = None,
    ) -> list[Run]:
        """The newest first; with `alone`, those that are no trial of a sweep; with `sweep`, its
        trials, which may be in other projects."""
        return self._connection.get(
            "/api/runs", project=project, state=state, limit=limit, alone=1 if alone else None,
            sweep=sweep,
        )  # fmt: skip

    def run(self, name: str) -> RunDetail:
        """A run by its id, the beginning of its id, its name, or PROJECT/any of these."""
        return self._connection.get("/api/run", name=name)

    def metrics(self, run: Run, points: int) -> list[Series]:
        path = f"/api/runs/{run['key']}/metrics"
        return self._connection.get(path, points=points)

    def archives(self, run: Run) -> list[ArchiveDetail]:
        """What was put aside when the run was begun anew or rewound."""
        return self._connection.get(f"/api/runs/{run['key']}/archives")

    def rows(
        self,
        run: Run,
        *,
        stream: str = "history",
        metrics: Sequence[str] = (),
        archive: int = 0,
    ) -> Iterator[dict[str, Any]]:
        """What a run logged, or an archive of it, row by row; `_row` is the row's number."""
        start = 0
        while True:
            page = self._connection.get_bytes(
                f"/api/runs/{run['key']}/rows",
                stream=stream,
                start=start,
                metric=list(metrics),
                archive=archive,
            )
            rows = [json.loads(line) for line in page.splitlines()]
            if not rows:
                return
            yield from rows
            start = rows[-1]["_row"] + 1

    def console(self, run: Run, after: int = 0, wait: float = 0) -> Console:
        """The console from byte `after` on; waits up to `wait` seconds for something new."""
        return self._connection.get(f"/api/runs/{run['key']}/console", after=after, wait=wait)

    def record(self, run: Run) -> Record:
        return self._connection.get(f"/api/runs/{run['key']}/record")

    def lines(self, run: Run, stream: str, after: int) -> Lines:
        """Lines of `history`, `events` or `output` from `after` on, up to some limit or a gap."""
        return self._connection.get(f"/api/runs/{run['key']}/lines/{stream}", after=after)

    def download(self, run: Run, name: str, into: BinaryIO) -> int:
        """Copy one of a run's files; returns its size."""
        place = (run["entity"], run["project"], run["id"])
        parts = [urllib.parse.quote(part, safe="") for part in place]
        return self._connection.download(
            f"/files/{'/'.join(parts)}/{urllib.parse.quote(name)}", into
        )

    def create_run(self, new: NewRun) -> Run:
        return self._connection.post("/api/runs", new)

    def begin_attempt(self, run: Run, host: str, pid: int, token: str) -> int:
        """Announce an execution; `token` makes a repeated call the same call."""
        answer = self._connection.post(
            f"/api/runs/{run['key']}/attempts", {"host": host, "pid": pid, "token": token}
        )
        return answer["number"]

    def send_console(self, run: Run, attempt: int, offset: int, data: bytes) -> Received:
        """Store console bytes; also a sign of life."""
        return self._connection.post(
            f"/api/runs/{run['key']}/attempts/{attempt}/console", data, offset=offset
        )

    def delete_run(self, run: Run, *, with_artifacts: bool = False, now: bool = False) -> None:
        """To the trash (`trash.py`); with `now`, for good."""
        query: dict[str, object] = {"artifacts": int(with_artifacts), "now": int(now)}
        self._connection.request("DELETE", f"/api/runs/{run['key']}", query=query)

    def stop_run(self, run: Run) -> Run:
        """Ask a run to stop; it does so in its own time."""
        return self._connection.post(f"/api/runs/{run['key']}/stop")

    def end_attempt(self, run: Run, attempt: int, exit_code: int, ended_at: float) -> Run:
        """`exit_code` as Python tells it: negative for the signal that ended the program."""
        return self._connection.post(
            f"/api/runs/{run['key']}/attempts/{attempt}/end",
            {"exit_code": exit_code, "ended_at": ended_at},
        )
