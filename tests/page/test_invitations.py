"""An invitation to a team on the page: shown, accepted, declined."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from runyard.client.api import Api
from runyard.client.discover import ensure_server
from runyard.client.http import Connection
from runyard.home import Home
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
