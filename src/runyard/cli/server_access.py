"""`runyard server start --tls`, `--url` and their relatives: how clients reach the server."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from runyard.errors import StateError, UsageError
from runyard.home import Home, read_discovery


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


def access_options(args: argparse.Namespace) -> list[str]:
    """The same for the server's process, with whole paths: it runs elsewhere."""
    if args.tls_cert is None and (args.tls_key or args.tls_ca):
        raise UsageError("--tls-key and --tls-ca belong to --tls-cert", mend="give that, too")
    if args.tls_cert is not None and args.tls is False:
        raise UsageError("--tls-cert and --no-tls contradict each other", mend="give one of them")
    words = [] if args.tls is None else ["--tls" if args.tls else "--no-tls"]
    if args.tls_cert is not None:
        words = ["--tls"]
    for name in ("cert", "key", "ca"):
        path = getattr(args, f"tls_{name}")
        if path is not None:
            words += [f"--tls-{name}", os.path.abspath(path.expanduser())]  # noqa: PTH100
    for name in ("url", "proxy"):
        if getattr(args, name) is not None:
            words += [f"--{name}", getattr(args, name)]
    return words


def print_authority(home: Home, _args: argparse.Namespace) -> int:
    """The private authority's certificate, which is no secret: for browsers and colleagues."""
    discovery = read_discovery(home)
    if discovery is None or not discovery.authority:
        raise StateError(
            f"the server of {home.path} speaks plain HTTP", mend="runyard server restart --tls"
        )
    print(discovery.authority, end="")
    return 0
