"""Find the server of a state folder, or start it.

One server a state folder, whatever happens: the server holds a lock for its life, and a command
holds another while it starts one, so ten commands that find none start one between them. Where the
locks of two machines do not meet, the server's heartbeat says that it lives (`owners.py`).
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from runyard.client.api import Api
from runyard.client.http import Connection, Impostor, Unreachable
from runyard.client.server_jobs import ServerJobs, read_server_jobs
from runyard.client.server_process import is_ours, spawn
from runyard.errors import NotFoundError, ServerError
from runyard.home import Discovery, Home, prepare, read_discovery, using
from runyard.locks import FolderLock
from runyard.owners import Claim, heartbeat_seconds, owner_elsewhere, read_claim
from runyard.port_holder import end_holder
from runyard.proof import LOOPBACK

# A cold start on a slow network file system was seen to take this long in the worst case.
START_SECONDS = 60.0
_ANSWER_SECONDS = 5.0
# A server that was told to stop finishes what it was asked before; it gives itself 5 s. One on a
# busy login node may take a while to answer.
_SILENCE_SECONDS = 20.0


def find_server(home: Home) -> Api | None:
    """The running server, or None."""
    try:
        return _ask(home)
    except (ServerError, NotFoundError, LookupError, TypeError):
        return None


def _ask(home: Home) -> Api | None:
    """The server of the folder, if it lives and answers; raises where another program does."""
    discovery = read_discovery(home)
    if discovery is None or not discovery.running or not _may_live(discovery, home):
        return None
    api = connect(discovery, timeout=_ANSWER_SECONDS)
    try:
        reported = api.health()["home"]
    finally:
        api.close()
    return connect(discovery) if _same(reported, home) else None


def connect(discovery: Discovery, timeout: float = 30.0) -> Api:
    return Api(Connection(discovery.url, discovery.key, discovery.authority, timeout=timeout))


@dataclass(frozen=True)
class Found:
    """A server that answers; whether this call started it, and what is worth telling of that."""

    api: Api
    started: bool = False
    note: str | None = None


def ensure_server(home: Home) -> Found:
    """The running server; starts it where none runs."""
    api = find_server(home)
    return Found(api) if api is not None else start_server(home)


def start_server(
    home: Home, *, listen: str | None = None, port: int | None = None, options: Sequence[str] = ()
) -> Found:
    """Start the server in the background, unless another command does so first.

    `options`: more words for `python -m runyard.server`.
    """
    prepare(home)
    with _alone(home):
        begun = time.monotonic()
        while True:
            api = find_server(home)
            if api is not None:
                return Found(api)
            end = begun + (START_SECONDS if _is_starting(home) else _SILENCE_SECONDS)
            jobs = read_server_jobs(home)
            if jobs is None and not is_locked(home):
                try:
                    return _start(home, listen, port, options)
                except ServerError:
                    # Another server may have begun in this very moment: then it is asked.
                    if not is_locked(home) or time.monotonic() >= end:
                        raise
            # It does not answer, but may just be on its way out: `runyard server stop`.
            if time.monotonic() >= end or _is_out_of_reach(home):
                raise _silent_server(home) if jobs is None else _waiting_job(home, jobs)
            time.sleep(0.05)


def restart_server(
    home: Home,
    *,
    listen: str | None = None,
    port: int | None = None,
    force: bool = False,
    options: Sequence[str] = (),
) -> Found:
    """Stop the server if it runs, and start it before any other command can, where it is asked."""
    prepare(home)
    with _alone(home):
        stop_server(home, force=force, keep_port=True)
        return _start(home, listen, port, options)


def open_to_nodes(home: Home, listen: str) -> Found:
    """The server, reachable from other machines: one that listens to this one alone moves.

    It keeps port and key, and goes on listening here: programs that were logging find it again.
    """
    server = ensure_server(home)
    discovery = read_discovery(home)
    if discovery is None or discovery.listen not in LOOPBACK:
        return server
    if discovery.hostname != socket.gethostname():
        raise _silent_server(home)
    server.api.close()
    return restart_server(home, listen=listen)


def take_over(home: Home, seconds: float) -> Claim | None:
    """End the server, wherever it runs, so that the one that calls can be it.

    The claim that is left, if a server on another machine died without an orderly end.
    """
    end = time.monotonic() + seconds
    while True:
        claim = read_claim(home)
        if not is_held(home):
            return claim
        with contextlib.suppress(ServerError):
            stop_server(home)
        if time.monotonic() >= end:
            raise _silent_server(home)
        time.sleep(0.2)


def stop_server(home: Home, *, force: bool = False, keep_port: bool = False) -> bool:
    """End the server and wait until it has let go of the folder. Says whether one was running.

    `keep_port`: it is started again at once, and nobody else gets its port.
    """
    discovery = read_discovery(home)
    was_running = _end_server(home, discovery, force=force, keep_port=keep_port)
    if discovery is not None and not keep_port:
        end_holder(home, discovery.key)  # Of a server that was killed.
    return was_running


def _end_server(home: Home, discovery: Discovery | None, *, force: bool, keep_port: bool) -> bool:
    api = find_server(home)
    if api is None and not is_held(home):
        return False
    if api is not None:
        api.stop_server(keep_port=keep_port)
        api.close()
        if _wait_released(home, 15.0):
            return True
    if force and discovery is not None and is_ours(discovery, home):
        os.kill(discovery.pid, signal.SIGKILL)
        if _wait_released(home, 5.0):
            return True
    raise _silent_server(home)


@contextlib.contextmanager
def _alone(home: Home) -> Iterator[None]:
    """While no other command starts the server."""
    with using(home), FolderLock(home.start_lock) as lock:
        if not lock.acquire(START_SECONDS):
            raise ServerError(
                f"another command has been starting the server of {home.path} for "
                f"{START_SECONDS:.0f} s",
                mend=f"look at {home.log}, end that command, then try again",
            )
        yield


def _start(home: Home, listen: str | None, port: int | None, options: Sequence[str]) -> Found:
    report = spawn(home, listen, port, options, START_SECONDS)
    if "owner" in report:
        return _meet_owner(home)
    discovery = read_discovery(home)
    if discovery is None:
        raise ServerError(f"the server wrote no {home.discovery}", mend=f"look at {home.log}")
    return Found(connect(discovery), started=True, note=report.get("note"))


def _meet_owner(home: Home) -> Found:
    """The server that owns the folder on another machine; it may still be starting there."""
    end = time.monotonic() + START_SECONDS
    while (claim := read_claim(home)) is not None and time.monotonic() < end:
        discovery = read_discovery(home)
        if discovery is not None and claim.is_of(discovery):
            break
        time.sleep(0.05)
    api = find_server(home)
    if api is None:
        raise _silent_server(home)
    return Found(api)


def is_locked(home: Home) -> bool:
    """Whether a live server holds the folder, as far as file locks tell."""
    if not home.path.is_dir():
        return False
    with using(home):
        return not FolderLock(home.server_lock).is_free()


def is_held(home: Home, *, beats: float | None = None) -> bool:
    """Whether a live server, here or on another machine, holds the folder.

    Where locks do not tell, this waits for the owner's heartbeat: for as many `beats`, or until
    it is certain.
    """
    seconds = None if beats is None else beats * heartbeat_seconds()
    with using(home):
        return is_locked(home) or owner_elsewhere(home, seconds) is not None


def _is_out_of_reach(home: Home) -> bool:
    """Whether the server is on another machine and listens there only: waiting does not help."""
    discovery = read_discovery(home)
    elsewhere = discovery is not None and discovery.hostname != socket.gethostname()
    return discovery is not None and elsewhere and discovery.listen in LOOPBACK


def _is_starting(home: Home) -> bool:
    """Whether the server that holds the folder has not said yet where it is.

    The command that started it may be gone: then nobody else waits for its report.
    """
    discovery = read_discovery(home)
    if discovery is None:
        return is_locked(home)
    return (
        discovery.hostname == socket.gethostname()
        and not is_ours(discovery, home)
        and is_locked(home)
    )


def _may_live(discovery: Discovery, home: Home) -> bool:
    """Whether it is worth asking at the address; who answers there has to prove itself anyway."""
    if discovery.hostname != socket.gethostname():
        return discovery.listen not in LOOPBACK
    return is_locked(home)


def _wait_released(home: Home, seconds: float) -> bool:
    end = time.monotonic() + seconds
    with using(home), FolderLock(home.server_lock) as lock:
        if not lock.acquire(seconds):
            return False
        # A server of another machine, whose lock we may not see, takes its claim away at its end.
        while (claim := read_claim(home)) is not None and not claim.is_of_this_machine:
            if time.monotonic() >= end:
                return False
            time.sleep(0.05)
    return True


def _silent_server(home: Home) -> Unreachable:
    discovery = read_discovery(home)
    here = socket.gethostname()
    with contextlib.suppress(ServerError, NotFoundError, LookupError, TypeError):
        try:
            _ask(home)
        except Impostor as error:
            return error
    if discovery is None:
        return Unreachable(
            f"a server holds {home.path} but has not said where it is",
            mend=f"wait a moment and try again; else look at {home.log}",
        )
    if discovery.hostname != here:
        local = discovery.listen in LOOPBACK
        reach = (
            f"it listens on that machine only: there, `runyard server restart --listen cluster`, "
            f"or type this command on {discovery.hostname}"
        )
        return Unreachable(
            f"the server of {home.path} runs on {discovery.hostname} and does not answer {here} "
            f"at {discovery.url}",
            mend=reach if local else f"check that {here} reaches {discovery.url}",
        )
    return Unreachable(
        f"the server (process {discovery.pid}) holds {home.path} but does not answer "
        f"at {discovery.url}",
        mend=f"look at {home.log}; `runyard server stop --force` ends it; nothing stored is lost",
    )


def _waiting_job(home: Home, jobs: ServerJobs) -> Unreachable:
    return Unreachable(
        f"the server of {home.path} is a Slurm job, and none of its jobs serves at the moment "
        f"({jobs.said()})",
        mend=f"`runyard server status` shows whether one waits, logs are in {jobs.folder}; "
        "`runyard server submit` submits new ones, `runyard server stop` forgets them, so that it "
        "starts here",
    )


def _same(path: str, home: Home) -> bool:
    try:
        return Path(path).samefile(home.path)
    except OSError:
        return False
