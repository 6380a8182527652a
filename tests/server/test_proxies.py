"""A server behind a reverse proxy: nginx as a lab would set it up, and strangers who play one."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import json
import os
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from runyard.client.discover import restart_server, start_server
from runyard.errors import ServerError
from runyard.home import Home, read_discovery
from runyard.node.ranks.ports import Port
from runyard.server.http.certificates import make_authority, sign_server
from runyard.server.http.proxies import CAME_BY, ProxyMiddleware, ProxyOptions
from runyard.trust import SERVER_NAME
from tests.conftest import run_runyard, wait_until
from tests.live.programs import curves
from tests.packages import find_program, require
from tests.server.asgi import basic

NOW = datetime.datetime.now(datetime.timezone.utc)
PROXY, OTHER_PROXY, STRANGER = "10.1.0.5", "10.1.0.6", "10.9.9.9"


def seen(peer: str, public_url: str = "", **headers: str) -> dict[str, object]:
    """What the application is told of a request from this address, with these headers."""
    scopes: list[dict[str, object]] = []

    async def app(scope, receive, send):  # type: ignore[no-untyped-def]
        scopes.append(scope)

    scope = {
        "type": "http", "scheme": "http", "client": (peer, 4711),
        "headers": [
            (b"host", b"inside:1"),
            *((name.replace("_", "-").encode(), text.encode()) for name, text in headers.items()),
        ],
    }  # fmt: skip
    trusted = frozenset({PROXY, OTHER_PROXY})
    asyncio.run(ProxyMiddleware(app, trusted, public_url)(scope, None, None))  # type: ignore[arg-type]
    return scopes[0]


def test_a_stranger_is_not_believed() -> None:
    told = seen(STRANGER, x_forwarded_for="1.2.3.4", x_forwarded_proto="https")
    assert told["client"] == (STRANGER, 4711)
    assert told["scheme"] == "http"
    assert CAME_BY not in told


@pytest.mark.parametrize(
    ("chain", "client"),
    [
        ("1.2.3.4", "1.2.3.4"),
        # The first was said by the client itself.
        ("6.6.6.6, 1.2.3.4", "1.2.3.4"),
        (f"6.6.6.6, 1.2.3.4, {OTHER_PROXY}", "1.2.3.4"),
        (f"6.6.6.6, made up, {OTHER_PROXY}", OTHER_PROXY),
        ("2001:DB8::1", "2001:db8::1"),
        ("", PROXY),
        ("\x1b[31m", PROXY),
    ],
)
def test_the_nearest_address_that_is_no_proxy_is_the_clients(chain: str, client: str) -> None:
    assert seen(PROXY, x_forwarded_for=chain)["client"] == (client, 0)


def test_the_address_by_which_the_client_came() -> None:
    told = seen(PROXY, x_forwarded_proto="https", x_forwarded_host="lab.example")
    assert (told["scheme"], told[CAME_BY]) == ("https", "https://lab.example")
    assert seen(PROXY)[CAME_BY] == "http://inside:1"
    assert seen(PROXY, x_forwarded_proto="gopher")["scheme"] == "http"
    public = seen(PROXY, "https://lab.example/yard", x_forwarded_host="made.up")
    assert public[CAME_BY] == "https://lab.example/yard"


@pytest.mark.parametrize("words", [{"url": "lab.example"}, {"url": "ftp://a"}, {"proxies": "lab"}])
def test_what_is_no_address_is_refused(words: dict[str, str]) -> None:
    with pytest.raises(ServerError):
        ProxyOptions(**words).over(None)


CONFIG = """\
daemon off; pid {folder}/pid; error_log {folder}/error.log; worker_processes 1;
events {{}}
http {{
  access_log off; client_max_body_size 0;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/temp;
  fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  server {{
    listen 127.0.0.1:{port} ssl;
    ssl_certificate {folder}/lab.pem; ssl_certificate_key {folder}/lab.pem;
    location /yard/ {{
      proxy_pass {target}/;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_set_header X-Forwarded-Proto $scheme;
      proxy_set_header Host $host;
      {verified}
    }}
  }}
}}
"""
# The server's own certificate is verified by its authority, under its one name.
VERIFIED = """\
proxy_ssl_verify on; proxy_ssl_trusted_certificate {authority};
      proxy_ssl_server_name on; proxy_ssl_name {name};"""
PROGRAM = """\
import wandb
run = wandb.init(project="proxied", id="by-nginx")
run.log({"value": 1.5})
open("weights", "w").write("x" * 5000)
artifact = wandb.Artifact("weights", "model")
artifact.add_file("weights")
run.log_artifact(artifact)
run.finish()
wandb.Api().artifact("proxied/weights:latest").download("back")
"""


@contextlib.contextmanager
def nginx(folder: Path, port: int, target: str, verified: str) -> Iterator[None]:
    config = folder / "nginx.conf"
    config.write_text(CONFIG.format(folder=folder, port=port, target=target, verified=verified))
    program = find_program("nginx")
    assert program is not None
    with subprocess.Popen([program, "-c", str(config), "-p", str(folder)]) as process:
        try:
            wait_until(lambda: (folder / "pid").exists() or process.poll() is not None)
            yield
        finally:
            process.terminate()


@pytest.mark.live
def test_a_lab_behind_nginx_with_a_path_in_front(state_folder: Home, tmp_path: Path) -> None:
    """TLS outside and inside; a stock client and a login by the outer address."""
    require("nginx-light")
    authority = make_authority("the lab's", NOW)
    outer = sign_server(authority, ["localhost"], [], NOW)
    folder = tmp_path / "nginx"
    folder.mkdir(mode=0o755)
    (folder / "lab.pem").write_text(outer.certificate + outer.key)
    (folder / "root.pem").write_text(authority.certificate)
    with Port() as free:
        port = free.number
    url = f"https://localhost:{port}/yard"
    start_server(state_folder, options=["--tls", "--url", f"{url}/", "--proxy", "127.0.0.1"])
    discovery = read_discovery(state_folder)
    assert discovery is not None
    assert discovery.public_url == url
    (folder / "ours.pem").write_text(discovery.authority)
    verified = VERIFIED.format(authority=folder / "ours.pem", name=SERVER_NAME)
    context = ssl.create_default_context(cafile=folder / "root.pem")
    with nginx(folder, port, f"https://127.0.0.1:{discovery.port}", verified):
        link = json.loads(run_runyard("ui", "--json", env={"SSH_CONNECTION": "a b c d"}).stdout)
        assert link["link"].startswith(f"{url}/#code=")
        assert link["ssh"] is None
        page = urllib.request.Request(f"{url}/", headers={"Accept": "text/html"})
        with urllib.request.urlopen(page, context=context) as answer:
            assert answer.status == 200

        (tmp_path / "train.py").write_text(PROGRAM)
        variables = json.loads(run_runyard("env", "--json").stdout)
        assert variables["WANDB_APP_URL"] == url
        trusted = {"SSL_CERT_FILE": str(folder / "root.pem")}
        trusted |= {"REQUESTS_CA_BUNDLE": trusted["SSL_CERT_FILE"], "NO_PROXY": "localhost"}
        done = subprocess.run(
            [sys.executable, "train.py"], cwd=tmp_path, capture_output=True, text=True,
            timeout=300, check=False,
            env={**os.environ, **variables, **trusted, "WANDB_BASE_URL": url},
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
    assert curves(state_folder, "by-nginx")["value"]["values"] == [1.5]
    # Remembered, and ended by an empty word.
    restart_server(state_folder)
    again = read_discovery(state_folder)
    assert again is not None
    assert (again.public_url, again.proxies) == (url, "127.0.0.1")
    restart_server(state_folder, options=["--url", "", "--proxy", ""])
    ended = read_discovery(state_folder)
    assert ended is not None
    assert (ended.public_url, ended.proxies) == ("", "")


UPLOAD = """mutation Files($input: CreateRunFilesInput!) {
  createRunFiles(input: $input) { files { uploadUrl } }
}"""


@pytest.mark.live
def test_a_user_of_this_machine_is_no_proxy(state_folder: Home) -> None:
    """Everybody on a login node comes from 127.0.0.1; uvicorn's own way would believe them."""
    start_server(state_folder)
    discovery = read_discovery(state_folder)
    assert discovery is not None
    assert run_runyard("run", "-q", "-e", "r", "true").returncode == 0
    (run,) = json.loads(run_runyard("runs", "--json").stdout)
    where = {"entityName": run["entity"], "projectName": run["project"], "runName": run["id"]}
    request = urllib.request.Request(
        f"{discovery.url}/graphql",
        json.dumps({"query": UPLOAD, "variables": {"input": {**where, "files": ["a"]}}}).encode(),
        {
            "Authorization": basic(discovery.key),
            "Content-Type": "application/json",
            "X-Forwarded-Proto": "https",
        },
    )
    with urllib.request.urlopen(request) as answer:
        said = json.load(answer)
    (file,) = said["data"]["createRunFiles"]["files"]
    assert file["uploadUrl"].startswith(discovery.url), file
