"""Store a server's key where wandb finds it: in netrc, readable by you only.

  runyard login                     a key of its own for this state folder's server
  runyard login --host URL          somebody else's server, or `cloud`; asks for the key
  runyard login --check             whether the key works, and whether a compute node can use it

Programs under `runyard run`, and shells with `runyard env`, need no login.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path

from runyard.actions.server.login import LoginRequest, check_login, log_in
from runyard.cli.connect import server
from runyard.cli.output import print_json, say
from runyard.cli.parser import add, flag


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add(parser, "--host URL", "a server's address, or `cloud`")
    add(parser, "--key", "the key; without this it is asked for, or read from stdin, which is "
        "safer: others on this machine see command lines")  # fmt: skip
    flag(parser, "--relogin", "replace a key that works")
    flag(parser, "--check", "store nothing; look whether it works")
    add(parser, "--account NAME", "also keep the key in the project's keys.json")
    flag(parser, "--json", "print JSON")


def run(args: argparse.Namespace) -> int:
    request = LoginRequest(
        Path.cwd(), args.host, args.key, relogin=args.relogin, account=args.account
    )
    if args.check:
        return _check(request, as_json=args.json)
    login = log_in(request, server, _ask)
    if args.json:
        print_json(asdict(login))
        return 0
    print(f"logged in at {login.url} as {login.user} (key in {login.netrc})")
    if login.project_keys is not None:
        print(f"the key is also in {login.project_keys} as {args.account}; "
              "keep that file out of git")  # fmt: skip
    if login.has_page:
        say(f"its page: runyard ui --host {login.url}")
    if args.host is None:
        say(f"wandb logs there when it is told so: export WANDB_BASE_URL={login.url}")
    return 0


def _ask(url: str) -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline()
    import getpass

    try:
        return getpass.getpass(f"key for {url} (not shown): ")
    except EOFError:
        return ""


def _check(request: LoginRequest, *, as_json: bool) -> int:
    result = check_login(request, server)
    if as_json:
        print_json(result)
    else:
        works = f"works, for {result['user']}" if result["works"] else "does not work"
        print(f"{result['url']}: the key from {result.get('source')} {works}")
        if result["works"]:
            reach = "has" if result["reaches_nodes"] else "does not have"
            print(f"a job on another machine {reach} what it needs")
        for line in result["trouble"]:
            print(f"  {line}")
    return 0 if result["works"] else 1
