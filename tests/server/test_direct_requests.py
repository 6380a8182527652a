"""Requests that are answered beside the application: never otherwise than the application would."""

from __future__ import annotations

import asyncio
import datetime
import gzip
import itertools
import json
import ssl
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runyard.home import Home
from runyard.server.history.history import HISTORY, read_rows
from runyard.server.http.certificates import make_authority, sign_server
from runyard.server.http.routes import Endpoint
from runyard.server.people.api_keys import hash_key
from runyard.server.people.permissions import RUNS, Caller
from runyard.server.tracker import Tracker
from runyard.server.tracking import deletion
from tests.server.asgi import KEY
from tests.server.fake_wire import PROXY, Served, authorization, request
from tests.server.persons import Person, add_person
from tests.server.sweeping import GRID, Agent, create

NOW = datetime.datetime.now(datetime.timezone.utc)
HYPERBAND = {**GRID, "early_terminate": {"type": "hyperband", "min_iter": 1, "eta": 3}}
# The same letters in requests to both servers; each puts its own in their place.
BOB, GONE = "b" * 40, "g" * 40
TRIAL, OTHER_TRIAL = "tttttttt", "uuuuuuuu"
OPEN = ["run", "other", "synced", "shared", "missing", "deleted", TRIAL, OTHER_TRIAL]
STORED = {
    "runs": "id, state, seen_client, preempting, exit_code, summary, stop_asked",
    "clients": "run, number, kind, writer, exit_code, history_shift, events_shift",
    "batches": "run, stream, start, stop, data",
    "lines": "*",
    "keys": "*",
    "trials": "number, state, cause, stop, measured, score",
}


def put_in(text: bytes, words: Mapping[bytes, bytes]) -> bytes:
    for old, new in words.items():
        text = text.replace(old, new)
    return text


async def revoke_in(tracker: Tracker, key: str) -> None:
    def change(db: Any) -> None:
        db.execute("DELETE FROM api_keys WHERE hash = ?", (hash_key(key),))

    await tracker.accounts.change(change)


class Side:
    """One of the two servers, with a run of each kind that posts may be for."""

    def __init__(self, home: Home, *, direct: bool) -> None:
        self.served = Served(home, direct=direct)
        client, self.tracker = self.served.client, self.served.tracker
        self.ada = Person(client, "ada", KEY)
        self.bob, gone = add_person(self.ada, "bob"), add_person(self.ada, "eve")
        self.revoke(gone.key)
        sweep = create(client, HYPERBAND)
        agent = Agent(client, sweep["key"])
        trials = [agent.claim()["run"]["id"] for _ in range(2)]
        pairs = zip((BOB, GONE, TRIAL, OTHER_TRIAL), (self.bob.key, gone.key, *trials), strict=True)
        self.words = {
            old: new
            for word, own in pairs
            for old, new in (
                (word.encode(), own.encode()),
                (authorization(word), authorization(own)),
            )
        }
        for run in OPEN:
            if run != "missing":
                self.ada.log(self.own(run), config="{}")
        self.change(
            "UPDATE clients SET kind = 'sync' WHERE run = (SELECT key FROM runs WHERE id = ?)",
            "synced",
        )
        key = client.get("/api/run", name="birds/deleted").json()["key"]
        self.tracker._database.write(lambda db: deletion.delete_run(db, key, 1.0)).result()

    def own(self, word: str) -> str:
        return self.words.get(word.encode(), word.encode()).decode()

    def revoke(self, key: str) -> None:
        self.served.loop.run_until_complete(revoke_in(self.tracker, key))

    def client_rows(self) -> list[Any]:
        run = self.served.client.get("/api/run", name="birds/run").json()["key"]
        return self.tracker._database.read(lambda db: list(read_rows(db, run, HISTORY))).result()

    def change(self, statement: str, *values: object) -> None:
        self.tracker._database.write(lambda db: db.execute(statement, values)).result()

    def talk(self, stream: bytes, cuts: Sequence[int] = (), **more: Any) -> bytes:
        spoken = put_in(stream, self.words)
        places = [0, *sorted(cut % (len(spoken) + 1) for cut in cuts), len(spoken)]
        fragments = [spoken[start:stop] for start, stop in itertools.pairwise(places)]
        back = {new: old for old, new in self.words.items()}
        return put_in(self.served.talk([part for part in fragments if part], **more), back)

    def stored(self) -> dict[str, Any]:
        def read(db: Any) -> dict[str, Any]:
            return {
                table: sorted(map(repr, map(tuple, db.execute(f"SELECT {columns} FROM {table}"))))
                for table, columns in STORED.items()
            }

        tables = self.tracker._database.read(read).result()
        words = {new.decode(): old.decode() for old, new in self.words.items()}
        for table, rows in tables.items():
            for own, word in words.items():
                rows = [row.replace(own, word) for row in rows]
            tables[table] = sorted(rows)
        return tables


