"""A request against its cluster: what is left out and said, what is refused and why."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runyard.clusters.load import SHIPPED, load_profile
from runyard.clusters.profile import Profile
from runyard.config.check import Checked, check
from runyard.config.request import Agents, Environment, Request, Resources, Tracking
from runyard.config.settling import with_defaults
from runyard.errors import ConfigError


def shipped(name: str) -> Profile:
    return load_profile(name, folders=[SHIPPED])


def asked(profile: Profile | str, *, agents: Agents | None = None, **resources: object) -> Checked:
    """What a site says to a request that a user made with options."""
    profile = shipped(profile) if isinstance(profile, str) else profile
    given = Resources(**resources)  # type: ignore[arg-type]
    request = Request(
        resources=with_defaults(given, profile),
        agents=agents or Agents(),
        profile=profile,
        origins={f"resources.{name}": f"--{name} {value}" for name, value in resources.items()},
        folder=Path("/scratch/me/project"),
    )
    return check(request, environ={"SCRATCH": "/scratch/me", "HOME": "/home/me"})


def refusals(checked: Checked) -> list[str]:
    return [one.what for one in checked.refusals]


def test_what_a_site_forbids_is_left_out_and_said(tmp_path: Path) -> None:
    (tmp_path / "rwth.yaml").write_text(
        "inherits: claix-2023\n"
        "submission: {forbidden: {memory: the site gives memory with the CPUs}}\n"
        "memory: {form: none}\n"
    )
    rwth = load_profile("rwth", folders=[tmp_path, SHIPPED])
    checked = asked(rwth, memory=5120, extra=("--mem=5G", "--licenses=a"))
    assert checked.accepted().resources.memory is None
    assert checked.accepted().resources.extra == ("--licenses=a",)
    assert checked.notes == (
        "memory (--memory 5120) is left out: the site gives memory with the CPUs",
    )
    assert asked(rwth).notes == ()
    assert asked("claix-2023", memory=5120).accepted().resources.memory == 5120


def test_output_and_errors_stay_together_in_our_log() -> None:
    """Slurm would fail a job whose folder for one of them is not there, and leave no word."""
    own = ("--output=output/%j.txt", "--error errors/%j.txt", "-e errors/%j.txt", "--licenses=a")
    checked = asked("generic", extra=own)
    assert checked.accepted().resources.extra == ("--licenses=a",)
    assert checked.notes == tuple(
        f"{word} is left out: what a job prints and its errors are in one log, which runyard keeps "
        "and `runyard logs` shows"
        for word in own[:3]
    )


def test_what_has_no_effect_is_said() -> None:
    checked = asked("plai", account="def-me", gpu_type="v100l", gpus=1)
    assert checked.accepted().resources.account is None
    assert checked.accepted().resources.gpu_type is None
    assert checked.notes == (
        "account (--account def-me) has no effect here and is left out: PLAI's nodes have no "
        "accounts",
        "gpu_type (--gpu_type v100l) has no effect here and is left out: PLAI's GPUs are not asked "
        "for by type",
    )


def test_what_a_site_demands_and_is_missing_is_refused_with_the_reason() -> None:
    checked = asked("perlmutter")
    with pytest.raises(ConfigError) as caught:
        checked.accepted()
    assert caught.value.what == "perlmutter: account is missing: hours are charged to a project"
    assert caught.value.mend == ("add resources: {account: …} to runyard.yaml, or --account …")
    assert asked("perlmutter", account="m1234").accepted().resources.qos == "regular"


def test_a_site_may_demand_what_elsewhere_has_a_default(tmp_path: Path) -> None:
    """Time and nodes have defaults in the profile that all others inherit."""
    demands = dict.fromkeys(("partition", "time", "nodes", "qos"), "so it is here")
    (tmp_path / "site.yaml").write_text(f"submission: {{mandatory: {demands}}}\n")
    site = load_profile("site", folders=[tmp_path, SHIPPED])
    assert [text.partition(" ")[0] for text in refusals(asked(site))] == list(demands)
    given: dict[str, Any] = {"partition": "aws", "time": 1200.0, "nodes": 2, "qos": "normal"}
    assert asked(site, **given).refusals == ()
    for name in given:
        rest = {key: value for key, value in given.items() if key != name}
        assert refusals(asked(site, **rest)) == [f"{name} is missing: so it is here"]
    # A default that the profile itself gives is an answer.
    (tmp_path / "lab.yaml").write_text("inherits: site\nsubmission: {defaults: {time: 2h}}\n")
    lab = load_profile("lab", folders=[tmp_path, SHIPPED])
    assert "time" not in " ".join(refusals(asked(lab)))


def test_a_demand_is_met_by_an_option_of_sbatch_too() -> None:
    assert asked("narval", gpus=1, extra=("--account=def-me",)).refusals == ()


def test_all_reasons_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        asked("narval", gpus=9, time=10 * 86400).accepted()
    assert "for 3 reasons" in caught.value.what


def test_a_value_that_is_not_permitted_is_refused(tmp_path: Path) -> None:
    (tmp_path / "lab.yaml").write_text(
        "inherits: cedar\nsubmission:\n"
        "  values: {account: [def-fwood, rrg-kevinlb]}\n"
        "  defaults: {account: rrg-kevinlb}\n"
    )
    lab = load_profile("lab", folders=[tmp_path, SHIPPED])
    assert asked(lab).accepted().resources.account == "rrg-kevinlb"
    assert asked(lab, account="def-fwood").refusals == ()
    checked = asked(lab, account="def-fwod")
    assert refusals(checked) == ["account def-fwod (--account def-fwod) is not allowed"]
    assert checked.refusals[0].mend == "did you mean def-fwood?"
    assert refusals(asked("plai", partition="gpu")) == [
        "partition gpu (--partition gpu) is not allowed"
    ]
    assert asked("plai", partition="plai_towers").accepted().resources.partition == "plai_towers"


def test_gpus_are_of_a_type_that_is_there() -> None:
    assert asked("cedar", account="a").accepted().resources.gpu_type == "v100l"
    checked = asked("cedar", account="a", gpus=1, gpu_type="v100")
    assert refusals(checked) == ["there is no GPU of type v100 (--gpu_type v100)"]
    assert checked.refusals[0].mend == "did you mean v100l?"
    slices = asked("narval", account="a", gpus=1, gpu_type="a100_1g.5gb")
    assert slices.refusals == ()


def test_a_type_that_has_to_be_named_is_asked_for() -> None:
    profile = replace(shipped("nibi"), gpus=replace(shipped("nibi").gpus, default_type=None))
    (only,) = asked(profile, account="a", gpus=1).refusals
    assert only.what == "the type of GPU is missing: nibi wants it named"
    assert "h100, mi300a" in only.mend


def test_no_more_gpus_than_a_node_has() -> None:
    (only,) = asked("narval", account="a", gpus=6).refusals
    assert only.what == "6 GPUs a node (--gpus 6) are more than a node with a100 has: 4"
    assert only.mend == "write gpus: 4 and nodes: 2"
    assert asked("narval", account="a", gpus=0).refusals == ()


def test_one_gpu_or_a_whole_node() -> None:
    (only,) = asked("trillium", account="a", gpus=2).refusals
    assert (only.what, only.mend) == (
        "2 GPUs a node (--gpus 2) cannot be had on trillium",
        "write 1 or 4",
    )


def test_more_than_a_gpus_share_is_said() -> None:
    checked = asked("narval", account="a", gpus=1, cpus=20)
    assert checked.refusals == ()
    assert checked.notes == (
        "20 CPUs with 1 a100 are more than their share (12 each): it waits longer and keeps others "
        "from the GPUs",
    )
    (only,) = asked("narval", account="a", gpus=1, cpus=64).refusals
    assert "more than a node with a100 has: 48" in only.what
    (note,) = asked("claix-2023", gpus=1, gpu_type="h100", memory=200 * 1024).notes
    assert "200G with 1 h100 are more than their share (122G each)" in note


def test_idle_gpus_of_whole_nodes_are_said() -> None:
    checked = asked("juwels-booster", account="a", gpus=1, gpu_type="a100")
    assert checked.notes == (
        "jobs get whole nodes on juwels-booster: 3 of 4 GPUs would be paid for and idle",
    )


def test_gpus_that_slurm_is_not_told_of() -> None:
    checked = asked("aws-plugin", gpus=1)
    assert checked.refusals == ()
    assert checked.notes == ("GPUs cannot be asked for on aws-plugin; nodes of aws have 1 anyway",)


def test_a_job_is_neither_too_long_nor_too_short() -> None:
    (long,) = asked("fir", account="a", time=10 * 86400).refusals
    assert long.what == "10d (--time 864000) are longer than jobs may be: 7d"
    assert "agents: {chain: 2}" in long.mend
    (short,) = asked("fir", account="a", time=600).refusals
    assert short.what == (
        "10m (--time 600) are shorter than jobs may be: 1h (other than tests of up to 5m)"
    )
    assert asked("fir", account="a", time=300).refusals == ()
    assert asked("generic", time=600).refusals == ()


def test_limits_by_qos_and_partition_come_first() -> None:
    (qos,) = asked("perlmutter", account="a", qos="debug", time=3600).refusals
    assert qos.what == "1h (--time 3600) are longer than jobs may be with the QOS debug: 30m"
    (nodes,) = asked("perlmutter", account="a", qos="debug", time=60, nodes=9).refusals
    assert nodes.what.startswith("9 nodes (--nodes 9) are more than a job may have")
    (partition,) = asked("claix-2023", partition="devel", time=7200).refusals
    assert "in the partition devel: 1h" in partition.what


def test_no_chains_where_they_are_not_allowed() -> None:
    (only,) = asked(
        "perlmutter", account="a", qos="debug", time=60, agents=Agents(chain=3)
    ).refusals
    assert only.what.startswith("jobs may not follow one another with the QOS debug")
    assert asked("perlmutter", account="a", agents=Agents(chain=3)).refusals == ()


def test_an_array_is_throttled_where_the_site_wants_it() -> None:
    checked = asked("plai", agents=Agents(count=30))
    assert checked.accepted().agents.at_once == 10
    assert checked.notes == ("10 agents at once: plai allows no more of an array",)
    asked_more = asked("plai", agents=Agents(count=30, at_once=20))
    assert asked_more.notes == ("10 agents at once instead of 20: plai allows no more of an array",)
    assert asked("plai", agents=Agents(count=30, at_once=5)).accepted().agents.at_once == 5
    assert asked("cedar", account="a", agents=Agents(count=30)).accepted().agents.at_once is None


def test_where_jobs_may_be_submitted() -> None:
    trillium = shipped("trillium")
    request = Request(
        resources=with_defaults(Resources(account="a"), trillium),
        profile=trillium,
        folder=Path("/home/me/project"),
    )
    (only,) = check(request, environ={"SCRATCH": "/scratch/me"}).refusals
    assert only.what.startswith("jobs are submitted from scratch only")
    assert only.mend == "copy the project to /scratch/me and submit there"
    inside = replace(request, folder=Path("/scratch/me/project"))
    assert check(inside, environ={"SCRATCH": "/scratch/me"}).refusals == ()


def test_not_from_inside_a_job_where_that_is_forbidden() -> None:
    generic = shipped("generic")
    closed = replace(generic, submission=replace(generic.submission, from_compute_nodes=False))
    request = Request(profile=closed)
    (only,) = check(request, environ={"SLURM_JOB_ID": "7"}).refusals
    assert only.what == "jobs cannot be submitted from inside a job (7)"
    assert check(request, environ={}).refusals == ()


def test_an_image_is_named_by_the_environment_or_by_an_option() -> None:
    generic = shipped("generic")
    demands = replace(generic.submission, mandatory={"image": "nodes run images only"})
    profile = replace(generic, submission=demands)
    (only,) = check(Request(profile=profile), environ={}).refusals
    assert only.mend == "add --image=… to resources: extra, or --sbatch=--image=…"
    environment = Environment(kind="shifter", image="a:1")
    assert check(Request(profile=profile, environment=environment), environ={}).refusals == ()


def test_an_address_without_events_sends_no_mail() -> None:
    (note,) = asked("generic", mail_to="me@example.org").notes
    assert note.startswith("no mail is sent: --mail_to me@example.org says where to")
    assert asked("generic", mail_to="me@example.org", mail=("ALL",)).notes == ()


def tracked(profile: str, **words: str) -> Checked:
    return check(
        Request(
            resources=with_defaults(Resources(), shipped(profile)),
            tracking=Tracking(**words),
            profile=shipped(profile),
            origins={f"tracking.{name}": f"--{name} {value}" for name, value in words.items()},
        ),
        environ={},
    )


def test_jobs_log_to_another_server_where_nodes_reach_it() -> None:
    assert tracked("generic", server="cloud").refusals == ()
    assert tracked("generic", server="https://wandb.example.org").refusals == ()
    refusals = tracked("narval", server="cloud").refusals
    (only,) = [one for one in refusals if "--server" in one.what]
    assert only.what == (
        "programs cannot log to W&B's cloud (--server cloud): compute nodes do not reach it"
    )
    assert "`runyard sync RUN --to cloud`" in only.mend
    (only,) = tracked("generic", server="cloud", mode="relay").refusals
    assert "--mode relay" in only.what
