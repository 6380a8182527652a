"""A sweep that is a list: each trial has its own command line and name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from runyard.reading.fields import Fields
from runyard.reading.problems import kind_of, show
from runyard.search.names import LONGEST

# The settings of a trial of a list: the number of its task, and the command line.
NUMBER, COMMAND_LINE = "task", "command_line"
TASK_KEYS = ("name", "command_line", "values")
TASK_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9_.=+-]{{0,{LONGEST - 1}}}")


@dataclass(frozen=True)
class Task:
    """One command line; `values` distinguish it from the others and go into the run's config."""

    name: str
    command_line: str
    values: Mapping[str, Any] = field(default_factory=dict)

    def settings(self, number: int) -> dict[str, Any]:
        return {**self.values, NUMBER: number, COMMAND_LINE: self.command_line}

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "command_line": self.command_line,
            **({"values": dict(self.values)} if self.values else {}),
        }


def read_tasks(fields: Fields) -> tuple[Task, ...]:
    items = fields.items("tasks", "write a list of {name: …, command_line: …}")
    tasks = []
    taken = set[str]()
    for index, item in enumerate(items or ()):
        path = (*fields.at("tasks"), index)
        if not isinstance(item, Mapping):
            fields.findings.error(
                path, f"a task is {kind_of(item)}", "write {name: …, command_line: …}"
            )
            continue
        task = _read_task(Fields(item, path, fields.findings), taken)
        if task is not None:
            taken.add(task.name)
            tasks.append(task)
    if items is not None and not items:
        fields.error("tasks", "the list of tasks is empty", "write at least one")
    return tuple(tasks)


def _read_task(fields: Fields, taken: set[str]) -> Task | None:
    fields.allow(TASK_KEYS)
    name, line = fields.text("name", required=True), fields.text("command_line", required=True)
    values = fields.mapping("values", "write a mapping, such as {lr: 0.1}")
    if name is None or line is None:
        return None
    if not TASK_NAME.fullmatch(name):
        fields.error(
            "name",
            f"{show(name)} is no name for a task",
            f"write at most {LONGEST} letters, digits, _, -, ., = and +",
        )
    if name in taken:
        fields.error("name", f"{show(name)} stands twice", "give each task a name of its own")
    if not line.strip() or "\0" in line:
        fields.error("command_line", "the command line is empty, or holds a NUL", "write a command")
    return Task(name, line, dict(values.data) if values else {})
