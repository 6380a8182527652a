"""What a client streams: each line once, the newest summary, the run's state, strict limits."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from runyard.server.history import history
from runyard.server.history.history import read_rows
from runyard.server.processes.console_lines import get_lines
from runyard.server.tracker import Tracker
from tests.server.asgi import Answer, Client, basic
from tests.server.conftest import Upsert

STREAM = "/files/ada/birds/run1/file_stream"
HISTORY, EVENTS = "wandb-history.jsonl", "wandb-events.jsonl"


@pytest.fixture(autouse=True)
def run1(upsert: Upsert) -> None:
    upsert(name="run1")


def post(
    client: Client, file: str | None = None, offset: int = 0, *lines: str, **more: Any
) -> Answer:
    files = {file: {"offset": offset, "content": list(lines)}} if file else {}
    return client.post(STREAM, {"files": files, **more})


def stored(tracker: Tracker) -> list[tuple[int, str]]:
    """The rows of history, in JSON without blanks."""
    return tracker._database.read(lambda c: list(read_rows(c, 1, history.HISTORY))).result()


def console(tracker: Tracker) -> list[tuple[int, str]]:
    return tracker._database.read(lambda c: list(get_lines(c, 1, "output.1"))).result()


def state(client: Client) -> tuple[str, int | None]:
    run = client.get("/api/run", name="run1").json()
    return run["state"], run["exit_code"]


def test_sent_again_it_is_there_once(client: Client, tracker: Tracker) -> None:
    for _ in range(3):
        answer = post(client, HISTORY, 0, '{"_step": 0}', '{"_step": 1}')
        assert answer.status == 200
        assert answer.json() == {"exitcode": None, "limits": {}}
    post(client, HISTORY, 1, '{"_step": 1}', '{"_step": 2}')
    assert stored(tracker) == [(n, f'{{"_step":{n}}}') for n in range(3)]


def test_a_gap_counts_as_lines(client: Client, tracker: Tracker) -> None:
    post(client, HISTORY, 4, '{"a": 4}')
    assert stored(tracker) == [(4, '{"a":4}')]
    assert client.get("/api/run", name="run1").json()["steps"] == 5


def test_the_last_summary_wins(client: Client) -> None:
    post(client, "wandb-summary.json", 0, '{"a": 1}')
    post(client, "wandb-summary.json", 0, '{"b": 1}', '{"b": 2, "_wandb": {"runtime": 3}}')
    assert client.get("/api/run", name="run1").json()["summary"] == {"b": 2}


@pytest.mark.parametrize("broken", ["", "nonsense", "[1]", '{"a":' * 5_000], ids=lambda b: b[:10])
def test_a_broken_summary_is_passed_over_and_the_rest_kept(
    client: Client, tracker: Tracker, broken: str
) -> None:
    post(client, "wandb-summary.json", 0, '{"a": 1}')
    files = {
        "wandb-summary.json": {"offset": 0, "content": [broken]},
        HISTORY: {"offset": 0, "content": ["{}"]},
    }
    assert client.post(STREAM, {"files": files}).status == 200
    assert client.get("/api/runs").json()[0]["summary"] == {"a": 1}
    assert stored(tracker) == [(0, "{}")]


def test_console_lines_are_rewritten_in_place(client: Client) -> None:
    post(
        client, "output.log", 0, "2026-01-02T03:04:05.678901 10%", "ERROR 2026-01-02T03:04:05 oh\n"
    )
    post(client, "output.log", 0, "2026-01-02T03:04:06.678901 20%")
    page = client.get("/api/runs/1/console").json()
    assert page == {"text": "20%\noh\n", "next": 2, "ended": False}


def test_line_feeds_inside_a_line_do_not_make_two(client: Client, tracker: Tracker) -> None:
    post(client, HISTORY, 0, '{"a":\n1}\n', '{"b": 2}\n')
    post(client, "output.log", 0, "two\nlines")
    assert [json.loads(line) for _, line in stored(tracker)] == [{"a": 1}, {"b": 2}]
    assert console(tracker) == [(0, "two\\nlines")]


def test_files_that_are_not_known_are_passed_over(client: Client) -> None:
    assert post(client, "wandb-tomorrow.jsonl", 0, "x").status == 200


@pytest.mark.parametrize(
    ("posts", "wanted"),
    [
        ([{}], ("running", None)),
        ([{"complete": True, "exitcode": 0}], ("finished", 0)),
        ([{"complete": True, "exitcode": 3}], ("failed", 3)),
        ([{"complete": True, "exitcode": 255}], ("failed", 255)),
        ([{"complete": True, "exitcode": -15}], ("failed", -15)),
        ([{"complete": True, "exitcode": 1.0}], ("failed", 1)),
        ([{"complete": True, "exitcode": 10**30}], ("failed", 1)),
        ([{"complete": True, "exitcode": "bad"}], ("failed", 1)),
        ([{"complete": True, "exitcode": None}], ("finished", 0)),
        ([{"preempting": True}], ("preempting", None)),
        ([{"preempting": True}, {"complete": True, "exitcode": 1}], ("preempted", 1)),
        ([{"preempting": True}, {"complete": True, "exitcode": 0}], ("finished", 0)),
        ([{"preempting": True, "complete": True, "exitcode": 1}], ("preempted", 1)),
        # The heartbeat of Python-generation clients, and data after the end.
        ([{"complete": False, "failed": False, "dropped": 0, "uploaded": []}], ("running", None)),
        ([{"complete": True, "exitcode": 0}, {}], ("finished", 0)),
        ([{"complete": True, "exitcode": 2}, {"files": None}], ("failed", 2)),
    ],
    ids=str,
)
def test_states(client: Client, posts: list[dict[str, Any]], wanted: tuple[str, int]) -> None:
    for content in posts:
        assert client.post(STREAM, content).status == 200
    assert state(client) == wanted


def test_an_unknown_run_is_our_trouble_not_the_clients_end(client: Client) -> None:
    answer = client.post("/files/ada/birds/gone/file_stream", {})
    assert answer.status == 503
    assert "gone" in answer.json()["error"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"nonsense",
        b"[]",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"files": 3}',
        b'{"files": {"output.log": []}}',
        b'{"files": {"output.log": {"offset": -1, "content": ["x"]}}}',
        b'{"files": {"output.log": {"offset": 1.5, "content": ["x"]}}}',
        b'{"files": {"output.log": {"offset": 99999999999999999999, "content": ["x"]}}}',
        b'{"files": {"output.log": {"offset": 0, "content": "x"}}}',
        b'{"files": {"output.log": {"offset": 0, "content": [1]}}}',
    ],
    ids=lambda body: body[:60],
)
def test_what_cannot_be_read_will_not_be_readable_next_time(client: Client, body: bytes) -> None:
    answer = client.post(STREAM, body)
    assert answer.status == 400
    assert answer.json()["error"]


def _gzipped(client: Client, body: bytes, encoding: str = "gzip") -> Answer:
    return client.request("POST", STREAM, [body], headers={"content-encoding": encoding})


def test_a_compressed_body(client: Client, tracker: Tracker) -> None:
    content = json.dumps({"files": {HISTORY: {"offset": 0, "content": ["{}"]}}}).encode()
    assert _gzipped(client, gzip.compress(content)).status == 200
    assert _gzipped(client, gzip.compress(content), "GZIP").status == 200
    assert stored(tracker) == [(0, "{}")]
    assert _gzipped(client, gzip.compress(content)[:-5]).status == 400
    assert _gzipped(client, content).status == 400


def test_a_small_body_that_unpacks_to_gigabytes(client: Client) -> None:
    assert _gzipped(client, gzip.compress(bytes(65 << 20))).status == 413


def test_a_body_that_does_not_end(client: Client) -> None:
    assert client.request("POST", STREAM, [bytes(8 << 20)] * 9).status == 413


def test_odd_numbers_are_kept_and_served_as_strict_json(client: Client, tracker: Tracker) -> None:
    big = 10**400
    lines = [
        '{"_step":0,"loss":NaN,"up":Infinity,"down":-Infinity}',
        f'{{"_step":1,"loss":1.5,"big":{big},"exact":{2**60 + 1}}}',
    ]
    post(client, HISTORY, 0, *lines)
    post(client, "wandb-summary.json", 0, '{"loss": NaN, "up": [Infinity]}')
    assert [line for _, line in stored(tracker)] == lines
    assert client.get("/api/run", name="run1").json()["summary"] == {
        "loss": "NaN",
        "up": ["Infinity"],
    }
    series = {found["key"]: found for found in client.get("/api/runs/1/metrics").json()}
    assert series["loss"]["values"] == [None, 1.5]
    assert series["loss"]["minimum"] == 1.5
    assert series["up"]["last"] == "Infinity"
    assert series["exact"]["last"] == float(2**60 + 1)
    assert "big" not in series  # Kept as it is, but no number that can be drawn.


def test_half_a_surrogate_pair_comes_back_as_it_was(client: Client, tracker: Tracker) -> None:
    post(client, "output.log", 0, "a \ud83d b")
    post(client, "wandb-summary.json", 0, '{"a": "\ud83d"}')
    assert console(tracker) == [(0, "a \ud83d b")]
    assert client.get("/api/runs/1/console").json()["text"] == "a \ud83d b\n"
    assert client.get("/api/run", name="run1").json()["summary"] == {"a": "?"}


def test_a_row_of_ten_thousand_keys(client: Client) -> None:
    row = {f"layer/{number}": number * 0.5 for number in range(10_000)}
    post(client, HISTORY, 0, json.dumps(row), json.dumps(row))
    series = client.get("/api/runs/1/metrics", points=5).json()
    assert len(series) == 10_000
    assert all(found["count"] == 2 for found in series)


def test_a_summary_nested_deep_does_not_hide_the_other_runs(client: Client, upsert: Upsert) -> None:
    upsert(name="run2")
    deep = '{"a":' * 400 + "NaN" + "}" * 400
    post(client, "wandb-summary.json", 0, deep)
    assert {run["id"] for run in client.get("/api/runs").json()} == {"run1", "run2"}


def test_a_stream_needs_the_key(client: Client) -> None:
    answer = client.request("POST", STREAM, [b"{}"], headers={"authorization": basic("wrong")})
    assert answer.status == 401


def test_a_post_is_answered_as_any_other_question_is(client: Client) -> None:
    """Posts go past the application's layers: headers, refusals and errors are the same."""
    good, elsewhere = post(client, HISTORY, 0, "{}"), client.get("/api/run", name="run1")
    closed = ("content-security-policy", "x-content-type-options", "referrer-policy")
    assert [good.headers[name] for name in closed] == [elsewhere.headers[name] for name in closed]
    for stranger in ("nobody's" * 5, None):
        refused = client.post(STREAM, {}, key=stranger)
        challenge = refused.headers["www-authenticate"]
        assert (refused.status, challenge) == (401, 'Basic realm="runyard"')
