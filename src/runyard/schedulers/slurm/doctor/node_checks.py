"""What a compute node said, judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from runyard.clusters.findings import Finding, State
from runyard.clusters.profile import Profile
from runyard.clusters.site_checks import CONTAINER_PROGRAMS
from runyard.schedulers.doctor import Outcome
from runyard.schedulers.slurm.doctor.probe_job import OUTSIDE

GROUP = "compute nodes"
_LITTLE = 1 << 30


def check_nodes(
    outcome: Outcome, profile: Profile, folders: Mapping[str, str]
) -> Iterator[Finding]:
    """`folders` are the paths by the names that the marks were given."""
    answers = outcome.answers
    if answers is None:
        yield _finding("job", "fail", outcome.trouble or "it said nothing", outcome.mend)
        return
    node = answers.get("node", {})
    yield _finding("job", "ok", f"job {outcome.job_id} ran on {node.get('host')}")
    if node.get("python") is None:
        yield _finding("python", "fail", "nodes have no Python that we could find",
                       "install runyard into a folder that nodes see")  # fmt: skip
        return
    yield _python(node)
    yield from _folders(answers.get("folders", {}), folders)
    yield _local(answers.get("local", []), profile)
    yield _internet(answers.get("internet", {}), profile)
    yield _server(answers.get("server", {}))
    yield from _keys(answers.get("keys", []))
    yield _programs(answers.get("programs", []), profile)
    yield from _gpus(answers.get("gpus", []))


def _finding(name: str, state: State, says: str, mend: str | None = None) -> Finding:
    return Finding(GROUP, name, state, says, mend)


def _python(node: Mapping[str, Any]) -> Finding:
    if node.get("same_python"):
        return _finding("python", "ok", f"runyard's Python is there ({node.get('version')})")
    return _finding(
        "python", "fail",
        f"runyard's Python is not there; {node.get('python')} ({node.get('version')}) is",
        "install runyard into a folder that nodes see, such as one below your home",
    )  # fmt: skip


def _folders(seen: Mapping[str, Any], folders: Mapping[str, str]) -> Iterator[Finding]:
    for name, path in folders.items():
        if name not in seen:
            continue
        if seen[name]:
            yield _finding(name, "ok", f"{path} is shared")
        else:
            mend = {
                "state folder": "set RUNYARD_HOME to a folder that nodes see",
                "scratch": "export SCRATCH=FOLDER for one that nodes see",
            }.get(name, "move the project to a folder that nodes see")
            yield _finding(name, "fail", f"{path} is not seen by {GROUP}", mend)


def _local(folders: Any, profile: Profile) -> Finding:
    if not isinstance(folders, list) or not folders:
        return _finding("local disk", "warn", "there is no folder that jobs can write on the node",
                        "write storage: {local: FOLDER} into a profile")  # fmt: skip
    best = folders[0]
    space = f"{best['free'] / 1e9:,.0f} GB free"
    kind = ", in memory" if best.get("memory") else ""
    says = f"{best['path']} ({best['name']}): {space}{kind}"
    if best["name"] in ("SLURM_TMPDIR", "profile"):
        return _finding("local disk", "ok" if best["free"] >= _LITTLE else "warn", says)
    if profile.storage.local_made_by_us:
        return _finding("local disk", "ok", f"{says}; jobs make their own folder")
    return _finding(
        "local disk", "warn", f"{says}; the site makes no folder for each job",
        f"write storage: {{local: '{best['path']}/${{USER}}-${{SLURM_JOB_ID}}', "
        "local_made_by_us: true} into a profile",
    )  # fmt: skip


def _internet(answers: Mapping[str, Any], profile: Profile) -> Finding:
    reached = answers.get("reached")
    if reached is None:
        return _finding(
            "internet", "warn", f"could not be told: {answers.get('trouble', 'no answer')}"
        )
    known = profile.network.internet
    if reached:
        silent = [host for host, _ in OUTSIDE if host not in reached]
        state: State = "ok" if known in ("yes", "unknown") else "warn"
        mend = None if state == "ok" else "the profile says otherwise: network: {internet: yes}"
        but = f", {', '.join(silent)} cannot" if silent else ""
        return _finding("internet", state, f"{', '.join(reached)} can be reached{but}", mend)
    proxy = f", but {answers['proxy']} names a proxy" if answers.get("proxy") else ""
    state = "ok" if known in ("no", "proxy", "unknown") else "warn"
    mend = None if state == "ok" else "the profile says otherwise: network: {internet: no}"
    return _finding("internet", state, f"there is none{proxy}; what jobs need must be there", mend)


def _server(answers: Mapping[str, Any]) -> Finding:
    if not answers.get("key"):
        return _finding("server", "warn", "the state folder has no server yet, or is not seen",
                        "`runyard server start`, then look again")  # fmt: skip
    if answers.get("answers"):
        return _finding("server", "ok", f"{answers.get('url')} answers, and the key is taken")
    if answers.get("trouble") == "loopback":
        return _finding(
            "server", "fail", f"{answers.get('url')} listens on its own machine only",
            "`runyard server restart --listen cluster` opens it to nodes; it asks for the key",
        )  # fmt: skip
    return _finding(
        "server", "fail", f"{answers.get('url')} cannot be reached: {answers.get('trouble')}",
        "a firewall may be between: `runyard server submit` runs it on a node; without it, jobs "
        "record on disk and `runyard sync` brings them in",
    )  # fmt: skip


def _keys(names: Any) -> Iterator[Finding]:
    """For servers that are not our own."""
    if isinstance(names, list) and names:
        yield _finding("keys", "ok", f"{', '.join(names)} can be read")


def _programs(there: Any, profile: Profile) -> Finding:
    kinds = list(
        dict.fromkeys(CONTAINER_PROGRAMS[name] for name in there if name in CONTAINER_PROGRAMS)
    )
    if "srun" not in there and not profile.script.path:
        return _finding("programs", "warn", "srun is not on the path of nodes",
                        "write script: {path: [FOLDER]} into a profile")  # fmt: skip
    listed = f"containers by {', '.join(kinds)}" if kinds else "no program for containers"
    return _finding("programs", "ok", listed)


def _gpus(lines: Any) -> Iterator[Finding]:
    if isinstance(lines, list) and lines:
        cards = [", ".join(part.strip() for part in line.split(",")[:2]) for line in lines]
        listed = "; ".join(f"{card} MiB" for card in dict.fromkeys(cards))
        yield _finding("gpus", "ok", f"{len(lines)}: {listed}")
