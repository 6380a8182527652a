"""What a submission becomes: how many agents, what each of them gets, what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from runyard.clusters.load import load_profile
from runyard.clusters.profile import GpuSlice, GpuType, MemoryRule
from runyard.config.check import check
from runyard.config.request import Agents, Checkpoints, Environment, Request
from runyard.errors import ConfigError
from runyard.launch.script import script
from runyard.launch.submitting import parts_of
from runyard.schedulers.slurm.limits import is_limit
from runyard.schedulers.slurm.variables import clean_environment
from tests.launch.planning import option, planned, request


def test_as_many_agents_as_there_are_trials_unless_somebody_says() -> None:
    assert planned(trials=9).agents == 9
    assert planned(trials=9, agents=Agents(count=3)).agents == 3
    assert planned(trials=None).agents == 1
    assert planned(trials=100, slots=4).agents == 25
    assert planned(trials=10, agents=Agents(trials_each=3)).agents == 4
    assert planned(trials=100, gpus=1, agents=Agents(per_gpu=4)).agents == 25


def test_a_long_sweep_is_split_into_short_jobs_within_the_sites_limits() -> None:
    # The seed's array: 30 jobs of ten minutes, five at once.
    made = planned(request(time=600.0, agents=Agents(at_once=5)), trials=30)
    assert (made.form, made.agents, made.at_once) == ("array", 30, 5)
    assert option(made, "time") == "0-00:10:00"
    # No more jobs than a user may have there, unless somebody says so.
    assert planned(request("narval", account="a"), trials=3000).agents == 1000
    assert planned(request("narval", account="a"), trials=900).agents == 900
    assert planned(request("narval", agents=Agents(count=1500)), trials=3000).agents == 1500
    assert planned(request("narval", agents=Agents(trials_each=2)), trials=3000).agents == 1500
    # No job that is shorter than the site's shortest, where nobody asked for a time.
    slow = load_profile("fir")
    slow = replace(slow, limits=replace(slow.limits, shortest=7200.0),
                   submission=replace(slow.submission, defaults={}))  # fmt: skip
    assert option(planned(request(slow), trials=30), "time") == "0-02:00:00"


def test_one_agent_is_one_job_and_no_array() -> None:
    assert planned(trials=1).form == "jobs"
    assert planned(trials=2).form == "array"


def test_the_throttle_is_the_users_or_the_sites_whichever_is_less() -> None:
    assert planned(trials=30, agents=Agents(at_once=5)).at_once == 5
    assert planned(request("plai", gpus=1), trials=30).at_once == 10
    assert planned(request("plai", gpus=1, agents=Agents(at_once=3)), trials=30).at_once == 3
    assert planned(trials=3, agents=Agents(at_once=5)).at_once is None


def test_a_chain_is_an_array_of_one_at_a_time() -> None:
    made = planned(trials=1, agents=Agents(chain=30))
    assert (made.form, made.agents, made.at_once) == ("array", 30, 1)


def test_an_array_task_asks_for_what_one_agent_needs() -> None:
    made = planned(agents=Agents(count=4), gpus=1)
    assert (option(made, "nodes"), option(made, "gres")) == ("1", "gpu:1")
    over = planned(agents=Agents(count=4, form="nodes"))
    assert (option(over, "nodes"), option(over, "ntasks-per-node")) == ("4", "1")


@pytest.mark.parametrize(
    ("profile", "kind", "count", "asked"),
    [
        ("generic", None, 1, ("gres", "gpu:1")),
        ("generic", None, 2, ("gres", "gpu:2")),
        ("generic", "volta", 1, ("gres", "gpu:volta:1")),
        ("narval", None, 2, ("gpus-per-node", "a100:2")),  # The site's usual type.
        ("narval", "a100_1g.5gb", 1, ("gpus-per-node", "a100_1g.5gb:1")),
        ("aws-plugin", None, 2, None),
    ],
)
def test_gpus_are_asked_for_in_the_sites_form(
    profile: str, kind: str | None, count: int, asked: tuple[str, str] | None
) -> None:
    made = planned(request(profile, gpus=count, gpu_type=kind))
    gpus = [one for one in made.header.options if "gpu" in one[0] or one[0] == "gres"]
    assert gpus == ([] if asked is None else [asked])


@pytest.mark.parametrize(
    ("form", "name", "value"),
    [
        ("per_node", "mem", "16384M"),
        ("per_cpu", "mem-per-cpu", "4096M"),
        ("per_gpu", "mem-per-gpu", "8192M"),
        ("none", "mem", None),
    ],
)
def test_memory_is_asked_for_in_the_form_that_is_permitted(
    form: str, name: str, value: str | None
) -> None:
    profile = replace(load_profile("generic"), memory=MemoryRule(form=form))
    made = planned(request(profile, gpus=2, cpus=4, memory=16384))
    assert option(made, name) == value
    assert len([one for one, _ in made.header.options if one.startswith("mem")]) == bool(value)


def test_zero_gpus_ask_for_none_and_a_program_gets_a_cpu() -> None:
    made = planned(gpus=0, slots=4)
    assert option(made, "gres") is None
    assert option(made, "cpus-per-task") == "4"
    assert option(planned(gpus=1), "cpus-per-task") == "2"  # wandb runs beside it.
    assert option(planned(gpus=1, cpus=1), "cpus-per-task") == "1"


def test_every_program_at_a_time_has_a_cpu_and_fewer_are_refused() -> None:
    """`-c` counts the CPUs of the whole job, as sbatch does and as the documents of sites have it:
    four programs at a time are `--cpus-per-task=4`."""
    four = Agents(per_gpu=4)
    assert option(planned(gpus=1, agents=four), "cpus-per-task") == "4"
    assert option(planned(gpus=2, agents=four), "cpus-per-task") == "8"
    assert option(planned(gpus=1, cpus=4, agents=four), "cpus-per-task") == "4"
    with pytest.raises(ConfigError, match=r"4 programs at a time .* 1 CPU") as refused:
        planned(gpus=1, cpus=1, agents=four)
    assert "cpus: 4" in str(refused.value.mend)
    with pytest.raises(ConfigError, match=r"3 programs at a time .* 2 CPUs"):
        planned(cpus=2, slots=3)
    # One alone, in a shell say, needs one, however many the project packs.
    alone = planned(gpus=1, cpus=1, agents=four, trials=1)
    assert option(alone, "cpus-per-task") == "1"
    assert option(planned(gpus=1, agents=four, trials=1), "cpus-per-task") == "4"
    # Programs of several processes: a job has so many CPUs for each of its tasks.
    assert option(planned(cpus=2, slots=3, tasks_per_node=2), "cpus-per-task") == "2"


def test_where_a_gpus_share_of_cpus_is_smaller_than_one_each_it_is_passed_and_told() -> None:
    site = load_profile("generic")
    small = replace(site, gpus=replace(site.gpus, types={"t4": GpuType(cpus=2, per_node=2)}))

    def asked(together: int) -> Request:
        return request(small, gpus=1, gpu_type="t4", agents=Agents(per_gpu=together))

    assert option(planned(asked(2)), "cpus-per-task") == "2"
    assert not planned(asked(2)).notes
    more = planned(asked(3))
    assert option(more, "cpus-per-task") == "3"
    assert (
        "3 CPUs, one for each program at a time, are more than the share of 1 t4" in more.notes[0]
    )
    with pytest.raises(ConfigError, match=r"5 programs at a time .* a node with t4 has 4"):
        planned(asked(5))


def test_where_slurm_counts_threads_a_program_gets_a_core() -> None:
    usual = load_profile("generic")
    threads = replace(usual, memory=replace(usual.memory, threads_per_core=2))
    assert option(planned(request(threads), slots=4), "cpus-per-task") == "8"
    assert option(planned(request(threads, gpus=1)), "cpus-per-task") == "4"
    assert option(planned(request(threads, cpus=3)), "cpus-per-task") == "3"


def test_mails_are_asked_for_as_the_options_say() -> None:
    made = planned(mail=("ALL",), mail_to="someone@domain.com")
    assert (option(made, "mail-type"), option(made, "mail-user")) == ("ALL", "someone@domain.com")
    several = planned(mail=("END", "FAIL"))
    assert (option(several, "mail-type"), option(several, "mail-user")) == ("END,FAIL", None)
    assert option(planned(), "mail-type") is None


def test_mps_and_slices_are_the_profiles_choice() -> None:
    site = load_profile("generic")
    slices = {"a100_1g.5gb": GpuSlice(memory_gb=5, cpus=2, of="a100")}
    without = replace(site, gpus=replace(site.gpus, mps=False, slices=slices))
    wanted = Agents(per_gpu=2, mps="on")
    assert planned(request(site, gpus=1, agents=wanted)).job["mps"] == "on"
    assert planned(request(without, gpus=1, agents=wanted)).job["mps"] == "off"
    sliced = request(without, gpus=1, gpu_type="a100_1g.5gb", agents=wanted)
    assert option(planned(sliced), "gres") == "gpu:a100_1g.5gb:1"
    assert not check(sliced).refusals
    other = request(without, gpus=1, gpu_type="a100_2g.10gb", agents=wanted)
    assert "there is no GPU of type a100_2g.10gb" in check(other).refusals[0].what


def test_programs_are_told_before_the_end() -> None:
    made = planned(time=7200.0)
    assert option(made, "signal") == "B:USR2@120"
    told = replace(request(time=7200.0), checkpoints=Checkpoints(grace=300.0))
    assert option(planned(told), "signal") == "B:USR2@300"
    # Slurm may signal a minute too soon; in a short job the agent's own clock is better.
    assert option(planned(time=300.0), "signal") is None


@pytest.mark.parametrize(
    ("partition", "is_spot"),
    [("spare", True), ("main,spare", True), ("main", False), (None, True)],
    ids=["spot", "one of them", "another", "the cluster's default"],
)
def test_agents_are_told_that_their_job_may_be_pushed_out(
    partition: str | None, is_spot: bool
) -> None:
    usual = load_profile("generic")
    profile = replace(usual, elasticity=replace(usual.elasticity, spot=("spare",)))
    made = planned(request(profile, partition=partition))
    assert made.job.get("pushed_out", False) is is_spot
    assert ('[ "$left" = stays ]' in script(made)) is is_spot
    assert "pushed_out" not in planned(request(usual, partition=partition)).job


@pytest.mark.parametrize(("qos", "is_spot"), [("spare", True), ("main", False), (None, True)])
def test_agents_are_told_that_their_qos_may_be_pushed_out(qos: str | None, is_spot: bool) -> None:
    usual = load_profile("generic")
    profile = replace(usual, elasticity=replace(usual.elasticity, spot_qos=("spare",)))
    made = planned(request(profile, partition="main", qos=qos))
    assert made.job.get("pushed_out", False) is is_spot
    assert "#SBATCH --requeue" in script(made)


def test_the_job_has_a_name_that_says_what_it_is() -> None:
    assert planned().name == "sweep-cats-base"
    assert planned(name=None).name == "sweep-cats"
    assert planned(name="a b/c\nd").name == "sweep-cats-a_b_c_d"


def test_logs_are_named_by_array_and_task_by_job_or_by_job_and_node() -> None:
    folder = "/scratch/kim/cats/hpc_outputs"
    assert planned(trials=4).log_pattern == f"{folder}/sweep-cats-base-%A_%a.log"
    assert planned(trials=1, kind="run").log_pattern == f"{folder}/run-cats-base-%j.log"
    ranks = replace(request(nodes=2), distributed="srun")
    assert planned(ranks, trials=1, kind="run").log_pattern == (f"{folder}/run-cats-base-%j-%N.log")
    assert planned(ranks, trials=4).log_pattern == f"{folder}/sweep-cats-base-%A_%a.log"


def test_what_looks_like_a_secret_does_not_get_into_a_script() -> None:
    for name in ("WANDB_API_KEY", "HF_TOKEN", "my_password"):
        with pytest.raises(ConfigError, match=name):
            planned(environment=Environment(variables={name: "x"}))


def test_options_of_ones_own_win_over_ours() -> None:
    made = planned(extra=("--open-mode=truncate", "--exclusive"))
    assert option(made, "open-mode") == "truncate"
    assert ("exclusive", None) in made.header.options


def test_an_array_is_split_where_the_index_ends() -> None:
    made = planned(trials=3000)
    assert [(one.count, one.offset) for one in parts_of(made, 1001)] == [
        (1000, 0),
        (1000, 1000),
        (1000, 2000),
    ]
    assert [one.count for one in parts_of(planned(trials=20), 1001)] == [20]
    assert len(parts_of(planned(trials=3, agents=Agents(form="jobs")), 1001)) == 3


def test_nothing_of_the_shell_overrules_the_script() -> None:
    shell = {
        "PATH": "/bin",
        "SBATCH_ACCOUNT": "def-kim",
        "SBATCH_QOS": "slow",
        "SBATCH_TIMELIMIT": "1",
        "SLURM_JOB_ID": "7",
        "SLURM_CONF": "/etc/slurm.conf",
        "WANDB_API_KEY": "secret",
    }
    kept = clean_environment(shell, ["job-name", "qos", "time"])
    assert set(kept) == {"PATH", "SBATCH_ACCOUNT", "SLURM_CONF"}


def test_too_many_jobs_is_told_from_a_job_that_is_wrong() -> None:
    general = (
        "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"
    )
    assert is_limit(f"sbatch: error: AssocMaxSubmitJobLimit\nsbatch: error: {general}")
    assert is_limit(f"sbatch: error: QOSMaxSubmitJobPerUserLimit\nsbatch: error: {general}")
    assert is_limit(f"sbatch: error: Batch job submission failed: {general}")
    assert not is_limit(f"sbatch: error: QOSMaxWallDurationPerJobLimit\nsbatch: error: {general}")
    assert not is_limit("sbatch: error: Invalid account or account/partition combination")
