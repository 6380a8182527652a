"""Job scripts: golden for every profile that runyard brings, and valid in the shell they name.

`RUNYARD_WRITE_GOLDEN=1` writes the golden files anew; the diff is then what changed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runyard.clusters.load import SHIPPED, load_profile
from runyard.config.check import check
from runyard.config.request import Agents, Environment, Request, Resources
from runyard.home import SOURCE
from runyard.launch.plan import Places
from runyard.launch.script import Part, renumber, script
from runyard.schedulers.jobs import Batch
from runyard.schedulers.slurm.scheduler import Slurm
from runyard.version import __version__
from tests.launch.planning import planned, request, without_scratch
from tests.packages import find_shells
from tests.slurm.config import ClusterSpec
from tests.slurm.plugin import MakeCluster

GOLDEN = Path(__file__).parent / "golden"
PROFILES = sorted(file.stem for file in SHIPPED.glob("*.yaml"))
SHELLS = find_shells()


def typical(profile: str) -> Request:
    """What a user of that cluster asks for: one GPU and an array of a dozen, eight at once."""
    found = load_profile(profile)
    allowed = found.submission.values
    named: dict[str, Any] = {
        name: next(iter(allowed.get(name, ())), "def-kim").replace("*", "kim")
        for name in found.submission.mandatory
        if name in ("account", "partition", "qos") and name not in found.submission.defaults
    }
    kind = found.gpus.default_type or next(iter(found.gpus.types), None)
    model = found.gpus.types.get(kind or "")
    gpus = (model.per_node or 1) if model and found.gpus.whole_nodes else 1
    longest = found.limit(None, found.submission.defaults.get("qos")).longest
    return request(
        profile,
        resources=Resources(
            gpus=min(found.gpus.counts, default=gpus),
            gpu_type=(kind or "h100") if found.gpus.name_type else None,
            memory=16 * 1024,
            time=min(2 * 3600.0, longest or 1e9),
            mail=("END", "FAIL"),
            mail_to="kim@example.org",
            **named,
        ),
        agents=Agents(count=12, at_once=8),
    )


def shell_of(profile: str) -> str:
    return load_profile(profile).script.shell


def accepts(shell: str, text: str) -> str:
    """What the shell says against a script's grammar; nothing if it takes it."""
    done = subprocess.run(
        [shell, "-n", "/dev/stdin"], input=text, capture_output=True, text=True, check=False
    )
    return done.stderr if done.returncode or done.stderr else ""


@pytest.mark.parametrize("profile", PROFILES)
def test_the_script_of_every_profile_is_as_it_was_and_valid(profile: str) -> None:
    asked = check(typical(profile), environ={"SCRATCH": "/home", "HPCWORK": "/w"}).accepted()
    text = script(planned(asked)).replace(f"runyard {__version__}", "runyard VERSION")
    file = GOLDEN / f"{profile}.sh"
    if os.environ.get("RUNYARD_WRITE_GOLDEN"):
        file.write_text(text)
    assert text == file.read_text()
    shell = shell_of(profile)
    assert shell in ("bash", "zsh")
    assert text.startswith(f"#!{load_profile(profile).script.interpreter}")
    for one in {shell, *SHELLS} & set(SHELLS):
        assert accepts(one, text) == ""


@pytest.mark.parametrize(("form", "log"), [("array", "%A_%a"), ("nodes", "%j"), ("jobs", "%j")])
def test_the_three_forms_of_a_job(form: str, log: str) -> None:
    plan = planned(request(agents=Agents(count=4, form=form), gpus=1, cpus=4))
    text = script(plan).replace(f"runyard {__version__}", "runyard VERSION")
    assert f"#SBATCH --chdir={plan.places.job}\n" in text
    assert f"#SBATCH --output={plan.logs}/{plan.log_prefix}{log}.log\n" in text
    file = GOLDEN / f"form-{form}.sh"
    if os.environ.get("RUNYARD_WRITE_GOLDEN"):
        file.write_text(text)
    assert text == file.read_text()
    for shell in SHELLS:
        assert accepts(shell, text) == ""


def test_a_script_outside_a_job_says_where_it_belongs(tmp_path: Path) -> None:
    file = tmp_path / "script.sh"
    file.write_text(script(planned(request(agents=Agents(count=4, form="nodes")))))
    environ = {name: value for name, value in os.environ.items() if not name.startswith("SLURM")}
    for shell in SHELLS:
        tried = subprocess.run(
            [shell, file], env=environ, capture_output=True, text=True, check=False
        )
        assert tried.returncode == 2
        assert "srun, which it may use, works in no other place" in tried.stderr
        assert f"sbatch {file}; or, for an allocation to run it in:  runyard shell" in tried.stderr


