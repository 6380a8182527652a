"""Another server of W&B's protocol: asked again where trouble may pass, never trusted blindly."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from runyard.client.wandb_server import CLOUD, KeyRefused, WandbServer, target_url
from runyard.errors import RunyardError, ServerError

Answer = tuple[int, dict[str, str], bytes]
Serve = Callable[[list[Answer]], tuple[str, list[str]]]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """A web server that gives these answers, in turn; and a list of the paths asked for."""
    running: list[ThreadingHTTPServer] = []

    def start(answers: list[Answer]) -> tuple[str, list[str]]:
        asked: list[str] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                asked.append(self.path)
                status, headers, body = answers[min(len(asked), len(answers)) - 1]
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST  # noqa: N815

            def log_message(self, format: str, *args: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        running.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}", asked

    yield start
    for server in running:
        server.shutdown()
        server.server_close()


VIEWER = b'{"data": {"viewer": {"entity": "bob", "username": "bob"}}}'


def test_trouble_that_may_pass_is_waited_out(serve: Serve) -> None:
    url, asked = serve([(503, {}, b"busy"), (200, {}, VIEWER)])
    assert WandbServer(url, "k" * 40).viewer()["entity"] == "bob"
    assert len(asked) == 2


def test_a_mistake_is_not_repeated(serve: Serve) -> None:
    url, asked = serve([(404, {}, b"nothing here")])
    with pytest.raises(ServerError, match="answered 404"):
        WandbServer(url, "k" * 40).viewer()
    assert len(asked) == 1


def test_the_key_does_not_follow_a_redirect(serve: Serve) -> None:
    elsewhere, asked = serve([(200, {}, VIEWER)])
    url, _ = serve([(302, {"Location": f"{elsewhere}/graphql"}, b"")])
    with pytest.raises(ServerError, match="answered 302"):
        WandbServer(url, "k" * 40).viewer()
    assert asked == []


@pytest.mark.parametrize("body", [b'{"data": {"viewer": null}}', b'{"data": null}'])
def test_a_key_that_is_nobodys(serve: Serve, body: bytes) -> None:
    url, _ = serve([(200, {}, body)])
    with pytest.raises(KeyRefused):
        WandbServer(url, "k" * 40).viewer()


def test_what_does_not_speak_the_protocol(serve: Serve) -> None:
    url, _ = serve([(200, {}, b"<html>welcome</html>")])
    with pytest.raises(ServerError, match="does not speak W&B's protocol"):
        WandbServer(url, "k" * 40).viewer()


def test_addresses() -> None:
    assert target_url("cloud") == CLOUD
    assert target_url("http://host:1/") == "http://host:1"
    for wrong in ("host:1", "ftp://host", "http://", ""):
        with pytest.raises(RunyardError, match="not a server's address"):
            target_url(wrong)
