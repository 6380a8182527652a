"""The server process: `python -m runyard.server`. Commands start it; people need not.

What can go wrong at the start is told to the starter through `--ready-fd`, as one line of JSON.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from runyard.errors import RunyardError, ServerError
from runyard.home import Home, prepare
from runyard.locks import FolderLock
from runyard.server.ownership import Owned, Owner


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m runyard.server", description=__doc__)
    parser.add_argument("--home", type=Path, required=True, help="the state folder")
    parser.add_argument("--listen", help="address to listen on (default: as last time, 127.0.0.1)")
    parser.add_argument("--port", type=int, help="port (default: as last time, or a free one)")
    parser.add_argument("--tls", action=argparse.BooleanOptionalAction, help="speak TLS")
    parser.add_argument("--tls-cert", default="", help="a certificate of your own")
    parser.add_argument("--tls-key", default="", help="its private key")
    parser.add_argument("--tls-ca", default="", help="the authority behind it")
    parser.add_argument("--url", help="how people reach it through a proxy")
    parser.add_argument("--proxy", help="the addresses of proxies that are believed")
    parser.add_argument("--dead-owner", help="a claim whose heartbeat has stood still for long")
    parser.add_argument("--ready-fd", type=int, help="where to say that the start went well or not")
    args = parser.parse_args()
    os.umask(0o077)
    home = Home(args.home)
    starter = _Starter(args.ready_fd)
    try:
        prepare(home)
        with FolderLock(home.server_lock) as lock:
            # Taken before anything is imported or opened: a second server leaves at once.
            # On a busy machine one that only asks whether it is free may hold it for a while.
            if not lock.acquire(2.0):
                raise ServerError(
                    f"a server already holds {home.path}", mend="`runyard server status` says where"
                )
            with Owner(home, dead=args.dead_owner) as owner:
                with _without_collections():
                    from runyard.server.http.proxies import ProxyOptions
                    from runyard.server.http.tls import TlsOptions
                    from runyard.server.serve import serve
                serve(
                    home, args.listen, args.port,
                    lambda note: starter.tell({"note": note}), owner.check,
                    TlsOptions(args.tls, args.tls_cert, args.tls_key, args.tls_ca),
                    ProxyOptions(args.url, args.proxy),
                )  # fmt: skip
    except Owned as owned:
        starter.tell({"owner": owned.claim.hostname})
        print(f"{home.path}: {owned}", file=sys.stderr)
        return 1
    except RunyardError as error:
        starter.tell(error.to_json())
        print(f"{error.what}: {error.said or ''}", file=sys.stderr)
        return 1
    except OSError as error:
        trouble = ServerError(
            f"the server cannot use {home.path}",
            said=error,
            mend="free some space there, or set RUNYARD_HOME to another folder",
        )
        starter.tell(trouble.to_json())
        print(f"{trouble.what}: {error}", file=sys.stderr)
        return 1
    return 0


@contextlib.contextmanager
def _without_collections() -> Iterator[None]:
    """For imports: what they make stays. Looking for garbage in it would be a fifth of a start."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()  # Nor is it looked through later, while requests wait.
        gc.enable()


class _Starter:
    """The command that started us, as long as it waits: it is told one thing, once."""

    def __init__(self, handle: int | None) -> None:
        self._handle = handle

    def tell(self, record: dict[str, str | None]) -> None:
        # Afterwards the number may be another file's, the database's even.
        handle, self._handle = self._handle, None
        if handle is not None:
            # The starter may have given up; that must not end us.
            with contextlib.suppress(OSError), os.fdopen(handle, "w") as ready:
                ready.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    sys.exit(main())
