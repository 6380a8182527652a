"""A link that logs one browser in to the page, once: of the own server, or of the one where the
user has logged in (`runyard login --host`)."""

from __future__ import annotations

import getpass
import os
import shlex
import socket
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from runyard.actions.naming import find_run_or_sweep
from runyard.client.api import Api
from runyard.client.keys import find_key, netloc, netrc_key, netrc_path
from runyard.client.wandb_server import CLOUD, WandbServer, target_url
from runyard.errors import UsageError
from runyard.home import Discovery, Home, prepare, read_discovery, write_whole
from runyard.proof import LOOPBACK


@dataclass(frozen=True)
class PageLink:
    """`tunnel`: what has to be typed on the browser's machine before; `code`: it logs in, too, for
    so many `seconds`."""

    link: str
    url: str
    tunnel: str | None
    code: str
    seconds: int


def page_link(api: Api, home: Home, name: str | None = None) -> PageLink:
    """To all projects, or to the run, the sweep or the project that is named."""
    path = _path(api, name)
    code = api.login_code()
    discovery = read_discovery(home)
    assert discovery is not None
    seen = Seen.of(discovery, os.environ)
    link = f"{seen.url}/{path}#code={code['code']}"
    return PageLink(link, seen.url, seen.tunnel, code["code"], code["seconds"])


def remember_login(home: Home, url: str) -> None:
    """`runyard ui` leads there from now on, where this state folder has no server of its own."""
    prepare(home)
    write_whole(home.login, f"{url}\n")


def login_elsewhere(home: Home) -> str | None:
    """The runyard server of somebody else where this user has logged in."""
    try:
        return home.login.read_text(encoding="utf-8").strip() or None
    except (FileNotFoundError, NotADirectoryError):
        return None


def page_link_elsewhere(host: str, folder: Path, name: str | None = None) -> PageLink:
    """To the page of somebody else's server, with the key that `runyard login --host` stored."""
    if name is not None:
        raise UsageError(
            f"{name!r} is looked for on your own server only",
            mend=f"`runyard ui --host {host}`, then search on the page",
        )
    url = target_url(host)
    if url == CLOUD:
        raise UsageError("W&B's cloud has a page of its own", mend="open https://wandb.ai")
    # First what `runyard login --host` stored: WANDB_API_KEY may be another server's.
    stored = netrc_key(netrc_path(os.environ), netloc(url))
    key = stored or find_key(url, os.environ, folder).key
    code = WandbServer(url, key, tries=2).login_code()
    host_name = urllib.parse.urlsplit(url).hostname or ""
    seen = Seen(url, None)
    if host_name in LOOPBACK and os.environ.get("SSH_CONNECTION"):
        port = urllib.parse.urlsplit(url).port or 80
        words = ["ssh", "-N", "-L", f"{port}:127.0.0.1:{port}", _login()]
        seen = Seen(url, shlex.join(words))
    return PageLink(f"{url}/#code={code['code']}", url, seen.tunnel, code["code"], code["seconds"])


@dataclass(frozen=True)
class Seen:
    """How a browser gets to the server: where it finds it, and what has to be typed before."""

    url: str
    tunnel: str | None

    @classmethod
    def of(cls, discovery: Discovery, environ: Mapping[str, str]) -> Seen:
        """On a machine that one came to by SSH, the browser is elsewhere."""
        if discovery.public_url:
            return cls(discovery.public_url, None)
        if not environ.get("SSH_CONNECTION"):
            return cls(discovery.url, None)
        host = urllib.parse.urlsplit(discovery.url).hostname or "127.0.0.1"
        is_here = host in LOOPBACK and discovery.hostname == socket.gethostname()
        target = "127.0.0.1" if is_here else discovery.hostname if host in LOOPBACK else host
        words = ["ssh", "-N", "-L", f"{discovery.port}:{target}:{discovery.port}", _login()]
        scheme = urllib.parse.urlsplit(discovery.url).scheme
        return cls(f"{scheme}://127.0.0.1:{discovery.port}", shlex.join(words))


def _login() -> str:
    name = socket.getfqdn()
    known = name if not name.startswith("localhost") else socket.gethostname()
    return f"{getpass.getuser()}@{known}"


def _path(api: Api, name: str | None) -> str:
    """Where the page shows what was named."""
    if name is None:
        return ""
    projects = {(run["entity"], run["project"]) for run in api.runs(project=name, limit=1)}
    if projects:
        return _quoted(*projects.pop())
    named = find_run_or_sweep(api, name)
    if named.run is not None:
        return _quoted(named.run["entity"], named.run["project"], "runs", named.run["id"])
    assert named.sweep is not None
    return _quoted(named.sweep["entity"], named.sweep["project"], "sweeps", named.sweep["id"])


def _quoted(*parts: str) -> str:
    return "/".join(urllib.parse.quote(part, safe="") for part in parts)
