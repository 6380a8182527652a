"""Run files: whole or not at all, only where an address was handed out, read only with the key."""

from __future__ import annotations

import base64
import hashlib
import time

import pytest

from runyard.home import Home
from runyard.server.people.signed_addresses import Addresses, BadAddress, Kind
from runyard.server.runs.run_files import UnsafeName, check_name
from runyard.server.tracker import Tracker
from tests.server.asgi import KEY_ID, Client
from tests.server.conftest import Upsert

FILE = "/files/ada/birds/run1/media/plot.png"


@pytest.fixture
def url(client: Client, tracker: Tracker, upsert: Upsert) -> str:
    """Where the client may put `media/plot.png` of its run."""
    upsert(name="run1")
    return tracker.accounts.addresses.url(
        "http://yard.example:8123", Kind.RUN_FILE_UP, KEY_ID, 1, "media/plot.png"
    )


def test_a_file_comes_and_goes(client: Client, url: str) -> None:
    assert client.get(FILE).status == 404
    assert client.put(url, b"some ", b"bytes").status == 200
    answer = client.get(FILE)
    assert answer.body == b"some bytes"
    # Never shown as a page of ours.
    assert answer.headers["content-disposition"].startswith("attachment")
    assert client.get("/api/run", name="run1").json()["files"] == ["media/plot.png"]


def test_a_part_of_a_file(client: Client, url: str) -> None:
    client.put(url, b"0123456789")
    answer = client.request("GET", FILE, headers={"range": "bytes=2-4"})
    assert (answer.status, answer.body) == (206, b"234")


def test_put_again_replaces(client: Client, url: str, home: Home) -> None:
    client.put(url, b"old and long")
    client.put(url, b"new")
    assert client.get(FILE).body == b"new"
    assert len(list((home.files / "1").iterdir())) == 1


def test_an_empty_file_is_a_file(client: Client, url: str) -> None:
    assert client.put(url).status == 200
    answer = client.get(FILE)
    assert (answer.status, answer.body) == (200, b"")


def test_twenty_megabytes(client: Client, url: str) -> None:
    piece = hashlib.sha256(b"x").digest() * 2_048
    assert client.put(url, *[piece] * 320).status == 200
    assert client.get(FILE).body == piece * 320


def test_cut_off_half_way_the_old_one_stays(client: Client, url: str, home: Home) -> None:
    client.put(url, b"old")
    answer = client.put(url, b"new but " * 200_000, cut=True)
    assert answer.status == 0  # Nobody is there to be answered.
    assert client.get(FILE).body == b"old"
    assert not list((home.files / "unfinished").iterdir())


def test_what_a_dead_server_was_receiving_is_swept_away(home: Home, tracker: Tracker) -> None:
    left = home.files / "unfinished" / "0123"
    left.parent.mkdir()
    left.write_bytes(b"half")
    again = Tracker(home)
    tracker.close()
    again.open("k" * 40)
    assert not left.exists()
    again.close()


def test_forged_addresses(client: Client, url: str, tracker: Tracker) -> None:
    token = url.rpartition("/")[2]
    raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    other_run = base64.urlsafe_b64encode(raw[:32] + raw[32:].replace(b"[1,", b"[2,")).decode()
    stranger = Addresses(b"another secret").url(
        "http://h", Kind.RUN_FILE_UP, KEY_ID, 1, "media/plot.png"
    )
    turned = token[::-1]
    for forged in ("x", "%00", token[:-1], turned, other_run, stranger.rpartition("/")[2]):
        assert client.put(f"/uploads/{forged}", b"evil").status == 403, forged
    assert client.put(f"/uploads/{token}", b"good").status == 200


def test_an_address_does_not_last(
    client: Client, url: str, monkeypatch: pytest.MonkeyPatch, tracker: Tracker
) -> None:
    now = time.time()
    monkeypatch.setattr("runyard.server.people.signed_addresses.time.time", lambda: now + 25 * 3600)
    with pytest.raises(BadAddress, match="expired"):
        tracker.accounts.signed(Kind.RUN_FILE_UP, url.rpartition("/")[2])
    assert client.put(url, b"late").status == 403


def test_an_address_outlives_the_server(
    client: Client, url: str, home: Home, tracker: Tracker
) -> None:
    tracker.close()
    again = Tracker(home)
    again.open("k" * 40)
    caller, claim = again.accounts.signed(Kind.RUN_FILE_UP, url.rpartition("/")[2])
    assert (caller.name, claim) == ("ada", [1, "media/plot.png"])
    again.close()


def test_a_damaged_secret_is_made_anew(home: Home, tracker: Tracker) -> None:
    tracker.close()
    home.secret.write_text("damaged")
    again = Tracker(home)
    again.open("k" * 40)
    assert len(bytes.fromhex(home.secret.read_text())) == 32
    again.close()


def test_the_run_is_gone(client: Client, url: str, tracker: Tracker) -> None:
    tracker._database.write(lambda c: c.execute("DELETE FROM runs")).result()
    assert client.put(url, b"x").status == 404


def test_reading_needs_the_key(client: Client, url: str) -> None:
    client.put(url, b"secret plot")
    answer = client.request("GET", FILE, key=None)
    assert answer.status == 401
    assert b"secret plot" not in answer.body


@pytest.mark.parametrize(
    "path",
    [
        "/files/ada/birds/run1/../../../../etc/passwd",
        "/files/ada/birds/run1/..%2f..%2f..%2fsecret",
        "/files/ada/birds/run1/%2fetc%2fpasswd",
        "/files/ada/birds/run1/..",
        "/files/ada/birds/run1/%00",
        "/files/ada/birds/run1/",
        "/files/ada/birds/nobody/media/plot.png",
        "/files/ada/birds",
        "/files/",
    ],
)
def test_paths_that_lead_elsewhere_lead_nowhere(client: Client, url: str, path: str) -> None:
    client.put(url, b"x")
    assert client.get(path).status == 404


def test_whatever_a_file_is_called_it_lies_in_its_runs_folder(home: Home, tracker: Tracker) -> None:
    for name in ("../../x", "/etc/passwd", "a" * 1000, "é", "a\\b"):
        assert tracker.uploads.path(7, name).parent == home.files / "7"


@pytest.mark.parametrize("name", ["a.txt", "media/images/a_0_ff.png", "é ü.txt", "...", "a b/-c"])
def test_ordinary_names(name: str) -> None:
    check_name(name)


@pytest.mark.parametrize("name", ["", "/a", "a/", "a//b", "..", "a/../b", ".", "\x1f", "\ud800"])
def test_hostile_names(name: str) -> None:
    with pytest.raises(UnsafeName):
        check_name(name)
