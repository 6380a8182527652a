"""A server that speaks TLS: who is let in, who is believed, and that nothing of it ends."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import json
import socket
import ssl
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from runyard.certificate_facts import describe
from runyard.client.discover import start_server, stop_server
from runyard.errors import ServerError
from runyard.home import Discovery, Home, prepare, read_discovery, write_discovery
from runyard.locks import FolderLock
from runyard.node.link.channel import Answer, Channel
from runyard.node.link.place import Place
from runyard.node.link.unreached import explain
from runyard.node.system.loop import Loop
from runyard.server.http import certificates
from runyard.server.http.certificates import Pair
from runyard.server.http.listening import find_listening
from runyard.server.http.tls import Tls, TlsOptions, is_covered, names_of
from runyard.trust import SERVER_NAME, pinned_context
from tests.conftest import run_runyard, wait_until
from tests.live.programs import curves
from tests.live.sweeping import api_of
from tests.node.doors import open_door
from tests.server.test_connections import SLOW, connected, many_files

__all__ = ["many_files"]  # A fixture.

NOW = datetime.datetime.now(datetime.timezone.utc)


def discovered(home: Home) -> Discovery:
    discovery = read_discovery(home)
    assert discovery is not None
    return discovery


def address_of(home: Home) -> tuple[str, int]:
    return "127.0.0.1", discovered(home).port


def shown_to(home: Home, name: str, context: ssl.SSLContext) -> str:
    """The issuer of the certificate that is shown to whoever comes by this name."""
    with (
        socket.create_connection(address_of(home)) as plain,
        context.wrap_socket(plain, server_hostname=name) as sealed,
    ):
        certificate = sealed.getpeercert()
        assert certificate is not None
        issuer = dict(part[0] for part in certificate["issuer"])  # type: ignore[misc]
        return str(issuer["commonName"])


@pytest.fixture
def sealed(state_folder: Home) -> Home:
    start_server(state_folder, options=["--tls"])
    return state_folder


@pytest.mark.live
def test_it_is_remembered_and_its_files_are_the_owners_alone(state_folder: Home) -> None:
    started = run_runyard("server", "start", "--tls")
    assert "started at https://127.0.0.1:" in started.stdout, started.stderr
    before = discovered(state_folder)
    assert run_runyard("run", "-q", "-e", "sealed", "true").returncode == 0
    assert "sealed" in run_runyard("runs").stdout
    assert run_runyard("server", "ca").stdout == before.authority
    files = list(state_folder.tls.iterdir())
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}

    assert run_runyard("server", "restart").returncode == 0
    after = discovered(state_folder)
    assert (after.url, after.authority, after.key) == (before.url, before.authority, before.key)

    plain = run_runyard("server", "restart", "--no-tls")
    assert "programs that were started before keep trying the old one" in plain.stderr
    assert discovered(state_folder).url.startswith("http://")
    refused = run_runyard("server", "start", "--tls")
    assert "`runyard server restart` with the same options" in refused.stderr
    assert "restart --tls" in run_runyard("server", "ca").stderr


@pytest.mark.live
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated")
def test_plain_http_is_told_and_old_tls_is_refused(sealed: Home) -> None:
    with socket.create_connection(address_of(sealed)) as plain:
        plain.sendall(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        plain.settimeout(180)
        said = b"".join(iter(lambda: plain.recv(4096), b""))
        assert said.startswith(b"HTTP/1.1 503 ")
        assert b"https://" in said
    context = pinned_context(discovered(sealed).authority)
    assert shown_to(sealed, SERVER_NAME, context).startswith("runyard of ")
    assert shown_to(sealed, "127.0.0.1", context).startswith("runyard of ")
    context.set_ciphers("DEFAULT@SECLEVEL=0")
    context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises(ssl.SSLError):
        shown_to(sealed, SERVER_NAME, context)


@pytest.mark.live
@pytest.mark.usefixtures("many_files")
def test_a_thousand_who_never_shake_hands_and_a_thousand_slow_ones_keep_nobody_out(
    sealed: Home,
) -> None:
    context = pinned_context(discovered(sealed).authority)
    hello = ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), hello, server_hostname=SERVER_NAME).do_handshake()
    half = hello.read()[:100]
    address = address_of(sealed)
    with (
        connected(address, 1_000, b"") as idle,
        connected(address, 700, half) as halves,
        shaken(address, context, 300, SLOW) as bodies,
    ):
        assert run_runyard("run", "-q", "-e", "through", "true").returncode == 0
        assert "through" in run_runyard("runs").stdout
        # Closed by the server, to make room: the first of those who came.
        idle[0].settimeout(0.0)
        with contextlib.suppress(ConnectionResetError):
            assert idle[0].recv(1) == b""
        bodies[-1].settimeout(0.0)
        with pytest.raises(ssl.SSLWantReadError):
            bodies[-1].recv(1)
        # Who has begun a handshake and does not go on is closed in time.
        halves[-1].settimeout(180.0)
        with contextlib.suppress(ConnectionResetError):
            assert halves[-1].recv(1) == b""


@contextlib.contextmanager
def shaken(
    address: tuple[str, int], context: ssl.SSLContext, count: int, first: bytes
) -> Iterator[list[ssl.SSLSocket]]:
    """Connections that are through the handshake and have begun a request."""
    with contextlib.ExitStack() as closing:
        made = []
        for _ in range(count):
            plain = closing.enter_context(socket.create_connection(address))
            sealed = context.wrap_socket(plain, server_hostname=SERVER_NAME)
            made.append(closing.enter_context(sealed))
            sealed.sendall(first)
        yield made


def test_what_has_ended_is_made_anew_at_the_start(state_folder: Home) -> None:
    prepare(state_folder)
    state_folder.tls.mkdir()
    long_ago = NOW - datetime.timedelta(days=9 * 365 + 100)
    old = certificates.make_authority("old", long_ago)
    ended = certificates.sign_server(old, ["a"], [], long_ago)
    (state_folder.tls / "authority.pem").write_text(old.certificate)
    (state_folder.tls / "authority.key").write_text(old.key)
    (state_folder.tls / "server.pem").write_text(ended.certificate + ended.key)
    made = Tls(state_folder, TlsOptions(True), find_listening("127.0.0.1"))
    about = describe((state_folder.tls / "server.pem").read_text())
    assert about.ends_at > NOW + datetime.timedelta(days=360)
    # An authority that would end before the certificate is no authority any more.
    assert made.authority.certificate != old.certificate
    again = Tls(state_folder, TlsOptions(True), find_listening("127.0.0.1"))
    assert again.authority == made.authority
    (state_folder.tls / "authority.key").write_text("damaged")
    assert (
        Tls(state_folder, TlsOptions(True), find_listening("127.0.0.1")).authority != made.authority
    )


def test_a_server_that_runs_for_long_renews_it_meanwhile(
    state_folder: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(state_folder)
    made = Tls(state_folder, TlsOptions(True), find_listening("127.0.0.1"))
    first = (state_folder.tls / "server.pem").read_text()
    monkeypatch.setattr("runyard.server.http.tls._LOOK_SECONDS", 0.01)

    async def wait_for_another() -> None:
        keeping = asyncio.ensure_future(made.keep())
        while (state_folder.tls / "server.pem").read_text() == first:
            await asyncio.sleep(0.01)
        keeping.cancel()

    asyncio.run(wait_for_another())


def test_it_is_good_for_every_name_and_address_of_the_machine() -> None:
    names, addresses = names_of(find_listening("0.0.0.0"))
    assert {SERVER_NAME, "localhost", socket.gethostname().lower()} <= set(names)
    assert {"127.0.0.1", "::1"} <= set(addresses)
    assert "0.0.0.0" not in addresses


@pytest.mark.parametrize(
    ("name", "is_good"),
    [
        ("lab.example", True), ("LAB.example.", True), ("x.pub.example", True),
        ("pub.example", False), ("a.x.pub.example", False), ("lab.example.org", False), ("", False),
    ],
)  # fmt: skip
def test_names_of_a_certificate(name: str, is_good: bool) -> None:
    assert is_covered(name, ("lab.example", "*.pub.example")) is is_good


def write_given(folder: Path, authority: Pair, ends_at: datetime.datetime) -> list[str]:
    """A certificate of the user's own, as files; the words to start a server with it."""
    given = certificates.sign_server(
        authority, ["lab.example"], [], ends_at - datetime.timedelta(days=365)
    )
    cert, key, root = folder / "lab.pem", folder / "lab.key", folder / "root.pem"
    cert.write_text(given.certificate)
    key.write_text(given.key)
    root.write_text(authority.certificate)
    return ["--tls-cert", str(cert), "--tls-key", str(key), "--tls-ca", str(root)]


