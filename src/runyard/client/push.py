"""A run of our server's, replayed to another server of W&B's protocol.

Asks what the other side has and sends the rest: a push that was cut off goes on where it was, and
one that is repeated changes nothing. Artifacts follow in `push_artifacts`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from runyard.client.api import Api
from runyard.client.push_artifacts import Place, plan_artifacts, push_artifacts
from runyard.client.wandb_server import WandbServer, read_headers
from runyard.errors import ServerError
from runyard.shapes.runs import Record, Run
from runyard.vocabulary import ENDED_RUN_STATES

_FILES_AT_ONCE = 50
_NAMES = {"history": "wandb-history.jsonl", "events": "wandb-events.jsonl", "output": "output.log"}

_STATUS = """
query RunResumeStatus($project: String, $entity: String, $name: String!) {
  model(name: $project, entityName: $entity) {
    bucket(name: $name, missingOk: true) {
      id state historyLineCount eventsLineCount logLineCount
    }
  }
}
"""
_UPSERT = """
mutation UpsertBucket($name: String, $project: String, $entity: String, $groupName: String,
    $displayName: String, $notes: String, $commit: String, $config: JSONString, $host: String,
    $program: String, $repo: String, $jobType: String, $tags: [String!],
    $summaryMetrics: JSONString) {
  upsertBucket(input: {name: $name, modelName: $project, entityName: $entity,
      groupName: $groupName, displayName: $displayName, notes: $notes, commit: $commit,
      config: $config, host: $host, jobProgram: $program, jobRepo: $repo, jobType: $jobType,
      tags: $tags, summaryMetrics: $summaryMetrics}) {
    bucket { id name project { name entity { name } } }
    inserted
  }
}
"""
_FILES = """
query RunFiles($project: String!, $entity: String!, $name: String!, $names: [String]) {
  project(name: $project, entityName: $entity) {
    run(name: $name) { files(names: $names, first: 100) { edges { node { name sizeBytes } } } }
  }
}
"""
_CREATE_FILES = """
mutation CreateRunFiles($entity: String!, $project: String!, $run: String!, $files: [String!]!) {
  createRunFiles(input: {entityName: $entity, projectName: $project, runName: $run,
      files: $files}) { runID uploadHeaders files { name uploadUrl } }
}
"""

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Target:
    """A place on the other side."""

    server: WandbServer
    entity: str
    project: str


@dataclass
class Report:
    """What a push sends, or would."""

    run: str
    to: str
    new: bool = False
    lines: dict[str, int] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    bytes: int = 0
    artifacts: list[str] = field(default_factory=list)
    artifact_bytes: int = 0
    completes: bool = False

    def in_words(self, *, dry: bool) -> str:
        lines = ", ".join(f"{count} {name}" for name, count in self.lines.items() if count)
        parts = [f"lines: {lines}"] if lines else []
        if self.files:
            parts.append(f"{len(self.files)} files ({self.bytes / 1e6:.1f} MB)")
        if self.artifacts:
            names = ", ".join(self.artifacts)
            parts.append(f"artifacts: {names} ({self.artifact_bytes / 1e6:.1f} MB)")
        if not parts and not self.new:
            return f"{self.run}: {self.to} has it all"
        verb = "would go to" if dry else "is at"
        return f"{self.run} {verb} {self.to} ({'; '.join(parts) or 'no data'})"


def push_run(api: Api, run: Run, target: Target, tell: Tell, *, dry: bool = False) -> Report:
    """Send one run; `tell` hears of the progress."""
    record = api.record(run)
    server, place = target.server, (target.entity, target.project, run["id"])
    known = _status(target, run["id"])
    counts = _counts(known)
    files = [] if known is None else _files_there(target, run["id"], record)
    missing = [item for item in record["files"] if (item["name"], item["size"]) not in files]
    report = Report(
        run=run["id"],
        to=f"{server.url}/{'/'.join(place)}",
        new=known is None,
        lines={name: max(0, record["lines"][name] - counts[name]) for name in _NAMES},
        files=[item["name"] for item in missing],
        bytes=sum(item["size"] for item in missing),
        # Without an exit code nobody saw its end: the other side will find it silent, too.
        completes=record["state"] in ENDED_RUN_STATES
        and record["exit_code"] is not None
        and (known is None or known.get("state") not in ENDED_RUN_STATES),
    )
    if dry:
        planned = plan_artifacts(api, run, Place(server, *place))
        report.artifacts, report.artifact_bytes = planned.artifacts, planned.bytes
        return report
    place = _upsert(target, record, known)
    for name in _NAMES:
        for start, lines in _pages(api, run, name, counts[name], record["lines"][name]):
            body = {"files": {_NAMES[name]: {"offset": start, "content": lines}}}
            server.file_stream(*place, body)
            tell(f"{run['id']}: {name} {start + len(lines)} of {record['lines'][name]} lines")
    for number, item in enumerate(missing, 1):
        tell(f"{run['id']}: file {number} of {len(missing)}, {item['name']}")
        _send_file(api, run, server, place, item["name"], item["size"])
    sent = push_artifacts(
        api, run, Place(server, *place), tell, lambda name: _status(target, name) is not None
    )
    report.artifacts, report.artifact_bytes = sent.artifacts, sent.bytes
    if report.new or report.completes or missing or any(report.lines.values()):
        server.file_stream(*place, _ending(record, report))
    return report


def _ending(record: Record, report: Report) -> dict[str, Any]:
    summary = {"offset": 0, "content": [record["summary"]]}
    body: dict[str, Any] = {"files": {"wandb-summary.json": summary}, "uploaded": report.files}
    if report.completes:
        code = record["exit_code"] or 0
        # W&B knows no signals: what ended by one did not succeed.
        body |= {"complete": True, "exitcode": code if code >= 0 else 128 - code}
    return body


def _status(target: Target, run: str) -> Mapping[str, Any] | None:
    variables = {"project": target.project, "entity": target.entity, "name": run}
    model = target.server.graphql(_STATUS, variables).get("model") or {}
    return model.get("bucket")


def _counts(known: Mapping[str, Any] | None) -> dict[str, int]:
    counts = known or {}
    return {
        "history": counts.get("historyLineCount") or 0,
        "events": counts.get("eventsLineCount") or 0,
        "output": counts.get("logLineCount") or 0,
    }


def _upsert(
    target: Target, record: Record, known: Mapping[str, Any] | None
) -> tuple[str, str, str]:
    """Make the run there, or bring it up to date; where its data then goes."""
    variables = {
        "name": record["id"],
        "project": target.project,
        "entity": target.entity,
        "displayName": record["name"],
        "notes": record["notes"],
        "groupName": record["group"],
        "jobType": record["job_type"],
        "tags": record["tags"],
        "config": record["config"],
        "summaryMetrics": record["summary"],
        "commit": record["commit_hash"],
        "repo": record["repo"],
        # A message with a host starts a run: one that ended there must not run again.
        "host": (record["host"] or "unknown") if known is None else None,
        "program": record["program"],
    }
    made = target.server.graphql(_UPSERT, variables).get("upsertBucket") or {}
    try:
        bucket = made["bucket"]
        return bucket["project"]["entity"]["name"], bucket["project"]["name"], bucket["name"]
    except (KeyError, TypeError) as error:
        raise ServerError(
            f"the server at {target.server.url} did not say where run {record['id']} is"
        ) from error


def _pages(
    api: Api, run: Run, name: str, start: int, stop: int
) -> Iterator[tuple[int, Sequence[str]]]:
    while start < stop:
        page = api.lines(run, name, start)
        if not page["lines"]:
            return
        yield page["start"], page["lines"]
        start = page["start"] + len(page["lines"])


def _files_there(target: Target, run: str, record: Record) -> list[tuple[str, int]]:
    """Names and sizes that the other side tells of; one that tells none gets all again."""
    files = []
    names = [item["name"] for item in record["files"]]
    for first in range(0, len(names), _FILES_AT_ONCE):
        variables = {
            "project": target.project,
            "entity": target.entity,
            "name": run,
            "names": names[first : first + _FILES_AT_ONCE],
        }
        try:
            answer = target.server.graphql(_FILES, variables)
            edges = answer["project"]["run"]["files"]["edges"]
            files += [(edge["node"]["name"], int(edge["node"]["sizeBytes"])) for edge in edges]
        except (KeyError, TypeError, ValueError, ServerError):
            return []
    return files


def _send_file(
    api: Api, run: Run, server: WandbServer, place: tuple[str, str, str], name: str, size: int
) -> None:
    entity, project, run_id = place
    variables = {"entity": entity, "project": project, "run": run_id, "files": [name]}
    made = server.graphql(_CREATE_FILES, variables).get("createRunFiles") or {}
    try:
        url = made["files"][0]["uploadUrl"]
        headers = read_headers(made.get("uploadHeaders"))
    except (KeyError, IndexError, TypeError) as error:
        raise ServerError(f"the server at {server.url} gave no address for {name}") from error
    # Over the disk: a checkpoint can be larger than memory.
    with tempfile.TemporaryFile() as content:
        size = api.download(run, name, content)
        server.put(url, content, size, headers)