ROW = st.sampled_from(
    [
        '{"loss":0.5,"_step":1}',
        '{"loss":9.5,"a":{"b":1}}',
        '{"loss":NaN}',
        "nonsense",
        "",
        '{"x":"\\ud800"}',
    ]
)
PART = st.fixed_dictionaries(
    {},
    optional={
        "offset": st.one_of(st.integers(0, 4), st.sampled_from([-1, "a", None, 2**60])),
        "content": st.one_of(st.lists(ROW, max_size=3), st.sampled_from(["a", [1], None])),
    },
)
FILES = st.dictionaries(
    st.sampled_from(
        ["wandb-history.jsonl"] * 4
        + ["wandb-events.jsonl", "output.log", "wandb-summary.json", "config.yaml"]
    ),
    PART,
    max_size=3,
)
CONTENT = st.fixed_dictionaries(
    {"files": FILES},
    optional={
        "complete": st.sampled_from([False, False, True]),
        "exitcode": st.sampled_from([0, 1, None, "a", 1.0]),
        "preempting": st.sampled_from([False, False, True]),
    },
)
ODD_BODIES = [
    b"", b"{", b"[]", b"null", b'{"files": []}', b'{"files": {"output.log": 1}}', b"\xff",
    b'{"files":' + b"[" * 2_000 + b"]" * 2_000 + b"}", b'{"a":"' + b"a" * 70_000 + b'"}',
    b'{"n":' + b"9" * 30 + b"}", gzip.compress(b"{}"),
]  # fmt: skip
BODY = st.one_of(CONTENT.map(lambda c: json.dumps(c).encode()), st.sampled_from(ODD_BODIES))
GOOD_BODY = st.builds(
    lambda offset, rows, more: json.dumps(
        {"files": {"wandb-history.jsonl": {"offset": offset, "content": rows}}, **more}
    ).encode(),
    st.integers(0, 9),
    st.lists(st.sampled_from(['{"loss":0.5}', '{"loss":2,"acc":0.25}']), max_size=2),
    st.sampled_from([{}, {}, {"complete": True, "exitcode": 0}]),
)
RUN = st.sampled_from(["run"] * 6 + ["other"] * 3 + OPEN)
PLAIN_PATH = RUN.map(lambda run: f"/files/ada/birds/{run}/file_stream")
ODD_PATHS = [
    "/files/ada/birds/ru%6e/file_stream", "/files/ada/birds/run/file_stream?a=1",
    "/files/ada/birds/run/file_stream/", "//files/ada/birds/run/file_stream",
    "http://yard.example/files/ada/birds/run/file_stream", "/files/ada/birds//file_stream",
    "/files/bob/birds/run/file_stream", "/files/nobody/birds/run/file_stream",
    "/files/ada/birds/run/file_stream#a", "/files/ada/../birds/run/file_stream",
    "/files/ada/birds/run/output.log", "/files/a%2fb/birds/run/file_stream", "/graphql",
    "/api/health", "/files/ada/birds/run/file_stream%0a", "*", "/api/nothing",
    "/files/ada/birds/r\xfcn/file_stream", "/Files/ada/birds/run/file_stream",
]  # fmt: skip
ODD_HEADERS: list[tuple[str, bytes]] = [
    ("Expect", b"100-continue"), ("Content-Encoding", b"gzip"), ("Connection", b"close"),
    ("Connection", b"keep-alive"), ("Connection", b"upgrade"), ("Upgrade", b"websocket"),
    ("Transfer-Encoding", b"chunked"), ("Transfer-Encoding", b"identity"),
    ("Content-Length", b"0"), ("Content-Length", b"3"), ("X-Forwarded-For", b"10.9.9.9"),
    ("Authorization", authorization("nobody")), ("Authorization", authorization(BOB)),
    ("authorization", b"basic ===="), ("Authorization", b"Bearer x"), ("Cookie", b"runyard=a"),
    ("X-Wandb-Use-Async-Filestream", b"true"), ("X-Wandb-Async-Client-Id", b"w"),
    ("X-Big", b"a" * 5_000), ("X-Huge", b"a" * 70_000), ("Bad Name", b"a"), ("X-Bad", b"a\x00b"),
    ("Sec-Fetch-Site", b"cross-site"), ("TE", b"trailers"), ("Origin", b"http://strange.example"),
]  # fmt: skip
KEYS = st.sampled_from([KEY] * 8 + [BOB, GONE, "wrong", "", None])


