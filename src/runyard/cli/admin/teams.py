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

from runyard.actions.server.people import change_team, people_at
from runyard.cli.admin.users import add_action, check_name
from runyard.cli.connect import server
from runyard.cli.output import ago, print_json, print_table, say
from runyard.cli.parser import add
from runyard.client.people import PeopleApi
from runyard.errors import UsageError
from runyard.shapes.people import Team


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_action(parser, "team", "which team", "add", "join", "leave", "remove")
    add(parser, "users USER", "whom to add or remove", nargs="*")
    add(parser, "--host URL", "a server of somebody else's")


def run(args: argparse.Namespace) -> int:
    check_name(args, "team", "which team?")
    if args.users and args.action in ("join", "leave"):
        raise UsageError(
            f"runyard users teams {args.action}: nobody {args.action}s for others",
            mend=f"runyard users teams {args.action} {args.team}",
        )
    people = people_at(args.host, server)
    change_team(people, args.action, args.team, args.users)
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


def _show(people: PeopleApi, teams: list[Team], *, with_invitations: bool) -> None:
    print_table(
        ("TEAM", "MEMBERS", "INVITED"),
        ((team["name"], ", ".join(team["members"]), ", ".join(team["invited"])) for team in teams),
    )
    for invitation in people.me()["invitations"] if with_invitations else ():
        team, when = invitation["team"], ago(invitation["created_at"])
        say(f"{invitation['invited_by']} invited you to the team {team} {when}: "
            f"`runyard users teams join {team}`, or `leave` to decline")  # fmt: skip
