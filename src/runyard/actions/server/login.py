"""A server's key, stored where wandb finds it: in netrc, readable by the user only."""

from __future__ import annotations

import os
import socket
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runyard.actions.server.page_link import remember_login
from runyard.client.api import Api
from runyard.client.keys import find_key, netloc, netrc_key, netrc_path, save_project_key
from runyard.client.netrc_file import store_key
from runyard.client.roots import trust_of
from runyard.client.wandb_server import WandbServer, target_url
from runyard.errors import RunyardError, ServerError, UsageError
from runyard.home import Home, locate, read_discovery
from runyard.proof import LOOPBACK

_SHORTEST_KEY = 40
# The key in netrc ends when it was not used for so long.
_NETRC_DAYS = 90


@dataclass(frozen=True)
class LoginRequest:
    """`host`: None for this state folder's own server; `account`: also keep the key under this name
    in the project's keys.json."""

    folder: Path
    host: str | None = None
    key: str | None = None
    relogin: bool = False
    account: str | None = None


@dataclass(frozen=True)
class Login:
    """Whose key it is, and where it was stored; `has_page`: `runyard ui --host URL` opens it."""

    url: str
    user: str | None
    netrc: Path
    machines: list[str]
    project_keys: Path | None
    has_page: bool = False


def log_in(
    request: LoginRequest, connect: Callable[[Home], Api], ask: Callable[[str], str]
) -> Login:
    """`ask` gives the key of the server at an address, where none is known that works."""
    if request.host is None:
        api, url = _own(connect)
        label = f"netrc on {socket.gethostname()}"
        key = api.people.shell_key(label, _stored_key(url), days=_NETRC_DAYS)
    else:
        url = target_url(request.host)
        stored = _stored_key(url)
        asks_anew = request.relogin or request.key is not None
        if stored is not None and not asks_anew and _works(url, stored):
            key = stored
        else:
            key = _checked(request.key or ask(url), url)
    there = WandbServer(url, key, tries=2)
    user = there.viewer()
    has_page = request.host is not None and there.is_runyard()
    if has_page:
        remember_login(locate(), url)
    machines = store_key(url, key, os.environ)
    project_keys = (
        save_project_key(request.folder, request.account, key) if request.account else None
    )
    netrc = netrc_path(os.environ)
    return Login(url, user.get("username"), netrc, machines, project_keys, has_page)


def check_login(request: LoginRequest, connect: Callable[[Home], Api]) -> dict[str, Any]:
    """Whether the key works, and whether a compute node can use it; stores nothing."""
    url = target_url(request.host) if request.host else _own(connect)[1]
    result: dict[str, Any] = {"url": url, "works": False, "reaches_nodes": False}
    trouble: list[str] = []
    try:
        key = find_key(url, os.environ, request.folder, request.account)
        result |= {"source": key.source}
        if key.warning:
            trouble.append(key.warning)
        user = WandbServer(url, key.key, tries=2).viewer().get("username")
        result |= {"user": user, "works": True}
    except ServerError as error:
        trouble.append(f"{error.what}{f' ({error.said})' if error.said else ''}")
    else:
        obstacles = _obstacles(url, str(result["source"]))
        result["reaches_nodes"] = not obstacles
        trouble += obstacles
    result["trouble"] = trouble
    return result


def _own(connect: Callable[[Home], Api]) -> tuple[Api, str]:
    home = locate()
    api = connect(home)
    discovery = read_discovery(home)
    assert discovery is not None
    os.environ.update(trust_of(home, discovery, os.environ))  # We ask as a stock client would.
    return api, discovery.url


def _stored_key(url: str) -> str | None:
    return netrc_key(netrc_path(os.environ), netloc(url))


def _works(url: str, key: str) -> bool:
    try:
        WandbServer(url, key, tries=1).viewer()
    except RunyardError:
        return False
    return True


def _checked(text: str, url: str) -> str:
    key = text.strip()
    if not key:
        raise UsageError("no key was given", mend=f"echo KEY | runyard login --host {url}")
    if (
        len(key.rpartition("-")[2]) < _SHORTEST_KEY
        or not key.replace("-", "").replace("_", "").isalnum()
    ):
        raise UsageError(
            f"this is not a key: keys have at least {_SHORTEST_KEY} letters and digits",
            mend="copy it once more, without blanks or quotes",
        )
    return key


def _obstacles(url: str, source: str) -> list[str]:
    """What keeps a job on another machine from using this key there."""
    obstacles = []
    if urllib.parse.urlsplit(url).hostname in LOOPBACK:
        obstacles.append(
            f"{url} is reached from this machine only: `runyard server restart --listen cluster` "
            "opens it to nodes; without that, jobs record on disk and `runyard sync` brings it in"
        )
    if source == "WANDB_API_KEY":
        obstacles.append(
            "WANDB_API_KEY is this shell's: a job has it only if its script passes it on"
        )
    elif not _is_shared(Path(source.partition(" (")[0])):
        obstacles.append(f"{source} is on a disk of this machine: nodes need it on a shared one")
    return obstacles


def _is_shared(path: Path) -> bool:
    from runyard.filesystems import is_network_folder

    return is_network_folder(path.parent)
