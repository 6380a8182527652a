"""A fresh runyard server together with what W&B's own tests expect beside a server.

    python scripts/wandb_stand_in.py STATE_FOLDER

Their tests ask a second service for users, teams and organizations. This one makes the users (a
test's user name is also its API key) and agrees to the rest: any user may write under any entity.
Prints one line of JSON with the two ports, and serves until its input ends.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import uvicorn

from runyard.home import Home, prepare
from runyard.server.app import create_app
from runyard.server.people.accounts import Accounts, new_key
from runyard.server.people.permissions import Caller
from runyard.server.store.database import Database
from runyard.server.store.store import Store
from runyard.server.tracker import Tracker


class GuestBook(Accounts):
    """Takes a guest's name for their key: W&B's tests choose their keys that way."""

    def __init__(self, store: Store, database: Database) -> None:
        super().__init__(store, database)
        self._guests: dict[str, Caller] = {}

    def admit(self, name: str) -> None:
        user = self._database.write(lambda connection: _add_user(connection, name)).result()
        self._guests[name] = Caller(user, name)

    def caller(self, key: str, address: str = "", *, is_stock: bool = False) -> Caller | None:
        return self._guests.get(key) or super().caller(key, address, is_stock=is_stock)


def _add_user(connection: sqlite3.Connection, name: str) -> int:
    connection.execute(
        "INSERT INTO users (name, created_at) VALUES (?, ?) ON CONFLICT DO NOTHING",
        (name, time.time()),
    )
    row = connection.execute("SELECT key FROM users WHERE name = ?", (name,)).fetchone()
    key: int = row["key"]
    return key


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


def fixture_service(guests: GuestBook) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            size = int(self.headers.get("content-length") or 0)
            asked: dict[str, Any] = json.loads(self.rfile.read(size) or b"{}")
            if self.path.strip("/") == "db/user" and asked.get("command") == "up":
                guests.admit(str(asked["username"]))
            self.send_response(200)
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return ThreadingHTTPServer(("127.0.0.1", 0), Handler)


def main() -> None:
    home = Home(Path(sys.argv[1]))
    prepare(home)
    tracker = Tracker(home)
    guests = tracker.accounts = GuestBook(tracker, tracker._database)
    tracker.open(new_key())
    with serving(tracker) as port, fixture_service(guests) as fixtures:
        threading.Thread(target=fixtures.serve_forever, daemon=True).start()
        ports = {"base_port": port, "fixture_port": fixtures.server_address[1]}
        print(json.dumps(ports), flush=True)
        sys.stdin.read()  # Ends with the process that started us, however that ends.
        fixtures.shutdown()
    tracker.close()


if __name__ == "__main__":
    main()
