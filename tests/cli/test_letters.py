"""One letter means one thing, whichever command it is typed behind."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from runyard.cli.catalog import COMMANDS, SUBCOMMANDS
from runyard.cli.letters import LETTERS
from runyard.cli.parser import build_parser
from runyard.cli.resource_flags import given_flags
from runyard.config.flags import flag_fields
from runyard.home import Home
from tests.conftest import RunRunyard

ROOT = Path(__file__).parents[2]
# The letters of the submit scripts that our users come from, as those scripts document them.
OF_OLD_SCRIPTS = {
    "-a": "--account", "-g": "--gpus", "-c": "--cpus", "-W": "--distributed", "-t": "--time",
    "-m": "--mem-per-gpu", "-G": "--gpu-type", "-e": "--exp-name", "-w": "--sweep-id",
    "-n": "--nodes", "-d": "--data", "-C": "--configs", "-p": "--partition", "-s": "--container",
}  # fmt: skip


def actions_of(command: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[argparse.Action]:
    """All options of a command, the cluster's too."""
    monkeypatch.setattr(sys, "argv", ["runyard", *command.split(), "--help"])
    _, parser = build_parser(command)
    assert parser is not None
    yield from parser._actions


def letters_of(action: argparse.Action) -> list[str]:
    return [word for word in action.option_strings if len(word) == 2]


@pytest.mark.parametrize("command", [*COMMANDS, *SUBCOMMANDS])
def test_a_letter_of_a_command_means_what_it_means_everywhere(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for action in actions_of(command, monkeypatch):
        for letter in letters_of(action):
            assert letter in LETTERS, f"{command} {letter} is not in the table"
            _, options = LETTERS[letter]
            assert set(action.option_strings) & set(options), (command, action.option_strings)


# With --on slurm they do what the submit scripts did.
SUBMITTING = ("submit", "run", "sweep", "farm", "repeat", "retry", "agents", "gauge", "shell")
# The options of the submit scripts as their document prints them, and what each sets.
TYPED = {
    ("-a", "--account"): ("rrg-kevinlb", "resources.account", "rrg-kevinlb"),
    ("-g", "--gpus"): ("2", "resources.gpus", 2),
    ("-c", "--cpu", "--cpus"): ("3", "resources.cpus", 3),
    ("-W", "--which-distributed"): ("script", "distributed", "torchrun"),
    ("-t", "--time"): ("00-01:00:00", "resources.time", 3600),
    ("-m", "--mem-per-gpu"): ("10G", "resources.memory_per_gpu", 10240),
    ("-G", "--gpu-type"): ("v100l", "resources.gpu_type", "v100l"),
    ("-e", "--exp-name"): ("testing", "name", "testing"),
    ("-w", "--wandb-sweepid"): ("abc", "sweep_id", "abc"),
    ("-n", "--num_nodes", "--num-nodes"): ("2", "resources.nodes", 2),
    ("-d", "--data"): ("datasets", "staging.data", ("datasets",)),
    ("-s", "--singularity-container"): ("x.sif", "environment.image", "x.sif"),
    ("-C", "--configs"): ("x.txt", "command_file", "x.txt"),
    ("-p", "--partition"): ("plai", "resources.partition", "plai"),
    ("--workdir",): ("/work", "environment.workdir", "/work"),
    ("--job-type",): ("standard", "job_type", "standard"),
    ("--mem",): ("10G", "resources.memory", 10240),
}


@pytest.mark.parametrize("command", SUBMITTING)
def test_every_option_of_the_old_scripts_means_the_same_behind_every_command(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for options, (value, path, meaning) in TYPED.items():
        for option in options:
            words = [command, option, value, "--on", "slurm"]
            monkeypatch.setattr(sys, "argv", ["runyard", *words])
            parser, _ = build_parser(command)
            given = given_flags(parser.parse_args(words)).given
            assert {name: one.value for name, one in given.items()} == {path: meaning}, words


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (["runs", "-n", "5"], "-n is --nodes in every command; for --limit write -l"),
        (["runs", "-p", "birds"], "-p is --partition in every command; for --project write -P"),
        (["runs", "-a"], "-a is --account in every command; --all has no letter"),
        (["status", "-w"], "-w is --sweep-id in every command; for --watch write -f"),
        (["submit", "-j", "sweep"], "-j is --slots in every command; --job-type has no letter"),
        (["sweep", "s.yaml", "-n", "mine"], "for --name write -e"),
        (["run", "-t", "tag", "--", "true"], "-t is --time in every command; --tag has no letter"),
        (["run", "-p", "birds", "--", "true"], "for --project write -P"),
        (["sweep", "s.yaml", "-p", "birds"], "for --project write -P"),
    ],
)
def test_what_a_letter_meant_before_is_answered_with_its_new_spelling(
    words: list[str], advice: str, runyard: RunRunyard, state_folder: Home, tmp_path: Path
) -> None:
    done = runyard(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert advice in done.stderr
    assert not state_folder.path.exists()


def test_the_old_scripts_letters_are_in_the_table() -> None:
    for letter, option in OF_OLD_SCRIPTS.items():
        assert option in LETTERS[letter][1]


def test_no_option_has_two_letters() -> None:
    options = [option for _, options in LETTERS.values() for option in options]
    assert len(options) == len(set(options))


def test_the_letters_of_runyard_yamls_settings_are_those_of_the_table() -> None:
    for path, field in flag_fields():
        words = field.metadata["flags"]
        for letter in (word for word in words if len(word) == 2):
            assert set(words) & set(LETTERS[letter][1]), path


# `runyard COMMAND ... -x` in documents, examples, messages and our own tests: a letter that the
# command has not is what somebody copies, and is refused.
_TYPED = re.compile(r"runyard ([a-z]+)((?: [^\s`|;)\"']+)*)")


def places() -> Iterator[tuple[str, str, list[str]]]:
    folders = (ROOT / "docs", ROOT / "examples", ROOT / "src", ROOT / "quickstart")
    files = [ROOT / "README.md", ROOT / "CHANGELOG.md"]
    files += [file for folder in folders for file in folder.rglob("*") if file.is_file()]
    for file in files:
        if file.suffix not in (".md", ".py", ".sh", ".txt", ".yaml", ".tsx", ""):
            continue
        for number, line in enumerate(file.read_text(errors="replace").splitlines(), start=1):
            for match in _TYPED.finditer(line):
                own = match[2].partition(" -- ")[0].split()
                letters = [word[:2] for word in own if re.match(r"-[A-Za-z]\b", word)]
                if match[1] in COMMANDS and letters:
                    yield f"{file.relative_to(ROOT)}:{number}", match[1], letters


def test_what_documents_and_messages_advise_to_type_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known: dict[str, set[str]] = {}
    wrong = []
    for place, command, letters in places():
        if command not in known:
            actions = actions_of(command, monkeypatch)
            known[command] = {letter for action in actions for letter in letters_of(action)}
        wrong += [f"{place}: {command} {one}" for one in letters if one not in known[command]]
    assert not wrong, "\n".join(wrong)
