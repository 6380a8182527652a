"""`runyard ui`: a link that logs in, the SSH line where the browser is elsewhere, and no secret
where others see it."""

from __future__ import annotations

import json
import stat
import urllib.parse
import webbrowser

import pytest

from runyard.actions.server import page_link
from runyard.cli.admin import ui
from runyard.client.discover import ensure_server
from runyard.home import Discovery, Home
from tests.conftest import RunRunyard


def discovered(url: str, hostname: str) -> Discovery:
    port = urllib.parse.urlsplit(url).port or 0
    return Discovery(url, "k", 1, hostname, "127.0.0.1", port, "1", 0.0, running=True)


def test_at_ones_own_machine_the_link_is_the_servers() -> None:
    seen = page_link.Seen.of(discovered("http://127.0.0.1:21000", "laptop"), {})
    assert (seen.url, seen.tunnel) == ("http://127.0.0.1:21000", None)


def test_by_ssh_the_line_for_the_tunnel_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "login1")
    monkeypatch.setattr("socket.getfqdn", lambda: "login1.cluster.example")
    monkeypatch.setenv("LOGNAME", "ada")
    here = {"SSH_CONNECTION": "10.0.0.7 5000 10.0.0.1 22"}
    seen = page_link.Seen.of(discovered("http://127.0.0.1:21000", "login1"), here)
    assert seen.url == "http://127.0.0.1:21000"
    assert seen.tunnel == "ssh -N -L 21000:127.0.0.1:21000 ada@login1.cluster.example"
    # A server in a job: the way leads through the login node.
    seen = page_link.Seen.of(discovered("http://node17:21000", "node17"), here)
    assert seen.tunnel == "ssh -N -L 21000:node17:21000 ada@login1.cluster.example"


@pytest.mark.live
def test_the_link_leads_to_what_was_named(runyard: RunRunyard, state_folder: Home) -> None:
    assert runyard("run", "-q", "--project", "birds", "--", "true").returncode == 0
    api = ensure_server(state_folder).api
    (run,) = api.runs()
    told = json.loads(runyard("ui", "--json").stdout)
    assert told["link"].startswith(f"{api.url}/#code=")
    assert (told["ssh"], told["seconds"]) == (None, 600)
    path = f"{run['entity']}/birds/runs/{run['id']}"
    assert (
        json.loads(runyard("ui", run["id"], "--json").stdout)["link"].split("#")[0].endswith(path)
    )
    link = json.loads(runyard("ui", "birds", "--json").stdout)["link"]
    assert link.split("#")[0].endswith(f"{run['entity']}/birds")
    missing = runyard("ui", "nobody")
    assert missing.returncode != 0
    assert "runyard runs" in missing.stderr
    shown = runyard("ui", "--no-open", env={"SSH_CONNECTION": "a 1 b 22"})
    assert "ssh -N -L" in shown.stdout
    assert "works once" in shown.stderr


def test_the_browser_is_sent_by_a_file_that_others_cannot_read(
    state_folder: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    state_folder.path.mkdir()
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    ui._open(state_folder, "http://127.0.0.1:1/#code=secret&x")
    (url,) = opened
    assert "secret" not in url
    page = state_folder.path / "open.html"
    assert url == page.as_uri()
    assert "code=secret&amp;x" in page.read_text()
    assert stat.S_IMODE(page.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("environ", "platform", "has"),
    [
        ({}, "linux", False),
        ({"DISPLAY": ":0"}, "linux", True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, "linux", True),
        ({"DISPLAY": ":10", "SSH_CONNECTION": "a 1 b 22"}, "linux", False),
        ({}, "darwin", True),
    ],
)
def test_where_there_is_a_browser(environ: dict[str, str], platform: str, has: bool) -> None:
    assert ui._has_browser(environ, platform) is has
