"""What Slurm tells, judged: whether jobs can be submitted, and whether the profile is right."""

from __future__ import annotations

from collections.abc import Iterator

from runyard.clusters.findings import Finding, State
from runyard.clusters.place import Recognised
from runyard.clusters.profile import Profile
from runyard.reading.units import short_memory, short_time
from runyard.schedulers.slurm.facts import Partition, SlurmFacts

GROUP = "Slurm"


def check_slurm(facts: SlurmFacts, profile: Profile, here: Recognised) -> Iterator[Finding]:
    if not facts.is_here:
        yield _finding(
            "slurm", "fail", f"Slurm's commands are not here: {facts.troubles['slurm']}",
            "log in to a cluster's login node; or put Slurm's folder on PATH",
        )  # fmt: skip
        yield _profile(profile, here, facts)
        return
    if "config" in facts.troubles:
        yield _finding(
            "slurm", "fail", f"its commands are here, but: {facts.troubles['config']}",
            "the controller may be down or busy: `scontrol ping`; try again later",
        )  # fmt: skip
    else:
        name = f", cluster {facts.cluster_name}" if facts.cluster_name else ""
        yield _finding("slurm", "ok", f"release {facts.version}{name}")
    yield _profile(profile, here, facts)
    yield _partitions(facts, profile)
    yield _gpus(facts, profile)
    yield _memory(facts, profile)
    yield _arrays(facts)
    yield _accounting(facts)
    yield from _accounts(facts, profile)
    yield from _elastic(facts, profile)
    yield from _drift(facts, profile)


def _finding(name: str, state: State, says: str, mend: str | None = None) -> Finding:
    return Finding(GROUP, name, state, says, mend)


def _profile(profile: Profile, here: Recognised, facts: SlurmFacts) -> Finding:
    if profile.name == "generic":
        mend = "`runyard doctor --write` makes a draft of a profile" if facts.is_here else None
        return _finding("profile", "warn" if facts.is_here else "ok", here.because, mend)
    age = f", checked {profile.identity.checked}" if profile.identity.checked else ""
    retired = profile.identity.retired
    return _finding(
        "profile", "warn" if retired else "ok", f"{profile.name} ({here.because}){age}", retired
    )


def _partitions(facts: SlurmFacts, profile: Profile) -> Finding:
    if "partitions" in facts.troubles:
        return _finding("partitions", "warn", facts.troubles["partitions"])
    up = [partition for partition in facts.partitions if partition.is_up]
    if not up:
        return _finding(
            "partitions", "fail", "no partition is up", "`sinfo` shows them; ask the site"
        )
    words = ", ".join(_described(partition) for partition in up[:6])
    more = f" and {len(up) - 6} more" if len(up) > 6 else ""
    if facts.default_partition is None and "partition" not in profile.submission.defaults:
        return _finding(
            "partitions", "warn", f"{words}{more}; none is the default",
            "name one: resources: {partition: …} in runyard.yaml",
        )  # fmt: skip
    return _finding("partitions", "ok", f"{words}{more}")


def _described(partition: Partition) -> str:
    limit = f"up to {short_time(partition.longest)}" if partition.longest else "no limit"
    default = "default, " if partition.is_default else ""
    return f"{partition.name} ({default}{limit})"


def _gpus(facts: SlurmFacts, profile: Profile) -> Finding:
    if "nodes" in facts.troubles:
        return _finding("gpus", "warn", facts.troubles["nodes"])
    types = facts.gpu_types
    if types:
        listed = ", ".join(
            f"{count} {name or 'GPUs without a type'} a node" for name, count in types.items()
        )
        return _finding("gpus", "ok", listed)
    if profile.gpus.implicit:
        return _finding("gpus", "ok", "Slurm is told of none; the profile knows that nodes have")
    return _finding("gpus", "warn", "no node has GPUs that Slurm knows of",
                    "if nodes have some all the same, write gpus: {form: none, implicit: {…}} into "
                    "a profile")  # fmt: skip


