"""`runyard server submit` and what its jobs run; `--tls`, `--url` and their relatives."""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

from runyard.actions.server import jobs
from runyard.actions.server.access import Access, authority_of
from runyard.cli.output import print_json, say, show
from runyard.cli.parser import add, duration, flag, positive
from runyard.home import Home
from runyard.schedulers.slurm.settings import EXTRA_FLAG, EXTRA_OPTIONS


def add_submit_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("with submit")
    add(group, "--time", "length of each job (default: a day)", type=duration)
    text = f"jobs that take over from each other (default {jobs.LINKS})"
    add(group, "--links N", text, type=positive, default=jobs.LINKS)
    add(group, "--account NAME", "who pays")
    add(group, "--partition NAME", "partition")
    add(group, "--qos NAME", "quality of service")
    add(group, f"{EXTRA_FLAG} OPTION", EXTRA_OPTIONS, dest="extra", action="append", default=[])
    flag(group, "--dry-run", "show the script, submit nothing")


def submit(home: Home, args: argparse.Namespace) -> int:
    request = jobs.ServerJobRequest(
        Path.cwd(), access_of(args), seconds=args.time or jobs.DAY, links=args.links,
        account=args.account, partition=args.partition, qos=args.qos, extra=tuple(args.extra),
    )  # fmt: skip
    if args.dry_run:
        print(jobs.script_of(home, request), end="")
        return 0
    submitted = jobs.submit_server_jobs(home, request, show)
    made = submitted.jobs
    if args.json:
        print_json({"jobs": made.ids, "folder": made.folder})
    else:
        print("\n".join(made.ids))
    say(f"submitted the server: {submitted.described}; logs in {made.folder}")
    if submitted.server_runs:
        say("the server that runs now goes on until the first of them takes over")
    say("watch it:  runyard server status")
    return 0


def run(home: Home, args: argparse.Namespace) -> int:
    """What the job runs: be the server, after whoever was it before. Does not come back."""
    words = jobs.server_command(home, access_of(args), listen=args.listen, port=args.port)
    print(f"{time.strftime('%H:%M:%S')} serving {home.path}", flush=True)
    os.execv(words[0], words)  # noqa: S606  (The job's signals are then the server's.)


def add_access_arguments(parser: argparse.ArgumentParser) -> None:
    add(parser, "--tls", "speak TLS, with a private authority that runyard makes; remembered until "
        "--no-tls", action=argparse.BooleanOptionalAction, default=None)  # fmt: skip
    add(parser, "--tls-cert FILE", "a certificate of your own (PEM, with its chain), for those who "
        "come by its names", type=Path)  # fmt: skip
    add(parser, "--tls-key FILE", "its private key (PEM)", type=Path)
    add(parser, "--tls-ca FILE", "the authority behind it, if the system does not know it",
        type=Path)  # fmt: skip
    add(parser, "--url URL", "the address by which people come through a proxy, as in "
        "https://lab.example/runyard; remembered until --url ''")  # fmt: skip
    add(parser, "--proxy ADDRESS", "believe what a proxy at this address says of its clients "
        "(several with commas between them)")  # fmt: skip


def access_of(args: argparse.Namespace) -> Access:
    return Access(args.tls, args.tls_cert, args.tls_key, args.tls_ca, args.url, args.proxy)


def print_authority(home: Home, _args: argparse.Namespace) -> int:
    """The private authority's certificate, which is no secret: for browsers and colleagues."""
    print(authority_of(home), end="")
    return 0