def chunked(body: bytes) -> bytes:
    return b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n"


REQUEST = st.one_of(
    # What is answered directly, most of it.
    st.builds(request, PLAIN_PATH, GOOD_BODY),
    st.builds(request, PLAIN_PATH, GOOD_BODY, key=KEYS),
    st.builds(request, PLAIN_PATH, BODY, key=KEYS),
    # Something about it is unusual.
    st.builds(
        lambda path, body, more, **rest: request(path, body, *more, **rest),
        st.one_of(PLAIN_PATH, st.sampled_from(ODD_PATHS)),
        BODY,
        st.lists(st.sampled_from(ODD_HEADERS), max_size=2),
        key=KEYS,
        method=st.sampled_from(["POST"] * 5 + ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "post"]),
        version=st.sampled_from(["1.1"] * 5 + ["1.0", "2.0", "0.9"]),
        length=st.sampled_from([None] * 6 + [-1, 1, 500]),
    ),
    st.builds(
        lambda path, body: request(
            path, chunked(body), ("Transfer-Encoding", b"chunked"), length=-1
        ),
        PLAIN_PATH,
        BODY,
    ),
    st.builds(
        lambda path, body: request(path, gzip.compress(body), ("Content-Encoding", b"gzip")),
        PLAIN_PATH,
        BODY,
    ),
    st.builds(
        lambda path: request(path, b"{}", *[(f"X-{n}", b"a") for n in range(60)]), PLAIN_PATH
    ),
    st.sampled_from([b"\r\n", b"nonsense\r\n\r\n", b"GET / HTTP/1.1\r\n", b"\x16\x03\x01"]),
)
CUTS: st.SearchStrategy[list[int]] = st.one_of(
    st.just([]), st.lists(st.integers(0, 200_000), max_size=4)
)


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOGNAME", "ada")
        folder = tmp_path_factory.mktemp("sides")
        sides = Side(Home(folder / "a"), direct=True), Side(Home(folder / "b"), direct=False)
        yield sides
        assert sides[0].served.taken > 20
        assert not sides[1].served.taken
        for side in sides:
            side.served.close()


@settings(max_examples=300)
@given(st.lists(REQUEST, min_size=1, max_size=5), CUTS, st.booleans())
def test_answers_and_what_is_stored_are_those_of_the_application(
    sides: tuple[Side, Side], requests: list[bytes], cuts: list[int], patient: bool
) -> None:
    direct, ordinary = sides
    for side in sides:
        # Whatever ended it: its next process has begun.
        side.ada.log("run", config="{}")
    stream = b"".join(requests)
    if patient:  # One request after the other, on a connection that is kept.
        cuts = list(itertools.accumulate(map(len, requests)))
    answers = [side.talk(stream, cuts, patient=patient) for side in sides]
    assert answers[0] == answers[1]
    assert direct.stored() == ordinary.stored()