def _memory(facts: SlurmFacts, profile: Profile) -> Finding:
    if facts.counts_memory is None:
        return _finding("memory", "skip", "Slurm does not tell how memory is counted")
    if not facts.counts_memory:
        known = "memory" in {**profile.submission.ignored, **profile.submission.forbidden}
        return _finding(
            "memory", "ok" if known else "warn", "asking for memory has no effect here",
            None if known else "write submission: {ignored: {memory: …}} into a profile",
        )  # fmt: skip
    default = next(
        (partition.memory_per_cpu for partition in facts.partitions if partition.memory_per_cpu),
        None,
    )
    share = f"; without asking, {short_memory(default)} a CPU" if default else ""
    return _finding("memory", "ok", f"given as it is asked for{share}")


def _arrays(facts: SlurmFacts) -> Finding:
    size = facts.array_size
    if size is None:
        return _finding("arrays", "skip", "Slurm does not tell how large arrays may be")
    if size < 2:
        return _finding("arrays", "warn", "arrays are switched off",
                        "write agents: {form: jobs} in runyard.yaml")  # fmt: skip
    return _finding("arrays", "ok", f"indices up to {size - 1}; longer ones are split")


def _accounting(facts: SlurmFacts) -> Finding:
    if facts.has_accounting is None:
        return _finding("accounting", "skip", "Slurm does not tell whether there is a database")
    if facts.has_accounting:
        trouble = facts.troubles.get("qos") or facts.troubles.get("accounts")
        if trouble:
            return _finding("accounting", "warn", f"there is a database, but: {trouble}")
        return _finding("accounting", "ok", "there is a database (sacct)")
    return _finding("accounting", "ok", "no database; runyard keeps its own history of jobs")


def _accounts(facts: SlurmFacts, profile: Profile) -> Iterator[Finding]:
    wanted = profile.submission.mandatory.get("account")
    if facts.accounts:
        yield _finding("accounts", "ok", f"yours: {', '.join(facts.accounts[:8])}")
    elif wanted and "account" not in profile.submission.defaults:
        yield _finding("accounts", "warn", f"yours could not be found out; {wanted}",
                       "write resources: {account: …} in runyard.yaml")  # fmt: skip


def _elastic(facts: SlurmFacts, profile: Profile) -> Iterator[Finding]:
    wait = facts.starts_nodes
    if wait is None:
        return
    says = f"nodes start on demand, within {short_time(wait)}"
    if profile.elasticity.start_wait >= wait:
        yield _finding("elastic", "ok", says)
        return
    mend = f"write elasticity: {{start_wait: {short_time(wait)}}} into a profile"
    yield _finding("elastic", "warn", says, mend)


def _drift(facts: SlurmFacts, profile: Profile) -> Iterator[Finding]:
    """Where a profile says something else than Slurm does: sites change, and files stay."""
    if profile.name == "generic":
        return
    differences = []
    if facts.array_size is not None and profile.limits.array_size > facts.array_size:
        differences.append(f"arrays of {profile.limits.array_size}, Slurm {facts.array_size}")
    known = {partition.name: partition for partition in facts.partitions}
    default = profile.submission.defaults.get("partition")
    named = {*profile.limits.by_partition, *profile.submission.values.get("partition", ())}
    for name in sorted(named | ({default} if default else set())):
        if known and name not in known and "*" not in name:
            differences.append(f"a partition {name}, Slurm has none")
    types = {name for name in facts.gpu_types if name}
    missing = [name for name in profile.gpus.types if types and name not in types]
    if missing:
        differences.append(f"GPUs {', '.join(missing)}, Slurm has {', '.join(sorted(types))}")
    for name, rules in known.items():
        limit = profile.limits.by_partition.get(name)
        if limit and limit.longest and rules.longest and limit.longest > rules.longest:
            differences.append(
                f"jobs of {short_time(limit.longest)} in {name}, Slurm {short_time(rules.longest)}"
            )
    if facts.has_accounting is not None and profile.accounting.sacct != "unknown":
        answer = "yes" if facts.has_accounting else "no"
        if answer != profile.accounting.sacct:
            differences.append(f"accounting: {profile.accounting.sacct}, Slurm {answer}")
    if differences:
        yield _finding(
            "drift", "warn", f"the profile {profile.name} says {'; '.join(differences)}",
            f"write what is right into ~/.config/runyard/clusters/{profile.name}.yaml "
            f"(inherits: {profile.name})",
        )  # fmt: skip
