"""`runyard server start --tls`, `--url` and their relatives: how clients reach the server."""

from __future__ import annotations

import argparse
from pathlib import Path

from runyard.actions.server.access import Access
from runyard.errors import StateError
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
