"""The project's own part of an examination: its file, its folders, its server, its key."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from runyard.certificate_facts import describe, ending_soon
from runyard.client.discover import find_server
from runyard.client.keys import find_key
from runyard.clusters.findings import Finding, State
from runyard.config.check import check
from runyard.config.flags import Flags
from runyard.config.project_file import read_project
from runyard.config.project_text import FILE_NAME, find_passed_over, find_project_file
from runyard.config.request import Request
from runyard.errors import RunyardError
from runyard.filesystems import is_network_folder
from runyard.home import Home, read_discovery
from runyard.proof import LOOPBACK

GROUP = "this project"


def check_project(folder: Path, flags: Flags, home: Home) -> Iterator[Finding]:
    request = None
    if find_project_file(folder) is not None:
        try:
            request = read_project(folder, flags)
        except RunyardError as error:
            yield _finding(FILE_NAME, "fail", error.what, error.mend)
        else:
            yield from _request(request)
    elif passed_over := find_passed_over(folder):
        says = f"{passed_over} is not read: it is somebody else's, or all can write there"
        mend = f"`runyard init` writes your own; if you trust that one: cd {passed_over.parent}"
        yield _finding(FILE_NAME, "skip", says, mend)
    else:
        yield _finding(FILE_NAME, "skip", "there is none here", "`runyard init` writes one")
    yield _state_folder(home)
    yield _server(home)
    yield from _certificate(home)
    yield from _key(request, folder)


def _finding(name: str, state: State, says: str, mend: str | None = None) -> Finding:
    return Finding(GROUP, name, state, says, mend)


def _request(request: Request) -> Iterator[Finding]:
    try:
        checked = check(request)
    except RunyardError as error:
        yield _finding(FILE_NAME, "fail", error.what, error.mend)
        return
    for note in (*request.warnings, *checked.notes):
        yield _finding(FILE_NAME, "warn", note)
    for refusal in checked.refusals:
        yield _finding(FILE_NAME, "fail", f"{request.profile.name}: {refusal.what}", refusal.mend)
    if not checked.refusals:
        name = request.profile.name
        yield _finding(FILE_NAME, "ok", f"read, and {name} has nothing against it")


def _state_folder(home: Home) -> Finding:
    if not home.path.exists():
        return _finding("state folder", "ok", f"{home.path}, which is made when it is needed")
    if is_network_folder(home.path):
        return _finding("state folder", "ok", f"{home.path}, on a network file system")
    return _finding(
        "state folder", "ok", f"{home.path}; `runyard doctor --job` tells whether nodes see it"
    )


def _server(home: Home) -> Finding:
    """Never starts one: a doctor looks."""
    discovery = read_discovery(home)
    if discovery is None or find_server(home) is None:
        return _finding("server", "ok", "not running; the first command that needs it starts it")
    if discovery.listen in LOOPBACK:
        return _finding(
            "server", "ok",
            f"{discovery.url}, for this machine only; the first submission opens it to the nodes",
        )  # fmt: skip
    return _finding("server", "ok", f"{discovery.url}")


def _certificate(home: Home) -> Iterator[Finding]:
    """One of the user's own that ends: those that we make are made anew before they do."""
    discovery = read_discovery(home)
    if discovery is None or not discovery.tls_cert:
        return
    try:
        about = describe(Path(discovery.tls_cert).read_text())
    except (OSError, ValueError, ImportError) as error:
        yield _finding("certificate", "fail", f"{discovery.tls_cert} cannot be read: {error}",
                       "`runyard server restart --tls-cert FILE --tls-key FILE`")  # fmt: skip
        return
    ending = ending_soon(discovery.tls_cert, about.ends_at)
    if ending:
        yield _finding("certificate", "warn", ending,
                       "renew that file in its place: the server takes it up within hours, or at "
                       "`runyard server restart`")  # fmt: skip
    else:
        yield _finding("certificate", "ok", f"{discovery.tls_cert}, until {about.ends_at:%Y-%m-%d}")


def _key(request: Request | None, folder: Path) -> Iterator[Finding]:
    """For another server the key has to be found; our own lies in the state folder."""
    if request is None or request.tracking.server == "embedded":
        return
    from runyard.client.wandb_server import target_url

    try:
        url = target_url(request.tracking.server)
        key = find_key(url, os.environ, folder, request.tracking.key)
    except RunyardError as error:
        yield _finding("key", "fail", error.what, error.mend)
        return
    if key.source == "WANDB_API_KEY":
        yield _finding(
            "key", "warn", "it is in this shell's WANDB_API_KEY, which jobs do not get",
            "`runyard login --host` stores it where jobs find it",
        )  # fmt: skip
    else:
        yield _finding("key", "ok", f"found in {key.source}")