@pytest.mark.live
def test_a_certificate_of_ones_own_is_shown_to_who_comes_by_its_name(
    state_folder: Home, tmp_path: Path
) -> None:
    authority = certificates.make_authority("the lab's", NOW - datetime.timedelta(days=400))
    words = write_given(tmp_path, authority, NOW + datetime.timedelta(days=9, hours=1))
    started = run_runyard("server", "start", *words)
    assert "lab.pem ends on" in started.stderr
    assert "in 9 days" in started.stderr
    assert shown_to(state_folder, "lab.example", pinned_context(authority.certificate)) == (
        "the lab's"
    )
    own = pinned_context(discovered(state_folder).authority)
    assert shown_to(state_folder, "localhost", own).startswith("runyard of ")
    assert run_runyard("runs").returncode == 0
    doctor = run_runyard("doctor", "--json").stdout
    assert "in 9 days" in doctor
    # What stock clients get trusts both, and what it trusted before.
    variables = json.loads(run_runyard("env", "--json").stdout)
    for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"):
        fish = run_runyard("env", "--shell", "fish").stdout
        assert f"set -gx {name} '{variables[name]}';" in fish
        shown = subprocess.run(
            ["bash", "-c", f'eval "$({sys.executable} -m runyard env)"; echo "${name}"'],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert shown.stdout == f"{variables[name]}\n"
    trusted = ssl.create_default_context(cafile=variables["SSL_CERT_FILE"])
    assert shown_to(state_folder, "lab.example", trusted) == "the lab's"
    assert shown_to(state_folder, "127.0.0.1", trusted).startswith("runyard of ")

    stop_server(state_folder)
    (tmp_path / "lab.key").write_text("damaged")
    failed = run_runyard("server", "start")
    assert failed.returncode != 0
    assert f"cannot use the certificate {tmp_path / 'lab.pem'}" in failed.stderr
    assert "--no-tls" in failed.stderr


@pytest.mark.live
def test_a_stranger_with_another_certificate_is_refused_and_told_nothing(
    state_folder: Home, tmp_path: Path
) -> None:
    """As if the server's machine had died and somebody else had taken its port."""
    start_server(state_folder, options=["--tls", "--listen", "0.0.0.0"])
    stop_server(state_folder)
    theirs = certificates.make_authority("theirs", NOW)
    fake = certificates.sign_server(theirs, [SERVER_NAME, "localhost"], ["127.0.0.1"], NOW)
    with stranger(fake, tmp_path) as (port, heard):
        url = f"https://127.0.0.1:{port}"
        write_discovery(
            state_folder,
            replace(discovered(state_folder), url=url, port=port, hostname="gone", running=True),
        )
        with FolderLock(state_folder.server_lock) as lock:
            assert lock.acquire()
            refused = run_runyard("runs")
            assert refused.returncode != 0
            assert f"what answers at {url} is not runyard's server: its certificate" in (
                refused.stderr
            )
            assert "self-signed certificate in certificate chain" in refused.stderr or (
                "unable to get local issuer certificate" in refused.stderr
            )
            assert "`runyard server restart --force`" in refused.stderr
            why = explain(str(state_folder.path))
            assert "is not the server of" in why
            assert "`runyard server restart` on gone" in why

            loop = Loop()
            answers: list[Answer] = []
            channel = Channel(loop, Place(str(state_folder.path), lambda _words: None))
            channel.post("/api/agents", {"secret": "of the agent"}, answers.append)

            def is_refused() -> bool:
                loop.turn(0.05)
                return channel.silent_since is not None

            wait_until(is_refused)
            assert answers == []
    assert heard
    assert b"".join(heard) == b""


@contextlib.contextmanager
def stranger(fake: Pair, folder: Path) -> Iterator[tuple[int, list[bytes]]]:
    """Takes connections, shows a certificate, and keeps what it is sent."""
    file = folder / "fake.pem"
    file.write_text(fake.certificate + fake.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    heard: list[bytes] = []

    def take() -> None:
        with contextlib.suppress(OSError):  # Closed, at the test's end.
            while True:
                made, _ = listening.accept()
                with contextlib.suppress(OSError), made:
                    heard.append(b"")
                    made.settimeout(10)
                    heard.append(context.wrap_socket(made, server_side=True).recv(65_536))

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=take, daemon=True)
        thread.start()
        yield listening.getsockname()[1], heard
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_an_https_address_without_an_authority_is_never_tried(state_folder: Home) -> None:
    with pytest.raises(ServerError, match="no authority to verify it by"):
        pinned_context("")


def test_the_package_that_is_missing_is_named(
    state_folder: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.x509", None)
    with pytest.raises(ServerError, match="needs the package cryptography") as caught:
        certificates.require_package()
    assert caught.value.mend == "pip install 'runyard[tls]'"


@pytest.mark.live
def test_an_agent_claims_and_its_program_logs_through_its_door(
    sealed: Home, tmp_path: Path
) -> None:
    """TLS from end to end: the agent's own requests, and its program's by the node's loopback."""
    (tmp_path / "train.py").write_text(
        "import os, pathlib, wandb\nrun = wandb.init()\nrun.log({'base': 1.0})\n"
        "pathlib.Path('address').write_text(os.environ['WANDB_BASE_URL'])\nrun.finish()\n"
    )
    (tmp_path / "sweep.yaml").write_text(
        "program: train.py\nmethod: grid\nparameters: {x: {values: [1]}}\n"
        f"command: [{sys.executable}, '${{program}}']\n"
    )
    made = json.loads(run_runyard("sweep", "--no-run", "--json", "sweep.yaml", cwd=tmp_path).stdout)
    job = tmp_path / "job.json"
    job.write_text(json.dumps({"sweep": made["key"], "folder": str(tmp_path), "relay": True}))
    agent = subprocess.run(
        [sys.executable, "-m", "runyard.node.agent", "--job", str(job)],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert agent.returncode == 0, agent.stdout + agent.stderr
    scheme, _, port = (tmp_path / "address").read_text().rpartition(":")
    assert scheme == "https://127.0.0.1"
    assert int(port) != discovered(sealed).port
    (trial,) = api_of(sealed).sweeps.trials(made["key"])
    assert trial["state"] == "finished"
    assert curves(sealed, trial["id"])["base"]["values"] == [1.0]


@pytest.mark.live
def test_a_door_leads_no_program_to_a_stranger(sealed: Home, tmp_path: Path) -> None:
    """A client that meets a wrong certificate may give up for good, so it waits at the door."""
    real = discovered(sealed)
    theirs = certificates.make_authority("theirs", NOW)
    fake = certificates.sign_server(theirs, [SERVER_NAME, "localhost"], ["127.0.0.1"], NOW)
    with stranger(fake, tmp_path) as (port, heard), open_door(sealed) as door:
        url = f"https://127.0.0.1:{port}"
        write_discovery(
            sealed, replace(real, url=url, port=port, listen="0.0.0.0", hostname="gone")
        )
        with socket.create_connection(("127.0.0.1", door.port)) as plain:
            wait_until(lambda: heard)
            write_discovery(sealed, real)
            plain.settimeout(180)
            with pinned_context(real.authority).wrap_socket(
                plain, server_hostname="127.0.0.1"
            ) as client:
                client.sendall(b"GET /api/health HTTP/1.1\r\nhost: a\r\n\r\n")
                assert client.recv(12) == b"HTTP/1.1 401"
    assert b"".join(heard) == b""
