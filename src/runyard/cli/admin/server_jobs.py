"""`runyard server submit` and what its jobs run; `--tls`, `--url` and their relatives."""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

from runyard.actions.cluster.own_jobs import remember
from runyard.actions.server.access import Access
from runyard.actions.server.jobs import (
    DAY,
    LINKS,
    ServerJobRequest,
    script_of,
    server_command,
    submit_server_jobs,
)
from runyard.cli.output import print_json, say, show
from runyard.errors import StateError
from runyard.home import Home, read_discovery
from runyard.schedulers.slurm.settings import EXTRA_FLAG, EXTRA_OPTIONS


def add_submit_arguments(parser: argparse.ArgumentParser) -> None:
    from runyard.cli.parser import duration, positive

    group = parser.add_argument_group("with submit")
    group.add_argument("--time", type=duration, help="length of each job (default: a day)")
    group.add_argument(
        "--links", type=positive, default=LINKS, metavar="N",
        help=f"jobs that take over from each other (default {LINKS})",
    )  # fmt: skip
    for name, what in (
        ("account", "who pays"), ("partition", "partition"), ("qos", "quality of service"),
    ):  # fmt: skip
        group.add_argument(f"--{name}", metavar="NAME", help=what)
    group.add_argument(
        EXTRA_FLAG, dest="extra", action="append", default=[], metavar="OPTION", help=EXTRA_OPTIONS,
    )  # fmt: skip
    group.add_argument("--dry-run", action="store_true", help="show the script, submit nothing")


def submit(home: Home, args: argparse.Namespace) -> int:
    request = ServerJobRequest(
        Path.cwd(), access_of(args), seconds=args.time or DAY, links=args.links,
        account=args.account, partition=args.partition, qos=args.qos, extra=tuple(args.extra),
    )  # fmt: skip
    if args.dry_run:
        print(script_of(home, request), end="")
        return 0
    submitted = submit_server_jobs(home, request, show)
    jobs = submitted.jobs
    if args.json:
        print_json({"jobs": jobs.ids, "folder": jobs.folder})
    else:
        print("\n".join(jobs.ids))
    say(f"submitted the server: {submitted.described}; logs in {jobs.folder}")
    if submitted.server_runs:
        say("the server that runs now goes on until the first of them takes over")
    say("watch it:  runyard server status")
    remember(home, "server", jobs.ids, jobs.folder, jobs.submitted_at)
    return 0


def run(home: Home, args: argparse.Namespace) -> int:
    """What the job runs: be the server, after whoever was it before. Does not come back."""
    words = server_command(home, access_of(args), listen=args.listen, port=args.port)
    print(f"{time.strftime('%H:%M:%S')} serving {home.path}", flush=True)
    os.execv(words[0], words)  # noqa: S606  (The job's signals are then the server's.)


def add_access_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tls", action=argparse.BooleanOptionalAction, default=None,
                        help="speak TLS, with a private authority that runyard makes; remembered "
                        "until --no-tls")  # fmt: skip
    parser.add_argument("--tls-cert", type=Path, metavar="FILE",
                        help="a certificate of your own (PEM, with its chain), for those who come "
                        "by its names")  # fmt: skip
    parser.add_argument("--tls-key", type=Path, metavar="FILE", help="its private key (PEM)")
    parser.add_argument("--tls-ca", type=Path, metavar="FILE",
                        help="the authority behind it, if the system does not know it")  # fmt: skip
    parser.add_argument("--url", metavar="URL",
                        help="the address by which people come through a proxy, as in "
                        "https://lab.example/runyard; remembered until --url ''")  # fmt: skip
    parser.add_argument("--proxy", metavar="ADDRESS",
                        help="believe what a proxy at this address says of its clients (several "
                        "with commas between them)")  # fmt: skip


def access_of(args: argparse.Namespace) -> Access:
    return Access(args.tls, args.tls_cert, args.tls_key, args.tls_ca, args.url, args.proxy)


def print_authority(home: Home, _args: argparse.Namespace) -> int:
    """The private authority's certificate, which is no secret: for browsers and colleagues."""
    discovery = read_discovery(home)
    if discovery is None or not discovery.authority:
        raise StateError(
            f"the server of {home.path} speaks plain HTTP", mend="runyard server restart --tls"
        )
    print(discovery.authority, end="")
    return 0
