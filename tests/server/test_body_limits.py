"""How much a body may hold: little without a key, and with one no more than its route needs."""

from __future__ import annotations

import gzip
import json
import tracemalloc

import pytest

from tests.server.asgi import Answer, Client

PAGE = {"x-runyard": "page", "sec-fetch-site": "same-origin"}
STREAM = "/files/ada/birds/run1/file_stream"
# 20 million lists: 60 kB on the wire, and more than a gigabyte once they are Python's.
LISTS = b'{"code":[' + b"[]," * 20_000_000 + b"[]]}"


@pytest.fixture(scope="module")
def packed_lists() -> bytes:
    return gzip.compress(LISTS, compresslevel=1)


def log_in(client: Client, body: bytes, **headers: str) -> Answer:
    return client.request("POST", "/api/login", [body], key=None, headers={**PAGE, **headers})


def test_without_a_key_nothing_is_unpacked(client: Client, packed_lists: bytes) -> None:
    # Small enough to be read: what it holds is not looked at.
    small = gzip.compress(json.dumps({"code": "a" * 1_000}).encode())
    assert log_in(client, small, **{"content-encoding": "gzip"}).status == 415
    assert log_in(client, packed_lists, **{"content-encoding": "gzip"}).status == 413


def test_without_a_key_four_kilobytes_are_read(client: Client) -> None:
    assert log_in(client, json.dumps({"code": "a" * 4_000}).encode()).status == 403
    refused = log_in(client, json.dumps({"code": "a" * 4_100}).encode())
    assert refused.status == 413
    assert "4 KiB" in refused.json()["error"]


@pytest.mark.parametrize("path", ["/graphql", STREAM, "/api/runs", "/api/login/codes"])
def test_with_a_key_lists_of_lists_are_counted_before_they_are_read(
    client: Client, packed_lists: bytes, path: str
) -> None:
    tracemalloc.start()
    try:
        answer = client.request("POST", path, [packed_lists], headers={"content-encoding": "gzip"})
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # A route without a body does not read it.
    assert answer.status == (200 if path == "/api/login/codes" else 413)
    assert most < 4 * len(LISTS)


def test_what_clients_log_may_be_larger_than_what_a_command_asks(client: Client) -> None:
    large = json.dumps({"query": "{ viewer { id } }", "variables": {"a": "b" * (5 << 20)}}).encode()
    assert client.request("POST", "/graphql", [large]).status == 200
    refused = client.request("POST", "/api/runs", [large])
    assert refused.status == 413
    assert "4 MiB" in refused.json()["error"]