def test_jobs_of_one_number_in_two_clusters_of_a_machine_have_folders_of_their_own() -> None:
    lines = script(planned(request())).splitlines()
    began = next(turn for turn, line in enumerate(lines) if "RUNYARD_LOCAL=" in line)
    until = lines.index("esac", began)
    text = "\n".join([*lines[began : until + 1], 'echo "$SLURM_TMPDIR"'])
    said = [
        subprocess.run(
            ["bash", "-c", text],
            env={**job, "TMPDIR": "/disk", "PATH": os.environ["PATH"], "SLURMD_NODENAME": "n1"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for job in (
            {"SLURM_JOB_ID": "1", "SLURM_CLUSTER_NAME": "one"},
            {"SLURM_JOB_ID": "1", "SLURM_CLUSTER_NAME": "two"},
            {},
            {},
        )
    ]
    assert said[0] == f"/disk/runyard-{os.getuid()}/1-one-n1"
    assert len(set(said)) == 4, said


@pytest.mark.parametrize("is_node", [False, True], ids=["script", "node"])
def test_where_somebody_took_the_folders_name_the_job_goes_on_in_another(
    tmp_path: Path, *, is_node: bool
) -> None:
    text = script(planned(request(agents=Agents(count=4, form="nodes"))))
    text = text.replace("/home/kim/venvs/runyard/bin/python", sys.executable)
    text = text.replace("/home/kim/venvs/runyard/lib", SOURCE)
    lines = text.splitlines()
    began = next(turn for turn, line in enumerate(lines) if "RUNYARD_LOCAL=" in line)
    until = lines.index("fi", began)
    job = ["job=/nowhere", *lines[began : until + 1]]
    look = """'echo "$SLURM_TMPDIR"; stat -c %a:%u "$SLURM_TMPDIR"'"""
    if is_node:  # What each node runs, on one that is not the script's.
        began, until = lines.index("on_node='"), lines.index('  exit "$code"\'')
        job += lines[began : until + 1]
        job.append(f"""SLURMD_NODENAME=n2 sh -c "$on_node" agent "${{steward[@]}}" sh -c {look}""")
    else:
        job.append(f"sh -c {look}")
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (tmp_path / f"runyard-{os.getuid()}").symlink_to(theirs)
    done = subprocess.run(
        ["bash", "-c", "\n".join(job)],
        env={"PATH": os.environ["PATH"], "TMPDIR": str(tmp_path), "SLURM_JOB_ID": "1",
             "SLURM_JOB_NUM_NODES": "1", "SLURMD_NODENAME": "n1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    folder, mode = done.stdout.splitlines()
    assert re.fullmatch(
        rf"{tmp_path}/runyard-{os.getuid()}\.runyard-\w{{16}}/1-here-n{1 + is_node}", folder
    )
    assert mode == f"700:{os.getuid()}"
    assert "is not a folder of yours; the job's own folder is" in done.stderr
    assert list(theirs.iterdir()) == []


def section(text: str, comment: str) -> str:
    """The lines of a script from a comment to the next empty line."""
    return text[text.index(f"# {comment}") :].partition("\n\n")[0]


def test_a_gpu_job_says_what_the_program_finds(tmp_path: Path) -> None:
    driver = tmp_path / "nvidia-smi"
    driver.write_text("#!/bin/sh\necho '0, NVIDIA A100, 3 MiB, 40960 MiB, 0 %'\n")
    driver.chmod(0o755)
    lines = section(script(planned(request(gpus=1))), "The GPUs as the program finds them.")
    environ = {"CUDA_VISIBLE_DEVICES": "0", "LOADEDMODULES": "cuda/12:gcc", "WANDB_API_KEY": "k"}
    for path, cards in (
        (
            f"{tmp_path}:{os.environ['PATH']}",
            ["runyard: GPU 0, NVIDIA A100, 3 MiB, 40960 MiB, 0 %"],
        ),
        (os.environ["PATH"], []),
    ):
        for shell in SHELLS:
            said = subprocess.run(
                [shell, "-c", lines], env={**environ, "PATH": path}, capture_output=True, text=True,
                check=True,
            )  # fmt: skip
            assert said.stdout.splitlines() == [
                *cards,
                "runyard: CUDA_VISIBLE_DEVICES=0, modules cuda/12:gcc",
            ]
    assert "nvidia-smi" not in script(planned(request()))


def test_modules_and_variables_are_there_before_the_program(tmp_path: Path) -> None:
    """A stand-in for the site's `module`, which sets what a CUDA module sets."""
    environment = Environment(
        modules=("cuda/12.2",), variables={"XLA_FLAGS": "--xla_gpu_cuda_data_dir=${CUDA_HOME}"}
    )
    text = script(planned(request(gpus=1, environment=environment)))
    lines = [section(text, "The cluster's software."),
             section(text, "Variables of the cluster and the project.")]  # fmt: skip
    module = 'module() { [ "$*" != "load cuda/12.2" ] || export CUDA_HOME=/opt/cuda-12.2; }'
    for shell in SHELLS:
        said = subprocess.run(
            [shell, "-c", "\n".join([module, *lines, "env"])], capture_output=True, text=True,
            check=True,
        )  # fmt: skip
        assert "XLA_FLAGS=--xla_gpu_cuda_data_dir=/opt/cuda-12.2\n" in said.stdout
    assert text.index("module load") < text.index("export XLA_FLAGS") < text.index("agent=(")


def test_a_profile_says_where_srun_lies(tmp_path: Path) -> None:
    srun = tmp_path / "it's here" / "srun"
    srun.parent.mkdir()
    srun.write_text("#!/bin/sh\necho found\n")
    srun.chmod(0o755)
    generic = load_profile("generic")
    profile = replace(generic, script=replace(generic.script, path=(str(srun.parent),)))
    lines = section(script(planned(request(profile))), "The cluster's software.")
    said = subprocess.run(
        ["bash", "-c", f"{lines}\nsrun"], env={"PATH": "/usr/bin:/bin"}, capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    assert said.stdout == "found\n"


def test_everything_is_quoted_in_a_hostile_folder() -> None:
    folder = Path('/home/it\'s "mine"\n$(touch /tmp/pwned) %j')
    places = Places(
        home=folder,
        job=folder / "jobs" / "1",
        work=folder / "project",
        source=folder / "project",
        project=folder / "project",
        manifest=folder / "manifest.json",
        python_path=folder / "src",
    )
    variables = {"GREETING": 'a "b", $(c) ${SLURM_TMPDIR}'}
    asked = request(environment=Environment(variables=variables))
    text = script(planned(asked, places=places))
    for shell in SHELLS:
        assert accepts(shell, text) == ""
    # No line of sbatch's can hold the folder: it is said beside the script.
    batch = Batch("sweep", text, "key", folder=places.job)
    assert Slurm({}).command(batch)[-1] == f"--chdir={places.job}"
    assert all("\n" not in line and "mine" not in line for line in sbatch_lines(text))
    assert 'export GREETING="a \\"b\\", \\$(c) ${SLURM_TMPDIR}"' in text


def sbatch_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("#SBATCH")]


def test_a_part_is_the_same_script_with_other_numbers() -> None:
    made = planned(agents=Agents(count=2500, at_once=8))
    first, last = Part(1000), Part(500, 2000)
    assert renumber(script(made, first), last, made.scheduler) == script(made, last)
    assert "#SBATCH --array=1-500%8" in script(made, last)
    assert "offset=2000" in script(made, last)


def test_logs_are_where_the_cluster_has_room() -> None:
    made = planned()
    assert "--output=/scratch/kim/cats/hpc_outputs/sweep-cats-base-%A_%a.log" in script(made)
    assert "--output=/home/kim/.runyard/jobs/" in script(planned(places=without_scratch()))


def options_of_profiles() -> ClusterSpec:
    """A cluster that has what the golden scripts name: partitions, constraints, types of GPUs."""
    named: dict[str, set[str]] = {}
    for profile in PROFILES:
        for line in sbatch_lines((GOLDEN / f"{profile}.sh").read_text()):
            option, _, value = line.removeprefix("#SBATCH --").partition("=")
            named.setdefault(option, set()).add(value)
    types = {value.split(":")[0] for value in named["gpus-per-node"] if ":" in value}
    return ClusterSpec(
        nodes=1, cpus=256, memory_mb=2_000_000, gpus=8, enforce=True,
        more_gpu_types=tuple(sorted(types)),
        features=tuple(sorted(named["constraint"])),
        more_partitions=tuple(sorted(named["partition"])),
    )  # fmt: skip


@pytest.mark.slurm
def test_slurm_takes_the_scripts_options(make_slurm_cluster: MakeCluster) -> None:
    """On a cluster with those options and no others: accounts and QOS are enforced there."""
    cluster = make_slurm_cluster(options_of_profiles())
    script = (GOLDEN / "perlmutter.sh").read_text()
    refused = cluster.run("sbatch", "--test-only", stdin=script, check=False)
    assert "Invalid account or account/partition combination" in refused.stderr
    accounts = {line for profile in PROFILES for line in sbatch_lines(
        (GOLDEN / f"{profile}.sh").read_text()) if "--account=" in line}  # fmt: skip
    manage = ("sacctmgr", "--immediate", "add")
    cluster.run(*manage, "qos", "regular")
    for account in ("usual", *(line.partition("=")[2] for line in accounts)):
        cluster.run(*manage, "account", account)
        cluster.run(*manage, "user", "root", f"account={account}", "qos=normal,regular")
    for profile in PROFILES:
        text = (GOLDEN / f"{profile}.sh").read_text()
        said = cluster.run("sbatch", "--test-only", stdin=text).stderr
        assert "to start at" in said, profile


def test_where_the_first_node_alone_has_a_way_out_the_others_go_through_it() -> None:
    asked = request(agents=Agents(count=4, form="nodes"))
    asked = replace(asked, tracking=replace(asked.tracking, mode="relay"))
    text = script(planned(asked))
    assert 'export RUNYARD_RELAY="$job/relay-$SLURM_JOB_ID"' in text
    assert text.index("runyard.node.link.relay") < text.index("srun ")
    assert 'kill "$relay"' in text
    for shell in SHELLS:
        assert accepts(shell, text) == ""
    assert "RUNYARD_RELAY" not in script(planned(request(agents=Agents(count=4, form="nodes"))))
