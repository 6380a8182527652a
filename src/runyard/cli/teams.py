"""Teams: entities whose members read and write the same runs.

  runyard teams add crew bob eve        a team, or more members for one
  runyard teams remove crew eve         a member fewer
  runyard teams remove crew             the team; its runs stay with the admin
  WANDB_ENTITY=crew runyard run ...     a run of the team's

A team is an entity as W&B has it. The state folder's owner makes teams.
"""

from __future__ import annotations

import argparse

from runyard.cli.actions import add_action, check_name
from runyard.cli.connect import server
from runyard.cli.output import print_json, print_table
from runyard.client.people import PeopleApi
from runyard.errors import NotFoundError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_action(parser, "team", "which team")
    parser.add_argument("users", nargs="*", metavar="USER", help="members to add or remove")


def run(args: argparse.Namespace) -> int:
    check_name(args, "team", "which team?")
    people = server().people
    if args.action == "add":
        _add(people, args.team, args.users)
    elif args.action == "remove":
        _remove(people, args.team, args.users)
    teams = [team for team in people.teams() if args.team in (None, team["name"])]
    if args.json:
        print_json(teams)
    elif args.action == "remove" and not args.users:
        print(f"removed the team {args.team}: its runs stay, with the admin")
    else:
        print_table(
            ("TEAM", "MEMBERS"), ((team["name"], ", ".join(team["members"])) for team in teams)
        )
    return 0


def _add(people: PeopleApi, team: str, users: list[str]) -> None:
    if team not in {known["name"] for known in people.teams()}:
        people.add_team(team, users)
        return
    for user in users:
        people.add_member(team, user)


def _remove(people: PeopleApi, team: str, users: list[str]) -> None:
    if team not in {known["name"] for known in people.teams()}:
        raise NotFoundError(f"there is no team {team!r}", mend="`runyard teams list` names them")
    for user in users:
        people.remove_member(team, user)
    if not users:
        people.remove_team(team)
