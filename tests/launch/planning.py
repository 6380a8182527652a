"""Plans as the tests make them: a project that need not be there, a profile, a few settings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from runyard.clusters.load import load_profile
from runyard.clusters.profile import Profile
from runyard.config.request import Agents, Environment, Request, Resources
from runyard.config.settling import settle_resources, with_defaults
from runyard.launch.plan import Interpreter, Places, Plan, Work, plan
from runyard.schedulers.slurm.scheduler import Slurm

PLACES = Places(
    home=Path("/home/kim/.runyard"),
    job=Path("/home/kim/.runyard/jobs/20261115-093000-abcdef"),
    work=Path("/home/kim/.runyard/snapshots/d1gest-a1b2c3/cats"),
    source=Path("/home/kim/.runyard/snapshots/d1gest-a1b2c3/cats"),
    project=Path("/home/kim/cats"),
    scratch=Path("/scratch/kim"),
    manifest=Path("/home/kim/.runyard/snapshots/d1gest-a1b2c3/manifest.json"),
)


def request(
    profile: str | Profile = "generic",
    *,
    name: str | None = "base",
    resources: Resources | None = None,
    agents: Agents | None = None,
    environment: Environment | None = None,
    **given: Any,
) -> Request:
    """A request in which all resources that are named were written by the user."""
    found = load_profile(profile) if isinstance(profile, str) else profile
    asked = resources or Resources(**given)
    usual = Resources()
    origins = {
        f"resources.{one}": f"--{one}"
        for one in vars(asked)
        if getattr(asked, one) != getattr(usual, one)
    }
    return Request(
        name=name,
        project_name="cats",
        folder=Path("/home/kim/cats"),
        resources=settle_resources(with_defaults(asked, found), None, origins),
        agents=agents or Agents(),
        environment=environment or Environment(),
        profile=found,
        origins=origins,
    )


def planned(
    asked: Request | None = None,
    *,
    trials: int | None = 12,
    slots: int = 1,
    kind: str = "sweep",
    places: Places = PLACES,
    **given: Any,
) -> Plan:
    found = asked or request(**given)
    return plan(
        found,
        found.profile,
        work=Work(3, slots=slots, trials=trials, kind=kind),
        places=places,
        runyard=Interpreter("/home/kim/venvs/runyard/bin/python", "/home/kim/venvs/runyard/lib"),
        scheduler=Slurm({}),
        snapshot={"digest": "d1gest", "commit": "c0mmit", "locks": {}},
    )


def without_scratch() -> Places:
    return replace(PLACES, scratch=None)


def option(made: Plan, name: str) -> str | None:
    """The value of one of sbatch's options."""
    return dict(made.header.options).get(name)
