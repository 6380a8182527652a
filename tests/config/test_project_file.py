"""runyard.yaml: one file for the whole experiment, with file and line in every error."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import pytest

from runyard.cli.resource_flags import add_resource_flags, given_flags
from runyard.clusters.load import SHIPPED, load_profile
from runyard.config.flags import NO_FLAGS, Flags
from runyard.config.project_file import read_project
from runyard.config.request import Request
from runyard.errors import ConfigError

GENERIC = load_profile("generic", folders=[SHIPPED])


@pytest.fixture(autouse=True)
def _nothing_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("RUNYARD_CLUSTERS", raising=False)
    monkeypatch.setenv("RUNYARD_CLUSTER", "generic")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "my project"
    folder.mkdir()
    return folder


def read(project: Path, text: str, flags: Flags = NO_FLAGS, **environ: str) -> Request:
    (project / "runyard.yaml").write_text(text)
    surroundings = {"HOME": "/home/me", "RUNYARD_CLUSTER": "generic", **environ}
    return read_project(project, flags, environ=surroundings)


def flags(*words: str) -> Flags:
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_resource_flags(parser)
    return given_flags(parser.parse_args(list(words)))


WHOLE = """\
name: first
command: python train.py --lr 3e-3
environment:
  kind: conda
  name: torch
  modules: [gcc/12, cuda/12.2]
  variables: {XLA_FLAGS: "--xla_gpu_cuda_data_dir=${CUDA_HOME}", OMP_NUM_THREADS: 4}
resources:
  gpus: 2
  gpu_type: a100
  cpus: 8
  memory: 32G
  time: 2:00:00
  partition: main
  mail: [END, FAIL]
  mail_to: me@example.org
  exclude: n[3-4]
staging:
  data: [data/train, data/test]
  results: outputs
tracking:
  entity: my-team
  project: my-project
checkpoints:
  grace: 2m
agents:
  count: 8
  at_once: 4
  per_gpu: auto
