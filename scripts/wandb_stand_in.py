"""A fresh runyard server together with what W&B's own tests expect beside a server.

    python scripts/wandb_stand_in.py STATE_FOLDER

Their tests ask a second service for users, teams and organizations. This one makes the users and
teams by the server's own rules: a test's user name is also its API key, stored like any other.
There are no organizations here, so a wish for one is agreed to and changes nothing.
Prints one line of JSON with the two ports, and serves until its input ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from sqlite3 import Connection
from typing import Any

import uvicorn

from runyard.home import Home, prepare
from runyard.server.app import create_app
from runyard.server.people import api_keys, people
from runyard.server.people.accounts import new_key
from runyard.server.store.names import BadName
from runyard.server.tracker import Tracker


def carry_out(db: Connection, path: str, request: dict[str, Any]) -> None:
    """What a fixture of theirs wants: a user or a team, made or taken away."""
    now, user = time.time(), str(request.get("username") or "")
    match path, request.get("command"):
        case "db/user", "up":
            people.add_user(db, user, now)
            people.add_key(db, user, user, api_keys.Wanted("W&B's tests"), now)
        case "db/user", "down":
            people.remove_user(db, user, now)
        case "db/team", "up":
            team = str(request["fixtureData"]["team"]["name"])
            people.add_team(db, team, user, now, adopt=False)


@contextlib.contextmanager
def serving(tracker: Tracker) -> Iterator[int]:
    """The server itself, in this process; gives its port."""
    config = uvicorn.Config(
        create_app(tracker, lambda: None), port=0, log_config=None, access_log=False, ws="none"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        if not thread.is_alive():
            raise SystemExit("the server did not start")
        time.sleep(0.01)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(timeout=10)


def fixture_service(tracker: Tracker) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            size = int(self.headers.get("content-length") or 0)
            request: dict[str, Any] = json.loads(self.rfile.read(size) or b"{}")
            status, message = 200, b"{}"
            try:
                change = tracker.accounts.change(carry_out, self.path.strip("/"), request)
                asyncio.run(change)
            except (BadName, people.Taken, people.Missing, people.Needed) as error:
                status, message = 400, str(error).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(message)))
            self.end_headers()
            self.wfile.write(message)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return ThreadingHTTPServer(("127.0.0.1", 0), Handler)


def main() -> None:
    home = Home(Path(sys.argv[1]))
    prepare(home)
    tracker = Tracker(home)
    tracker.open(new_key())
    with serving(tracker) as port, fixture_service(tracker) as fixtures:
        threading.Thread(target=fixtures.serve_forever, daemon=True).start()
        ports = {"base_port": port, "fixture_port": fixtures.server_address[1]}
        print(json.dumps(ports), flush=True)
        sys.stdin.read()  # Ends with the process that started us, however that ends.
        fixtures.shutdown()
    tracker.close()


if __name__ == "__main__":
    main()
