"""A state folder has one owner at a time, whatever the file locks of two machines say."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from runyard.client.discover import take_over
from runyard.home import Discovery, Home, prepare, write_discovery
from runyard.owners import (
    BEATS_UNTIL_DEAD,
    HEARTBEAT,
    Claim,
    claim_path,
    owner_elsewhere,
    read_claim,
)
from runyard.proof import hash_key, prove
from runyard.server import ownership
from runyard.server.ownership import Owned, Owner
from tests.conftest import wait_until

OTHER = Claim("0123456789abcdef", "other-host", "another-boot", 4711)


class Lost(Exception):
    pass


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv(HEARTBEAT, "0.1")
    home = Home(tmp_path / "state")
    prepare(home)
    return home


def put(home: Home, claim: Claim) -> None:
    claim_path(home).write_text(json.dumps(claim.__dict__) + "\n")


@pytest.fixture
def beating(home: Home) -> Iterator[None]:
    """A live server of another machine."""
    end = threading.Event()

    def beat() -> None:
        number = 0
        while not end.wait(0.05):
            number += 1
            aside = home.path / "aside"
            aside.write_text(json.dumps(replace(OTHER, beat=f"{number:012d}").__dict__))
            aside.replace(claim_path(home))

    put(home, OTHER)
    heart = threading.Thread(target=beat)
    heart.start()
    yield
    end.set()
    heart.join()


def lose(*_: object) -> None:
    raise Lost


def test_what_a_server_elsewhere_still_writes_reaches_no_file_of_its_followers(home: Home) -> None:
    """Its kernel finishes a write when the file system answers again, whoever serves by then."""
    log = home.database.with_name(f"{home.database.name}-wal")
    for path in (home.database, log):
        path.write_bytes(b"as it was")
    with home.database.open("r+b") as late, log.open("r+b") as late_log:
        put(home, OTHER)
        with Owner(home):
            for file in (late, late_log):
                file.write(b"TOO LATE")
                file.flush()
            assert home.database.read_bytes() == log.read_bytes() == b"as it was"
    assert home.database.stat().st_mode & 0o777 == 0o600
    assert not [path for path in home.path.iterdir() if path.name.startswith(".")]


def test_a_folder_is_claimed_and_given_back(home: Home) -> None:
    with Owner(home):
        claim = read_claim(home)
        assert claim is not None
        assert (claim.hostname, claim.pid) == (socket.gethostname(), os.getpid())
        wait_until(lambda: read_claim(home) != claim)  # It beats.
        size = claim_path(home).stat().st_size
        assert owner_elsewhere(home) is None
    assert read_claim(home) is None
    assert size > 0
    assert not (home.path / "owner.turn").exists()


def test_who_was_watched_until_it_was_dead_is_not_watched_again(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that takes the server over has waited for the heartbeat already."""
    put(home, OTHER)
    dead = take_over(home, 60)
    assert dead == OTHER
    watched: list[Claim] = []
    monkeypatch.setattr(ownership, "lives", lambda _home, claim: watched.append(claim))
    with Owner(home, dead=dead.moment):
        assert not watched
        claim = read_claim(home)
        assert claim is not None
        assert claim.pid == os.getpid()
    # A heartbeat since then, and the watch begins anew.
    later = replace(OTHER, beat=f"{7:012d}")
    put(home, later)
    with Owner(home, dead=dead.moment):
        assert watched == [later]


def test_a_dead_server_of_this_machine_is_followed_at_once(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Owner(home):
        mine = read_claim(home)
    assert mine is not None
    put(home, replace(mine, token="f" * 16))
    monkeypatch.setenv(HEARTBEAT, "1000")  # Nobody waits for this one.
    with Owner(home):
        assert read_claim(home) != replace(mine, token="f" * 16)


@pytest.mark.usefixtures("beating")
def test_a_folder_whose_owner_s_heart_beats_is_left_alone(home: Home) -> None:
    with pytest.raises(Owned) as caught, Owner(home):
        pass
    assert caught.value.claim.hostname == "other-host"
    claim = owner_elsewhere(home)
    assert claim is not None
    assert claim.token == OTHER.token


def test_a_heart_that_stands_still_is_dead_after_ten_beats(home: Home) -> None:
    put(home, OTHER)
    before = time.monotonic()
    with Owner(home):
        assert time.monotonic() - before >= BEATS_UNTIL_DEAD * 0.1
        claim = read_claim(home)
        assert claim is not None
        assert claim.token != OTHER.token


def test_two_that_follow_a_dead_server_are_not_both_owners(home: Home) -> None:
    put(home, OTHER)
    owners: list[Owner] = []
    refused: list[str] = []
    with ExitStack() as stack:

        def start(name: str) -> None:
            owner = Owner(home)
            # Each takes the other for a server of another machine.
            owner._claim = replace(owner._claim, hostname=name)
            try:
                owners.append(stack.enter_context(owner))
            except Owned as owned:
                refused.append(owned.claim.hostname)

        threads = [threading.Thread(target=start, args=(name,)) for name in ("one", "two")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [owner._claim.hostname for owner in owners] == refused


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_who_was_replaced_ends_and_changes_nothing(home: Home) -> None:
    lost = threading.Event()

    def end() -> None:
        lost.set()
        raise SystemExit  # Ends the thread, as it would the process.

    with Owner(home, end):  # type: ignore[arg-type]
        put(home, OTHER)
        wait_until(lost.is_set)
    assert read_claim(home) == OTHER


def test_after_a_long_pause_nothing_is_written_before_the_claim_was_looked_at(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(HEARTBEAT, "1000")  # The pause: no heartbeat in between.
    with Owner(home, lose) as owner:  # type: ignore[arg-type]
        owner.check()
        put(home, OTHER)
        owner.check()  # No pause, no look.
        monkeypatch.setenv(HEARTBEAT, "0")
        with pytest.raises(Lost):
            owner.check()
        claim_path(home).unlink()


def test_a_claim_that_somebody_removed_is_written_again(home: Home) -> None:
    with Owner(home):
        claim_path(home).unlink()
        wait_until(lambda: read_claim(home) is not None)


def test_a_turn_that_a_dead_starter_left_is_not_waited_for_forever(home: Home) -> None:
    (home.path / "owner.turn").write_text("dead")
    with Owner(home):
        assert read_claim(home) is not None


def test_a_damaged_claim_is_nobody_s(home: Home) -> None:
    claim_path(home).write_text("{")
    assert read_claim(home) is None
    with Owner(home):
        assert read_claim(home) is not None


@pytest.mark.parametrize("key", ["k" * 40, "another program's"])
def test_who_proves_at_the_old_address_to_have_the_key_lives(home: Home, key: str) -> None:
    headers: list[str] = []

    class Server(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            headers.extend(self.headers)
            nonce = parse_qs(urlsplit(self.path).query)["nonce"][0]
            self.send_response(200)
            self.end_headers()
            self.wfile.write(prove(hash_key(key), nonce, url).encode())

        def log_message(self, *_: object) -> None:
            pass

    put(home, OTHER)
    with HTTPServer(("127.0.0.1", 0), Server) as server:
        url = f"http://127.0.0.1:{server.server_port}"
        serving = threading.Thread(target=server.handle_request)
        serving.start()
        write_discovery(
            home,
            Discovery(url, "k" * 40, OTHER.pid, OTHER.hostname, "0.0.0.0", 1, "1", 0.0, True),
        )
        alive = owner_elsewhere(home)
        serving.join()
    assert (alive is not None) == (key == "k" * 40)
    assert "Authorization" not in headers
