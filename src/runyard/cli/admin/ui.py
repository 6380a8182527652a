"""Open the page: runs, charts, sweeps and jobs in a browser.

  runyard ui                 all projects
  runyard ui RUN             a run, a sweep or a project, by id or name
  ssh NODE runyard ui        prints what to type on your laptop, too
  runyard ui --code          the code alone: for a page that asks whether it is you

Prints a link that logs one browser in, once, within ten minutes; later visits need none until the
browser's session ends (`runyard users sessions`). Where there is a browser, it is opened.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping

from runyard.actions.server.page_link import page_link
from runyard.cli.completers import complete_run
from runyard.cli.connect import server
from runyard.cli.output import print_json
from runyard.home import Home, locate, write_whole


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
    print(f"The link works once, within {page.seconds // 60} minutes.", file=sys.stderr)
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
