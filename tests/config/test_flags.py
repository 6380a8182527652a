"""Every setting of runyard.yaml is an option, and the seed scripts' own letters work."""

from __future__ import annotations

import argparse

import pytest

from runyard.cli.parser import Parser
from runyard.cli.resource_flags import add_resource_flags, given_flags
from runyard.config.flags import flag_fields
from runyard.errors import UsageError


def parse(*words: str) -> dict[str, object]:
    parser = Parser(prog="runyard submit")
    add_resource_flags(parser)
    return {
        path: one.value for path, one in given_flags(parser.parse_args(list(words))).given.items()
    }


SEED_SCRIPTS = (
    "-g 2 -c 4 -W lightning -t 0-01:00:00 -m 10G -G v100l -e exp -w abc -n 3 -d a b -s i.sif "
    "-C c.txt -a rrg-x -p plai"
)


def test_the_seed_scripts_letters_mean_what_they_meant() -> None:
    assert parse(*SEED_SCRIPTS.split()) == {
        "resources.gpus": 2, "resources.cpus": 4, "distributed": "lightning",
        "resources.time": 3600, "resources.memory_per_gpu": 10240, "resources.gpu_type": "v100l",
        "name": "exp", "sweep_id": "abc", "resources.nodes": 3, "staging.data": ("a", "b"),
        "environment.image": "i.sif", "command_file": "c.txt", "resources.account": "rrg-x",
        "resources.partition": "plai",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "path", "value"),
    [
        (["--cpu", "3"], "resources.cpus", 3),
        (["--num-nodes", "3"], "resources.nodes", 3),
        (["--num_nodes", "3"], "resources.nodes", 3),
        (["--gpus-per-node", "0"], "resources.gpus", 0),
        (["--wandb-sweepid", "x"], "sweep_id", "x"),
        (["--singularity-container", "x.sif"], "environment.image", "x.sif"),
        (["--workdir", "/work"], "environment.workdir", "/work"),
        (["--configs", "x"], "command_file", "x"),
        (["--which-distributed", "torchrun"], "distributed", "torchrun"),
        (["--reservation", "class"], "resources.reservation", "class"),
        (["--mail", "END", "--mail", "FAIL"], "resources.mail", ("END", "FAIL")),
        (["--mail-type=ALL"], "resources.mail", ("ALL",)),
        (["--mail-user=someone@domain.com"], "resources.mail_to", "someone@domain.com"),
        (["--sbatch=--licenses=a"], "resources.extra", ("--licenses=a",)),
        (
            ["--variable", "A=b=c", "--variable", "D="],
            "environment.variables",
            {"A": "b=c", "D": ""},
        ),
        (["--no-build"], "environment.build", False),
        (["--per-gpu", "auto"], "agents.per_gpu", "auto"),
    ],
)
def test_other_spellings_are_taken_as_well(words: list[str], path: str, value: object) -> None:
    assert parse(*words) == {path: value}


def test_every_setting_of_the_file_has_an_option() -> None:
    paths = {path for path, _ in flag_fields()}
    assert {"resources.time", "agents.count", "tracking.entity", "staging.results"} <= paths
    assert "profile.limits.longest" not in paths


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["-m", "10"], "an amount of memory says its unit"),
        (["-m", "10K"], "an amount of memory is wanted"),
        (["-t", "soon"], "a length of time is wanted"),
        (["-g", "-1"], "expected one argument|a whole number"),
        (["-g", "1.5"], "a whole number is wanted"),
        (["-c", "0"], "at least 1"),
        (["-W", "horovod"], "lightning, torchrun, srun, mpi or accelerate"),
        (["--variable", "A"], "write NAME=VALUE"),
    ],
)
def test_a_value_that_does_not_fit_is_told_with_what_to_write(words: list[str], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        parse(*words)


def test_a_commands_own_option_for_the_same_thing_is_the_settings_option() -> None:
    def given(*words: str) -> dict[str, object]:
        parser = Parser(prog="runyard sweep")
        parser.add_argument("-e", "--name")
        parser.add_argument("--time", type=float)
        add_resource_flags(parser)
        found = given_flags(parser.parse_args(list(words)))
        return {path: one.value for path, one in found.given.items()}

    assert given("--time", "60") == {"resources.time": 60}
    for words in (["-e", "big"], ["--name", "big"], ["--exp-name", "big"]):
        assert given(*words) == {"name": "big"}


def test_a_letter_that_a_command_has_for_another_thing_is_a_mistake_in_the_command() -> None:
    parser = Parser(prog="runyard run")
    parser.add_argument("-g", "--group")
    with pytest.raises(argparse.ArgumentError, match="conflicting option string: -g"):
        add_resource_flags(parser)


def test_help_shows_one_spelling_of_each() -> None:
    parser = Parser(prog="runyard submit")
    add_resource_flags(parser)
    text = parser.format_help()
    assert "--nodes N" in text
    assert "num_nodes" not in text
