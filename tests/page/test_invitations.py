"""A second person: logs in with the key that was handed over, and answers invitations to teams."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import expect

from runyard.client.api import Api
from runyard.client.discover import ensure_server
from runyard.client.http import Connection
from runyard.home import Home
from tests.conftest import run_runyard
from tests.page.conftest import OpenPage, login_link

pytestmark = pytest.mark.live


def test_an_invitation_is_shown_and_answered(module_home: Home, open_page: OpenPage) -> None:
    admin = ensure_server(module_home).api
    me = admin.people.me()["name"]
    bob = Api(Connection(admin.url, admin.people.add_user("bob")["key"]))
    for team in ("crew", "gang"):
        bob.people.add_team(team, [me])
    page = open_page(login_link(module_home))
    invitations = page.get_by_role("list", name="Invitations").get_by_role("listitem")
    expect(invitations).to_have_count(2)
    expect(invitations.first).to_contain_text("bob invites you to the team crew")
    invitations.last.get_by_role("button", name="Decline").click()
    expect(invitations).to_have_count(1)
    invitations.first.get_by_role("button", name="Join").click()
    expect(invitations).to_have_count(0)
    teams = {team["name"]: sorted(team["members"]) for team in bob.people.teams()}
    assert teams == {"crew": sorted(["bob", me]), "gang": ["bob"]}
    assert admin.people.me()["invitations"] == []


def test_a_second_person_logs_in_by_key_or_by_link(
    module_home: Home, open_page: OpenPage, tmp_path: Path
) -> None:
    admin = ensure_server(module_home).api
    key = admin.people.add_user("carol")["key"]
    # Pasting the key; a wrong one is told from a link that was used.
    page = open_page(f"{admin.url}/#code=used-before")
    field, refusal = page.get_by_label("Link, code or key"), page.get_by_role("alert")
    expect(refusal).to_contain_text("used before")
    field.fill(key[:-1] + ("0" if key[-1] != "0" else "1"))
    field.press("Enter")
    expect(refusal).to_contain_text("does not know the key")
    field.fill(f" {key}\n")
    field.press("Enter")
    expect(page.get_by_role("button", name="carol")).to_be_visible()
    # At a terminal: `runyard ui` leads to where carol has logged in, and starts nothing of hers.
    own = tmp_path / "state"
    env = {"HOME": str(tmp_path), "RUNYARD_HOME": str(own), "NETRC": "", "WANDB_API_KEY": "x" * 40}
    logged_in = run_runyard("login", "--host", admin.url, stdin=f"{key}\n", env=env)
    assert logged_in.returncode == 0, logged_in.stderr
    link = json.loads(run_runyard("ui", "--json", env=env).stdout)["link"]
    assert link.startswith(f"{admin.url}/#code=")
    assert not (own / "server.json").exists()
    expect(open_page(link).get_by_role("button", name="carol")).to_be_visible()
    named = run_runyard("ui", "birds", "--host", admin.url, env=env)
    assert (named.returncode, "search on the page" in named.stderr) == (2, True)