PATH = "/files/ada/birds/run/file_stream"


@pytest.fixture
def side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Side]:
    monkeypatch.setenv("LOGNAME", "ada")
    side = Side(Home(tmp_path / "state"), direct=True)
    yield side
    side.served.close()


def rows(*values: float, offset: int = 0, **more: Any) -> bytes:
    content = [json.dumps({"loss": value}) for value in values]
    files = {"wandb-history.jsonl": {"offset": offset, "content": content}}
    return json.dumps({"files": files, **more}).encode()


def statuses(answers: bytes) -> list[int]:
    return [int(part[:3]) for part in answers.split(b"HTTP/1.1 ")[1:]]


def test_short_posts_are_answered_directly_and_others_are_not(side: Side) -> None:
    def taken(*requests: bytes, **more: Any) -> int:
        before = side.served.taken
        answers = side.talk(b"".join(requests), **more)
        assert set(statuses(answers)) == {200}
        return side.served.taken - before

    assert taken(request(PATH, rows(1.0))) == 1
    assert taken(request(PATH, rows(1.0)), peer=PROXY) == 1
    assert taken(request("/files/ada/birds/tttttttt/file_stream", rows(1.0))) == 1
    # The second one waits for the first as the application's do.
    assert taken(request(PATH, rows(1.0)), request(PATH, rows(2.0))) == 1
    assert taken(request(PATH, rows(1.0), ("Connection", b"close"))) == 0
    assert taken(request(PATH.replace("run", "%72un", 1), rows(1.0))) == 0
    assert taken(request(PATH, rows(*[0.5] * 5_000))) == 0
    whole = request(PATH, rows(1.0))
    assert taken(whole, cuts=[len(whole) - 1]) == 0
    # The head may come in pieces, if the body comes with its last one.
    assert taken(whole, cuts=[5, 40]) == 1


def test_a_revoked_key_is_refused_by_the_next_request_of_its_connection(side: Side) -> None:
    served, post = (
        side.served,
        request("/files/bob/birds/run/file_stream", rows(), key=side.bob.key),
    )

    async def ask() -> list[int]:
        protocol, transport = served.connect()
        protocol.data_received(post)
        await served.settle(protocol)
        await served.all_done()
        await revoke_in(side.tracker, side.bob.key)
        protocol.data_received(post)
        await served.settle(protocol)
        return statuses(transport.written)

    side.bob.log("run")
    assert served.loop.run_until_complete(ask()) == [200, 401]
    assert served.taken == 1


def test_a_route_that_is_closed_to_keys_for_runs_is_closed_here_too() -> None:
    async def nothing(_: Any) -> Any: ...

    of_runs, of_all = Caller(1, "ada", scope=RUNS), Caller(1, "ada")
    for endpoint, opens in (
        (Endpoint("POST", "/a", nothing), [False, True]),
        (Endpoint("POST", "/a", nothing, RUNS), [True, True]),
    ):
        assert [endpoint.is_open_to(caller) for caller in (of_runs, of_all)] == opens


def test_a_direct_request_notes_the_address_that_a_proxy_tells(side: Side) -> None:
    asked = request(PATH, rows(1.0), ("X-Forwarded-For", b"10.9.9.9"))
    for peer, address in ((PROXY, "10.9.9.9"), ("10.1.1.1", "10.1.1.1")):
        side.talk(asked, peer=peer)
        assert [use[1] for use in side.tracker.accounts._take_uses().values()] == [address]


