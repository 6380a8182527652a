"""Try the flows with the client versions, and say how it went.

python -m tests.wandb_clients                                 # all of both
python -m tests.wandb_clients --version 0.16.6 --flow media   # some
python -m tests.wandb_clients --write-docs                    # and write the documentation
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.conftest import end_server
from tests.wandb_clients.environments import MissingClient
from tests.wandb_clients.matrix import Outcome, Session, load_flows, pairs
from tests.wandb_clients.page import put_section, read_section
from tests.wandb_clients.table import draw, read
from tests.wandb_clients.versions import VERSIONS


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="append", choices=VERSIONS)
    parser.add_argument("--flow", action="append", choices=load_flows())
    parser.add_argument("--at-once", type=int, default=2, help="how many (default: 2)")
    parser.add_argument("--write-docs", action="store_true", help="write docs/")
    parser.add_argument("-v", "--verbose", action="store_true", help="tell each failure in full")
    args = parser.parse_args()
    wanted = [
        (version, name)
        for version, name in pairs()
        if version in (args.version or VERSIONS) and name in (args.flow or load_flows())
    ]
    outcomes = try_all(wanted, args.at_once, args.verbose)
    if args.write_docs:
        put_section("flows", draw({**read(read_section("flows")), **outcomes}))
    return int(any(outcome.trouble for outcome in outcomes.values()))


def try_all(
    wanted: list[tuple[str, str]], at_once: int, verbose: bool
) -> dict[tuple[str, str], Outcome]:
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="yard-") as folder, ThreadPoolExecutor(at_once) as pool:
        session = Session(Path(folder))
        try:

            def attempt(pair: tuple[str, str]) -> Outcome:
                start = time.monotonic()
                try:
                    outcome = session.try_out(*pair)
                except MissingClient as missing:
                    sys.exit(str(missing))
                took = time.monotonic() - start
                print(f"{pair[0]:>8}  {pair[1]:<18}{took:5.1f} s  {outcome.trouble or 'works'}")
                if verbose and outcome.story:
                    print(outcome.story)
                return outcome

            outcomes = dict(zip(wanted, pool.map(attempt, wanted), strict=True))
        finally:
            end_server(session.home)
    print(f"{time.monotonic() - begin:.0f} s")
    return outcomes


if __name__ == "__main__":
    sys.exit(main())
