"""Teams: entities whose members read and write the same runs.

  runyard users teams                         yours, and those that you are invited to
  runyard users teams add crew bob eve        make a team, or invite more people to it
  runyard users teams join crew               accept an invitation
  runyard users teams leave crew              leave a team, or decline an invitation
  runyard users teams remove crew eve         a member fewer, or an invitation taken back
  runyard users teams remove crew             the team; its runs stay with the admin
  WANDB_ENTITY=crew runyard run ...     a run of the team's

A team is an entity as W&B has it. Members are equals. Whom a member adds is invited, and is in the
team once they accept: here, or on the page. Whom the admin (the state folder's owner) adds is in
the team at once. On a server of somebody else's, `--host URL` says which, after `runyard login
--host URL`.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from runyard.actions.server.people import add_to_team, remove_from_team
from runyard.cli.admin.list_actions import add_action, check_name
from runyard.cli.connect import server
from runyard.cli.output import ago, print_json, print_table, say
from runyard.client.api import Api
from runyard.client.http import Connection
from runyard.client.keys import find_key
from runyard.client.people import PeopleApi, Team
from runyard.client.wandb_server import target_url
from runyard.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_action(parser, "team", "which team", "add", "join", "leave", "remove")
    parser.add_argument("users", nargs="*", metavar="USER", help="whom to add or remove")
    parser.add_argument("--host", metavar="URL", help="a server of somebody else's")


def run(args: argparse.Namespace) -> int:
    check_name(args, "team", "which team?")
    if args.users and args.action in ("join", "leave"):
        raise UsageError(
            f"runyard users teams {args.action}: nobody {args.action}s for others",
            mend=f"runyard users teams {args.action} {args.team}",
        )
    people = _people(args.host)
    if args.action == "add":
        add_to_team(people, args.team, args.users)
    elif args.action == "remove":
        remove_from_team(people, args.team, args.users)
    elif args.action == "join":
        people.add_member(args.team, people.me()["name"])
    elif args.action == "leave":
        people.remove_member(args.team, people.me()["name"])
    teams = [team for team in people.teams() if args.team in (None, team["name"])]
    if args.json:
        print_json({"teams": teams, "invitations": people.me()["invitations"]})
    elif args.action == "leave":
        print(f"you are not in the team {args.team} any more, nor invited to it")
    elif args.action == "remove" and not args.users:
        print(f"removed the team {args.team}: its runs stay, with the admin")
    else:
        _show(people, teams, with_invitations=args.action == "list")
    return 0


def _people(host: str | None) -> PeopleApi:
    if host is None:
        return server().people
    url = target_url(host)
    return Api(Connection(url, find_key(url, os.environ, Path.cwd()).key)).people


def _show(people: PeopleApi, teams: list[Team], *, with_invitations: bool) -> None:
    print_table(
        ("TEAM", "MEMBERS", "INVITED"),
        ((team["name"], ", ".join(team["members"]), ", ".join(team["invited"])) for team in teams),
    )
    for invitation in people.me()["invitations"] if with_invitations else ():
        team, when = invitation["team"], ago(invitation["created_at"])
        say(
            f"{invitation['invited_by']} invited you to the team {team} {when}: "
            f"`runyard users teams join {team}`, or `leave` to decline"
        )
