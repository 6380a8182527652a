"""Store a server's key where wandb finds it: in netrc, readable by you only.

  runyard login                     a key of its own for this state folder's server
  runyard login --host URL          somebody else's server, or `cloud`; asks for the key
  runyard login --check             whether the key works, and whether a compute node can use it

Programs under `runyard run`, and shells with `runyard env`, need no login.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
import urllib.parse
from pathlib import Path

from runyard.cli.connect import server
from runyard.cli.output import print_json, say
from runyard.client.api import Api
from runyard.client.discover import LOOPBACK
from runyard.client.keys import find_key, netloc, netrc_key, netrc_path, save_project_key
from runyard.client.netrc_file import store_key
from runyard.client.roots import trust_of
from runyard.client.wandb_server import WandbServer, target_url
from runyard.errors import RunyardError, ServerError, UsageError
from runyard.home import locate, read_discovery

_SHORTEST_KEY = 40
# The key in netrc ends when it was not used for so long.
_NETRC_DAYS = 90


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", metavar="URL", help="a server's address, or `cloud`")
    parser.add_argument(
        "--key", help="the key; without this it is asked for, or read from stdin, which is safer: "
        "others on this machine see command lines"
    )  # fmt: skip
    parser.add_argument("--relogin", action="store_true", help="replace a key that works")
    parser.add_argument("--check", action="store_true", help="store nothing; look whether it works")
    parser.add_argument(
        "--account", metavar="NAME", help="also keep the key in the project's keys.json"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    if args.check:
        return _check(args)
    if args.host is None:
        api, url = _own()
        label = f"netrc on {socket.gethostname()}"
        key = api.people.shell_key(label, _stored_key(url), days=_NETRC_DAYS)
    else:
        url = target_url(args.host)
        stored = _stored_key(url)
        if stored is not None and not args.relogin and args.key is None and _works(url, stored):
            key = stored
        else:
            key = _checked(args.key or _ask(url), url)
    user = WandbServer(url, key, tries=2).viewer()
    machines = store_key(url, key, os.environ)
    kept = save_project_key(Path.cwd(), args.account, key) if args.account else None
    told = {"url": url, "user": user.get("username"), "netrc": str(netrc_path(os.environ))}
    if args.json:
        print_json({**told, "machines": machines, "project_keys": kept and str(kept)})
        return 0
    print(f"logged in at {url} as {told['user']} (key in {told['netrc']})")
    if kept is not None:
        print(f"the key is also in {kept} as {args.account}; keep that file out of git")
    if args.host is None:
        say(f"wandb logs there when it is told so: export WANDB_BASE_URL={url}")
    return 0


def _own() -> tuple[Api, str]:
    home = locate()
    api = server(home)
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


def _ask(url: str) -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline()
    import getpass

    try:
        return getpass.getpass(f"key for {url} (not shown): ")
    except EOFError:
        return ""


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


def _check(args: argparse.Namespace) -> int:
    url = target_url(args.host) if args.host else _own()[1]
    told: dict[str, object] = {"url": url, "works": False, "reaches_nodes": False}
    trouble: list[str] = []
    try:
        found = find_key(url, os.environ, Path.cwd(), args.account)
        told |= {"source": found.source}
        if found.warning:
            trouble.append(found.warning)
        told |= {
            "user": WandbServer(url, found.key, tries=2).viewer().get("username"),
            "works": True,
        }
    except ServerError as error:
        trouble.append(f"{error.what}{f' ({error.said})' if error.said else ''}")
    else:
        obstacles = _obstacles(url, str(told["source"]))
        told["reaches_nodes"] = not obstacles
        trouble += obstacles
    told["trouble"] = trouble
    if args.json:
        print_json(told)
    else:
        works = f"works, for {told['user']}" if told["works"] else "does not work"
        print(f"{url}: the key from {told.get('source')} {works}")
        if told["works"]:
            reach = "has" if told["reaches_nodes"] else "does not have"
            print(f"a job on another machine {reach} what it needs")
        for line in trouble:
            print(f"  {line}")
    return 0 if told["works"] else 1


def _obstacles(url: str, source: str) -> list[str]:
    """What keeps a job on another machine from using this key there."""
    found = []
    if urllib.parse.urlsplit(url).hostname in LOOPBACK:
        found.append(
            f"{url} is reached from this machine only: `runyard server restart --listen cluster` "
            "opens it to nodes; without that, jobs record on disk and `runyard sync` brings it in"
        )
    if source == "WANDB_API_KEY":
        found.append("WANDB_API_KEY is this shell's: a job has it only if its script passes it on")
    elif not _is_shared(Path(source.partition(" (")[0])):
        found.append(f"{source} is on a disk of this machine: nodes need it on a shared one")
    return found


def _is_shared(path: Path) -> bool:
    from runyard.server.store.filesystems import is_network_folder

    return is_network_folder(path.parent)