def test_a_server_that_stops_waits_for_an_answer_and_then_closes(side: Side) -> None:
    served = side.served
    held, go_on = threading.Event(), threading.Event()

    def hold(_: object) -> None:
        held.set()
        go_on.wait(60)

    async def stop() -> tuple[int, bytes, bool]:
        protocol, transport = served.connect()
        side.tracker._database.write(hold)
        await asyncio.to_thread(held.wait, 60)
        protocol.data_received(request(PATH, rows(1.0)))
        protocol.shutdown()
        waiting = len(served.state.tasks)
        assert not transport.is_closed
        go_on.set()
        await served.settle(protocol)
        return waiting, transport.written, transport.is_closed

    waiting, written, is_closed = served.loop.run_until_complete(stop())
    assert (waiting, statuses(written), is_closed) == (1, [200], True)
    assert b"\r\nconnection: close\r\n" in written


@pytest.mark.parametrize("run", ["run", "tttttttt", "missing"])
def test_who_has_gone_is_not_answered_and_what_it_sent_is_stored(side: Side, run: str) -> None:
    served = side.served
    before = len(side.stored()["batches"])

    async def leave() -> bytes:
        protocol, transport = served.connect()
        path = PATH.replace("run", side.own(run))
        protocol.data_received(request(path, rows(1.0)))
        transport.lose()
        await served.all_done()
        return transport.written

    assert served.loop.run_until_complete(leave()) == b""
    assert len(side.stored()["batches"]) == before + (run != "missing")


@pytest.mark.parametrize("broken", ["may_write", "note"])
def test_our_own_trouble_is_not_the_clients(
    side: Side, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("out of luck")

    owner = side.tracker.accounts if broken == "may_write" else side.tracker.joiner
    monkeypatch.setattr(owner, broken, fail)
    assert statuses(side.talk(request(PATH, rows(1.0)))) == [503]
    monkeypatch.undo()
    assert statuses(side.talk(request(PATH, rows(1.0)))) == [200]


def test_an_answer_waits_for_a_reader_that_is_slow(side: Side) -> None:
    served = side.served

    async def ask() -> tuple[bytes, bytes]:
        protocol, transport = served.connect()
        protocol.pause_writing()
        protocol.data_received(request(PATH, rows(1.0)))
        await asyncio.sleep(0.2)
        early = transport.written
        protocol.resume_writing()
        await served.settle(protocol)
        return early, transport.written

    early, written = served.loop.run_until_complete(ask())
    assert (early, statuses(written)) == (b"", [200])


@pytest.mark.parametrize("sealed", [False, True])
def test_over_a_socket(side: Side, tmp_path: Path, sealed: bool) -> None:
    served = side.served
    pair, trusting = None, None
    if sealed:
        authority = make_authority("ours", NOW)
        signed = sign_server(authority, ["localhost"], ["127.0.0.1"], NOW)
        (tmp_path / "server.pem").write_text(signed.certificate + signed.key)
        pair = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        pair.load_cert_chain(tmp_path / "server.pem")
        trusting = ssl.create_default_context(cadata=authority.certificate)
    served.protocol_class.tls = pair
    posts = [request(PATH, rows(float(number), offset=number)) for number in range(20)]
    bad = request(PATH, rows(1.0), key="wrong")

    async def ask() -> bytes:
        server: Any = await served.loop.create_server(served.new_protocol, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting)
        written = b""
        for number, post in enumerate([*posts, bad, posts[0]]):
            for part in (post,) if number % 3 else (post[:200], post[200:]):
                writer.write(part)
                await asyncio.sleep(0.01)
            head = await reader.readuntil(b"\r\n\r\n")
            size = int(head.partition(b"content-length: ")[2].split(b"\r\n")[0])
            written += head + await reader.readexactly(size)
        writer.write(b"".join(posts))
        for _ in posts:
            head = await reader.readuntil(b"\r\n\r\n")
            written += head + await reader.readexactly(28)
        writer.close()
        server.close()
        return written

    written = served.loop.run_until_complete(ask())
    assert statuses(written) == [200] * 20 + [401] + [200] * 21
    assert served.taken >= 14
    assert len(side.client_rows()) == 20
