"""Open the page: runs, charts, sweeps and jobs in a browser.

  runyard ui                 all projects
  runyard ui RUN             a run, a sweep or a project, by id or name
  ssh NODE runyard ui        prints what to type on your laptop, too
  runyard ui --code          the code alone: for a page that asks whether it is you

Prints a link that logs one browser in, once, within ten minutes; later visits need none until the
browser's session ends (`runyard sessions`). Where there is a browser, it is opened.
"""

from __future__ import annotations

import argparse
import getpass
import os
import shlex
import socket
import sys
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass

from runyard.actions.naming import find_run_or_sweep
from runyard.cli.completers import complete_run
from runyard.cli.connect import server
from runyard.cli.output import print_json
from runyard.client.api import Api
from runyard.home import Discovery, Home, locate, read_discovery, write_whole

_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    argument = parser.add_argument(
        "name", nargs="?", metavar="NAME", help="a run, a sweep or a project (default: all)"
    )
    argument.completer = complete_run  # type: ignore[attr-defined]
    parser.add_argument("--no-open", action="store_true", help="print the link, open nothing")
    parser.add_argument("--code", action="store_true", help="print a code to paste, open nothing")
    parser.add_argument("--json", action="store_true", help="print JSON, open nothing")


def run(args: argparse.Namespace) -> int:
    home = locate()
    api = server(home)
    path = _path(api, args.name)
    code = api.login_code()
    if args.code and not args.json:
        print(code["code"])
        return 0
    discovery = read_discovery(home)
    assert discovery is not None
    seen = Seen.of(discovery, os.environ)
    link = f"{seen.url}/{path}#code={code['code']}"
    if args.json:
        print_json({"link": link, "url": seen.url, "ssh": seen.tunnel, "seconds": code["seconds"]})
        return 0
    if seen.tunnel:
        print(
            f"On your own machine, type this and leave it open:\n\n  {seen.tunnel}\n\nThen open:\n"
        )
        print(f"  {link}\n")
    else:
        print(link)
    print(f"The link works once, within {code['seconds'] // 60} minutes.", file=sys.stderr)
    if not args.no_open and _has_browser(os.environ, sys.platform):
        _open(home, link)
    return 0


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
        is_here = host in _LOOPBACK and discovery.hostname == socket.gethostname()
        target = "127.0.0.1" if is_here else discovery.hostname if host in _LOOPBACK else host
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


def _has_browser(environ: Mapping[str, str], platform: str) -> bool:
    if environ.get("SSH_CONNECTION"):
        return False  # X11 may be forwarded, but a browser there is nobody's wish.
    return platform == "darwin" or bool(environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY"))


def _open(home: Home, link: str) -> None:
    """By a file that sends the browser on: everybody on the machine sees a command line."""
    import html
    import webbrowser

    page = home.path / "open.html"
    target = html.escape(link)
    write_whole(
        page, f'<meta http-equiv="refresh" content="0;url={target}"><a href="{target}">go</a>'
    )
    webbrowser.open(page.as_uri())