"""


def test_one_file_holds_it_all(project: Path) -> None:
    request = read(project, WHOLE)
    assert request.name == "first"
    assert request.project_name == "my project"
    assert request.command == ("python", "train.py", "--lr", "3e-3")
    assert (request.resources.gpus, request.resources.gpu_type) == (2, "a100")
    assert (request.resources.memory, request.resources.time) == (32768, 7200)
    assert request.resources.mail == ("END", "FAIL")
    assert request.resources.exclude == ("n[3-4]",)
    assert request.environment.modules == ("gcc/12", "cuda/12.2")
    assert request.staging.results == ("outputs",)
    assert request.checkpoints.grace == 120
    assert request.agents.per_gpu == "auto"


def test_entity_and_project_are_set_in_the_file(project: Path) -> None:
    tracking = read(project, WHOLE).tracking
    assert (tracking.entity, tracking.project) == ("my-team", "my-project")


def test_modules_and_variables_of_a_gpu_job_are_settings(project: Path) -> None:
    environment = read(project, WHOLE).environment
    assert "cuda/12.2" in environment.modules
    assert environment.variables == {
        "XLA_FLAGS": "--xla_gpu_cuda_data_dir=${CUDA_HOME}",
        "OMP_NUM_THREADS": "4",
    }


def test_each_setting_knows_who_wrote_it(project: Path) -> None:
    request = read(project, WHOLE, flags("--time", "30m", "-g", "1"))
    assert request.origin("resources.cpus") == f"{project / 'runyard.yaml'}:11"
    assert request.origin("resources.time") == "--time 30m"
    assert request.origin("resources.gpus") == "--gpus 1"
    assert request.origin("resources.nodes") == "the profile generic"
    assert (request.resources.time, request.resources.gpus) == (1800, 1)


def test_the_file_is_found_from_anywhere_inside_the_project(project: Path) -> None:
    (project / "runyard.yaml").write_text("command: echo hi\n")
    deep = project / "src" / "deep"
    deep.mkdir(parents=True)
    request = read_project(deep, profile=GENERIC)
    assert request.folder == project
    assert request.command == ("echo", "hi")


def test_without_a_file_the_repository_is_the_project(project: Path) -> None:
    (project / ".git").mkdir()
    (project / "src").mkdir()
    request = read_project(project / "src", profile=GENERIC)
    assert (request.folder, request.project_name) == (project, "my project")
    assert request.command is None
    assert request.resources.time == 3600


def test_one_cluster_can_have_its_own_settings(project: Path) -> None:
    text = (
        "resources: {time: 1h, gpus: 1}\n"
        "clusters:\n"
        "  narval:\n"
        "    resources:\n"
        "      time: 3h\n"
        "      account: def-me\n"
        "    profile: {limits: {longest: 2d}}\n"
    )
    there = read(project, text, flags("--cluster", "narval"))
    assert (there.resources.time, there.resources.gpus) == (3 * 3600, 1)
    assert there.resources.account == "def-me"
    assert there.resources.gpu_type == "a100"
    assert there.profile.limits.longest == 2 * 86400
    assert there.origin("resources.time") == f"{project / 'runyard.yaml'}:5"
    here = read(project, text)
    assert (here.resources.time, here.resources.account) == (3600, None)


def test_the_file_may_name_its_cluster_and_the_flag_wins(project: Path) -> None:
    assert read(project, "cluster: fir\n").profile.name == "fir"
    assert read(project, "cluster: fir\n", flags("--cluster", "nibi")).profile.name == "nibi"
    assert read(project, "", RUNYARD_CLUSTER="rorqual").profile.name == "rorqual"


def test_a_sweep_id_in_the_file_wins_and_a_different_one_is_warned_of(project: Path) -> None:
    request = read(project, "name: a\nsweep_id: abc123\n", flags("-w", "other"))
    assert request.sweep_id == "abc123"
    (warning,) = request.warnings
    assert warning == (
        f"{project / 'runyard.yaml'}:2 names the sweep abc123, which wins over --sweep-id other"
    )
    same = read(project, "sweep_id: abc123\n", flags("-w", "abc123"))
    assert same.warnings == ()
    assert read(project, "", flags("-w", "other")).sweep_id == "other"


def test_there_is_no_seed_to_set(project: Path) -> None:
    with pytest.raises(ConfigError, match=r"runyard\.yaml:2: \"seed\" is not a key") as caught:
        read(project, "command: python a.py\nseed: 3\n")
    assert "belongs to your program" in str(caught.value.mend)
    parser = argparse.ArgumentParser()
    add_resource_flags(parser)
    assert not [word for word in parser._option_string_actions if "seed" in word]


def test_every_mistake_is_told_at_once_with_file_and_line(project: Path) -> None:
    text = (
        "comand: python train.py\n"
        "resources:\n"
        "  gpus: two\n"
        "  time: 90\n"
        "  memory: 16\n"
        "  cpus: 0\n"
        "  mail: [SOMETIMES]\n"
        "environment: {kind: conada}\n"
        "agents: {per_gpu: many}\n"
        "tracking: [a]\n"
    )
    with pytest.raises(ConfigError) as caught:
        read(project, text)
    lines = [line.strip() for line in caught.value.what.splitlines()]
    file = project / "runyard.yaml"
    assert lines[:6] == [
        f"{file} has 9 mistakes:",
        f'{file}:1: "comand" is not a key here; did you mean command?',
        f'{file}:3: gpus is the text "two"; a whole number is wanted; write a whole number',
        f"{file}:4: time is the number 90; a length of time says its unit; write 90s, 90m or 90h",
        f"{file}:5: memory is the number 16; an amount of memory says its unit; write 16G or 16M",
        f"{file}:6: cpus is the number 0; it must be at least 1; write 1 or more",
    ]
    assert lines[6].startswith(f'{file}:7: mail: item 1 is the text "SOMETIMES"; it can be NONE')
    assert lines[7].startswith(f'{file}:8: kind is the text "conada"; it can be none, venv')
    assert lines[7].endswith("did you mean conda?")
    assert lines[8] == (
        f'{file}:9: per_gpu is the text "many"; a whole number is wanted; write a whole number, '
        "or auto"
    )
    assert lines[9].startswith(f"{file}:10: tracking is a list; a mapping is wanted")


@pytest.mark.parametrize(
    ("text", "mend"),
    [
        ("gpus: 2\n", "write it under resources"),
        ("api_key: x\n", "no key belongs into this file"),
        ("resources: {walltime: 2h}\n", "write time"),
        ("resources: {seeds: 2}\n", "runyard repeat"),
        ("clusters: {narval: {resourcs: {}}}\n", "did you mean resources?"),
    ],
)
def test_an_unknown_key_is_answered_with_what_was_meant(
    project: Path, text: str, mend: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        read(project, text)
    assert mend in str(caught.value.mend)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [1\n", r"runyard\.yaml:1:4: .*"),
        ("- a\n", "is a list, and no mapping"),
        ("name: a\nname: b\n", r"runyard\.yaml:2:1: .*stands twice"),
        ("command: python 'a\n", "no closing quotation"),
        ("command: []\n", "a command has at least one word"),
    ],
)
def test_what_is_no_file_of_ours_is_told(project: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        read(project, text)


def test_an_empty_file_asks_for_the_defaults(project: Path) -> None:
    request = read(project, "# nothing yet\nresources:\n  gpus:\n")
    assert (request.resources.gpus, request.resources.cpus) == (0, 1)


def test_variables_are_the_shells_except_in_what_is_for_the_node(project: Path) -> None:
    text = (
        "command: python train.py ${SLURM_TMPDIR}/data\n"
        "environment:\n"
        "  kind: venv\n"
        "  path: ~/envs/${WHICH}\n"
        "  before: ['export A=${B}']\n"
        "resources:\n"
        "  account: ${MY_ACCOUNT:-def-me}\n"
    )
    request = read(project, text, WHICH="torch")
    assert request.command == ("python", "train.py", "${SLURM_TMPDIR}/data")
    assert request.environment.path == "/home/me/envs/torch"
    assert request.environment.before == ("export A=${B}",)
    assert request.resources.account == "def-me"
    with pytest.raises(ConfigError, match=r"runyard\.yaml:4: \$\{WHICH\} is not set") as caught:
        read(project, text)
    assert "export WHICH" in str(caught.value.mend)


def test_memory_can_be_asked_for_each_gpu(project: Path) -> None:
    assert read(project, "resources: {gpus: 4, memory_per_gpu: 10G}\n").resources.memory == 40960
    assert read(project, "", flags("-m", "10G")).resources.memory == 10240
    assert read(project, "", flags("--mem", "10G", "-g", "2")).resources.memory == 10240
    with pytest.raises(ConfigError, match="both say how much memory"):
        read(project, "resources: {memory: 1G, memory_per_gpu: 2G}\n")
    with pytest.raises(ConfigError, match="--memory 1G and --mem-per-gpu 2G both say"):
        read(project, "", flags("--mem", "1G", "-m", "2G"))


def test_of_two_ways_to_say_a_thing_the_nearer_one_counts(project: Path) -> None:
    text = (
        "resources: {memory: 1G, gpus: 2}\n"
        "command: python a.py\n"
        "clusters: {generic: {resources: {memory_per_gpu: 2G}, command_file: c.txt}}\n"
    )
    (project / "c.txt").write_text("b.py\n")
    here = read(project, text)
    assert (here.resources.memory, here.command) == (4096, ("python", "b.py"))
    there = read(project, text, flags("--cluster", "fir"))
    assert (there.resources.memory, there.command) == (1024, ("python", "a.py"))
    flagged = read(project, text, flags("--cluster", "fir", "-m", "3G", "-C", "c.txt"))
    assert (flagged.resources.memory, flagged.command) == (6144, ("python", "b.py"))
    with pytest.raises(ConfigError, match="both say the command"):
        read(project, "command: a\ncommand_file: c.txt\n")


def test_a_project_can_change_any_field_of_the_profile(project: Path) -> None:
    text = "profile: {script: {interpreter: /usr/bin/zsh}, gpus: {form: gpus_per_node}}\n"
    profile = read(project, text).profile
    assert (profile.script.shell, profile.gpus.form) == ("zsh", "gpus_per_node")
    with pytest.raises(ConfigError, match=r"runyard\.yaml:1: the profile generic") as caught:
        read(project, "profile: {script: {interpreter: /bin/csh}}\n")
    assert "not for csh" in str(caught.value.said)


def test_an_image_means_a_container(project: Path) -> None:
    environment = read(project, "environment: {image: torch.sif}\n").environment
    assert (environment.kind, environment.image) == ("apptainer", "torch.sif")
    assert read(project, "", flags("-s", "a.sif")).environment.kind == "apptainer"
    assert read(project, "environment: {kind: singularity, image: a.sif}").environment.kind == (
        "apptainer"
    )
    shifter = read(project, "environment: {kind: shifter, image: nersc/pytorch:24}").environment
    assert shifter.kind == "shifter"


def test_an_image_file_ends_in_sif(project: Path) -> None:
    with pytest.raises(ConfigError, match=r"does not end in \.sif"):
        read(project, "", flags("-s", "image.img"))
    with pytest.raises(ConfigError, match="runs an image, and none is named"):
        read(project, "environment: {kind: apptainer}\n")
    with pytest.raises(ConfigError, match="there is an image, and the environment's kind is conda"):
        read(project, "environment: {kind: conda, image: a.sif}\n")


def test_lightning_gets_a_task_a_gpu_and_torchrun_one_a_node(project: Path) -> None:
    text = "resources: {gpus: 4, cpus: 3, nodes: 2}\n"
    lightning = read(project, text, flags("-W", "lightning")).resources
    assert (lightning.tasks_per_node, lightning.cpus) == (4, 3)
    torchrun = read(project, text, flags("-W", "script")).resources
    assert (torchrun.tasks_per_node, torchrun.cpus) == (1, 12)


def test_a_part_for_a_cluster_that_nobody_knows_is_warned_of(project: Path) -> None:
    text = "name: a\nclusters:\n  narvall: {name: b}\n"
    (warning,) = read(project, text).warnings
    assert warning == (
        f"{project / 'runyard.yaml'}:3: no profile is called narvall, so nothing reads this part "
        "here; did you mean narval?"
    )


def test_who_names_a_type_of_gpu_wants_one(project: Path) -> None:
    assert read(project, "resources: {gpu_type: a100}\n").resources.gpus == 1
    assert read(project, "resources: {gpu_type: a100, gpus: 0}\n").resources.gpus == 0


@pytest.mark.parametrize(("key", "kind"), [("name: torch", "conda"), ("path: env", "venv")])
def test_an_environment_says_its_kind(project: Path, key: str, kind: str) -> None:
    with pytest.raises(ConfigError, match=r"runyard\.yaml:1: the environment has a") as caught:
        read(project, f"environment: {{{key}}}\n")
    assert f"kind: {kind}" in str(caught.value.mend)


def test_a_clusters_change_of_the_profile_is_told_with_its_own_line(project: Path) -> None:
    text = "clusters:\n  generic:\n    profile:\n      script: {interpreter: /bin/csh}\n"
    with pytest.raises(ConfigError, match=r"runyard\.yaml:4: the profile generic"):
        read(project, text)


def test_the_kind_of_job_follows_and_a_kind_that_is_said_is_held_to(project: Path) -> None:
    assert read(project, "").job_type == "standard"
    assert read(project, "", flags("-w", "abc")).job_type == "sweep"
    assert read(project, "sweep: sweep.yaml\n").job_type == "sweep"
    assert read(project, "", flags("-W", "torchrun")).job_type == "distributed"
    assert (
        read(project, "", flags("--job-type", "distributed", "-W", "script")).job_type
        == "distributed"
    )
    with pytest.raises(ConfigError, match="--job-type distributed: a distributed job says how"):
        read(project, "", flags("--job-type", "distributed"))
    with pytest.raises(ConfigError, match=r"runyard\.yaml:1: a sweep job says which sweep"):
        read(project, "job_type: sweep\n")


def test_a_part_for_a_site_holds_for_its_clusters_and_for_groups_there(
    project: Path, tmp_path: Path
) -> None:
    mine = tmp_path / "config" / "runyard" / "clusters"
    mine.mkdir(parents=True)
    (mine / "lab.yaml").write_text("inherits: narval\n")
    text = (
        "clusters:\n"
        "  alliance: {resources: {account: def-me, time: 2h}}\n"
        "  narval: {resources: {time: 3h}}\n"
        "  generic: {name: elsewhere}\n"
    )
    for name in ("narval", "lab"):
        found = read(project, text, flags("--cluster", name))
        assert (found.resources.account, found.resources.time) == ("def-me", 3 * 3600)
        assert found.name is None
    assert read(project, text).name == "elsewhere"


def test_a_file_that_anybody_could_have_left_is_not_read(project: Path) -> None:
    inside = project / "mine"
    inside.mkdir()
    (project / "runyard.yaml").write_text("name: theirs\n")
    assert read_project(inside, profile=GENERIC).name == "theirs"
    project.chmod(0o1777)  # As /tmp is.
    request = read_project(inside, profile=GENERIC)
    assert request.name is None
    (warning,) = request.warnings
    assert warning.startswith(f"{project / 'runyard.yaml'} is not read")
    assert warning.endswith(f"`cd {project}`")
    request = read_project(project, profile=GENERIC)
    assert (request.name, [*request.warnings]) == ("theirs", [])


def test_a_repository_that_anybody_could_have_left_is_not_the_project(project: Path) -> None:
    inside = project / "mine" / "src"
    inside.mkdir(parents=True)
    (project / ".git").mkdir()
    (project / "experiment_configuration.txt").write_text("python theirs.py\n")
    command = read_project(inside, profile=GENERIC, needs_command=True).command
    assert command == ("python", "theirs.py")
    project.chmod(0o1777)  # As /tmp and some scratch disks are.
    request = read_project(inside, profile=GENERIC, needs_command=True)
    assert (request.folder, request.command) == (inside, None)
    # The next one above that is the user's counts.
    (project.parent / ".git").mkdir()
    assert read_project(inside, profile=GENERIC).folder == project.parent


def test_the_folder_of_older_scripts_is_no_way_into_an_open_folder(project: Path) -> None:
    scripts = project / "hpc_files"
    scripts.mkdir()
    assert read_project(scripts, profile=GENERIC).folder == project
    project.chmod(0o1777)
    assert read_project(scripts, profile=GENERIC).folder == scripts


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to somebody else")
@pytest.mark.parametrize("mark", ["runyard.yaml", ".git"])
def test_a_mark_of_somebody_else_above_the_folder_is_passed_over(project: Path, mark: str) -> None:
    inside = project / "mine"
    inside.mkdir()
    (project / mark).write_text("name: theirs\n")
    assert read_project(inside, profile=GENERIC).folder == project
    os.chown(project / mark, 54321, -1)
    assert read_project(inside, profile=GENERIC).folder == inside
    assert read_project(project, profile=GENERIC).folder == project
