"""Why attempts end: one table for agents, the server, reports and commands."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import runyard
from runyard.end_causes import AGENT_LEAVES, AS_PLANNED, CAUSES, FAILURES, GOES_ON, NOT_IN_EXIT_CODE
from runyard.node.link.cloud_channel import CloudChannel

# What somebody may ask of a program: that comes before its end.
_REQUESTS = {"stopped", "canceled", "paused", "node", "nan"}


def test_each_cause_goes_on_or_fails_or_is_as_planned() -> None:
    groups = (set(GOES_ON) - set(AS_PLANNED), set(FAILURES), set(AS_PLANNED))
    assert sorted(name for group in groups for name in group) == sorted(CAUSES)
    assert set(AGENT_LEAVES) < set(GOES_ON)
    assert set(NOT_IN_EXIT_CODE) == {*GOES_ON, "memory", "nan"}


def test_no_other_module_lists_causes() -> None:
    found = {}
    for file in Path(runyard.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
                words = [one.value for one in node.elts if isinstance(one, ast.Constant)]
                named = [word for word in words if word in CAUSES]
                if len(named) > 3 and not set(named) <= _REQUESTS and file.name != "end_causes.py":
                    found[file.name] = named
    assert not found


@pytest.mark.parametrize("cause", ["crowded", "cut", "go-on"])
def test_on_wandbs_server_too_a_crowded_trial_begins_again_beside_fewer(cause: str) -> None:
    answers: list[Any] = []
    loop: Any = SimpleNamespace(after=lambda _seconds, call: call())
    cloud: Any = SimpleNamespace(saves=False)
    channel = CloudChannel.__new__(CloudChannel)
    channel._loop, channel._cloud, channel._cuts = loop, cloud, 0
    channel._held = {"run": {"key": "e/p/r"}, "attempt": 1, "trial": {"number": 1}}
    vars(channel).update(_kept=None, _is_announced=False)
    channel._end({"exit_code": 1, "cause": cause}, answers.append)
    assert channel._kept is not None
    assert channel._kept["attempt"] == 2
    assert json.loads(answers[0].body)["trial"] == {"state": "waiting", "cause": cause}
