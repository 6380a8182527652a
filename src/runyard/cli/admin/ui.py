"""Open the page: runs, charts, sweeps and jobs in a browser.

  runyard ui                 all projects
  runyard ui RUN             a run, a sweep or a project, by id or name
  ssh NODE runyard ui        prints what to type on your laptop, too
  runyard ui --code          the code alone: for a page that asks whether it is you
  runyard ui --host URL      the page of a server where you have logged in (`runyard login --host`)

Prints a link that logs one browser in, once, within ten minutes; later visits need none until the
browser's session ends (`runyard users sessions`). Where there is a browser, it is opened. If you
have no server of your own and have logged in at somebody else's, its page is opened.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from runyard.actions.server.page_link import login_elsewhere, page_link, page_link_elsewhere
from runyard.cli.completers import complete_run
from runyard.cli.connect import server
from runyard.cli.output import print_json
from runyard.cli.parser import add, flag
from runyard.home import Home, locate, read_discovery, write_whole


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add(parser, "name NAME", "a run, a sweep or a project (default: all)",
        nargs="?", completer=complete_run)  # fmt: skip
    add(parser, "--host URL", "the page of somebody else's server")
    flag(parser, "--no-open", "print the link, open nothing")
    flag(parser, "--code", "print a code to paste, open nothing")
    flag(parser, "--json", "print JSON, open nothing")


def run(args: argparse.Namespace) -> int:
    home = locate()
    host = args.host or (None if read_discovery(home) else login_elsewhere(home))
    if host is not None:
        page = page_link_elsewhere(host, Path.cwd(), args.name)
    else:
        page = page_link(server(home), home, args.name)
    if args.code and not args.json:
        print(page.code)
        return 0
    link, tunnel = page.link, page.tunnel
    if args.json:
        print_json({"link": link, "url": page.url, "ssh": tunnel, "seconds": page.seconds})
        return 0
    if tunnel:
        print(f"On your own machine, type this and leave it open:\n\n  {tunnel}\n\nThen open:\n")
        print(f"  {link}\n")
    else:
        print(link)
    print(f"The link works once, within {page.seconds // 60} min: it logs you in.", file=sys.stderr)
    if not args.no_open and _has_browser(os.environ, sys.platform):
        _open(home, link)
    return 0


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
