"""Programs as people write them, and what is said of their parameters before anything runs."""

from __future__ import annotations

from typing import Any

import pytest

from runyard.config.program_check import Arguments, Finding, check
from runyard.config.program_source import Source, read_source

ARGPARSE = """
import argparse, wandb
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--opt", choices=["sgd", "adam"], default="sgd")
parser.add_argument("--amp", action="store_true")
{more}
args = parser.parse_args()
"""
CONFIG = """
import wandb
def train():
    with wandb.init(config={"epochs": 3}) as run:
        config = run.config
        for _ in range(config.epochs):
            step(config.learning_rate, config["batch_size"], config.get("decay", 0))
"""
CLICK = """
import click
@click.command()
@click.option("--learning-rate", type=float)
@click.option("--seed", required=True)
def main(learning_rate, seed): ...
"""


def source_of(text: str) -> Source:
    found = read_source(text)
    assert found is not None
    return found


def looked_at(text: str, given: Arguments, known: str = "") -> list[Finding]:
    source = source_of(text)
    return check(source, given, lambda name: name in source.words or name in known.split())


def errors(found: list[Finding]) -> list[str]:
    return [finding.what for finding in found if finding.is_error]


def argparse(more: str = "") -> str:
    return ARGPARSE.format(more=more)


def test_a_program_that_knows_all_that_it_gets_is_left_alone() -> None:
    given = Arguments({"lr": [0.1, 0.2], "batch-size": [16], "opt": ["sgd", "adam"]})
    assert looked_at(argparse(), given) == []


def test_an_option_that_is_not_there_is_an_error_with_the_one_that_is() -> None:
    found = looked_at(argparse(), Arguments({"batch_size": [16], "lrr": [0.1]}))
    assert errors(found) == ["it has no option --batch_size", "it has no option --lrr"]
    assert [finding.mend for finding in found] == [
        "did you mean --batch-size?",
        "did you mean --lr?",
    ]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"batch-size": [16, 0.5]}, "--batch-size is read with int, which refuses 0.5"),
        ({"opt": ["sgd", "lion"]}, "--opt takes one of sgd, adam, and is given 'lion'"),
        ({"amp": [True, False]}, "--amp takes no value, and is given one"),
        ({"lr": ["fast"]}, "--lr is read with float, which refuses 'fast'"),
    ],
)
def test_a_value_that_the_parser_refuses_is_an_error(
    values: dict[str, list[Any]], said: str
) -> None:
    assert errors(looked_at(argparse(), Arguments(values))) == [said]


def test_a_truth_is_a_flag_where_the_command_says_so() -> None:
    given = Arguments({"amp": [True, False]}, flags_alone=True)
    assert looked_at(argparse(), given) == []


def test_what_the_program_needs_and_does_not_get_is_an_error() -> None:
    text = argparse('parser.add_argument("--data", required=True)\nparser.add_argument("task")')
    assert errors(looked_at(text, Arguments({"lr": [0.1]}))) == [
        "it needs --data, which it is not given",
        "it needs a word without dashes, task",
    ]
    assert looked_at(text, Arguments({"lr": [0.1]}, written=["data"], other_words=1)) == []


def test_an_option_that_is_given_by_its_letter_is_given() -> None:
    text = argparse('parser.add_argument("-m", "--model", required=True)')
    assert errors(looked_at(text, Arguments({}))) == ["it needs --model, which it is not given"]
    assert looked_at(text, Arguments({}, letters=["m"], other_words=1)) == []


@pytest.mark.parametrize(
    "more",
    [
        "add_more_options(parser)",
        "for name in NAMES: parser.add_argument(name)",
        "parser.add_subparsers()",
        "parser.add_argument(*WORDS)",
        "other = argparse.ArgumentParser(parents=[parser])",
        "class Mine(argparse.Action): ...\nparser.add_argument('--x', action=Mine)",
    ],
)
def test_where_others_may_add_options_nothing_is_certain(more: str) -> None:
    found = looked_at(argparse(more), Arguments({"momentum": [0.9]}))
    assert errors(found) == []
    assert [finding.what for finding in found] == ["nothing in it speaks of 'momentum'"]


def test_a_program_that_passes_over_what_it_does_not_know_is_warned_of_only() -> None:
    text = argparse().replace("parse_args", "parse_known_args")
    found = looked_at(text, Arguments({"momentum": [0.9]}))
    assert errors(found) == []
    assert len(found) == 1


def test_the_beginning_of_an_option_stands_for_it_unless_the_parser_says_no() -> None:
    given = Arguments({"batch": [16]})
    assert looked_at(argparse(), given) == []
    strict = argparse().replace("ArgumentParser()", "ArgumentParser(allow_abbrev=False)")
    assert errors(looked_at(strict, given)) == ["it has no option --batch"]


def test_what_is_read_of_the_config_and_not_given_is_pointed_out() -> None:
    found = looked_at(CONFIG, Arguments({"lerning_rate": [0.1], "batch_size": [8]}))
    assert [(finding.what, finding.is_error) for finding in found] == [
        ("it reads wandb.config.learning_rate, which it is not given", False),
        ("nothing in it speaks of 'lerning_rate'", False),
    ]
    assert found[0].mend == "did you mean lerning_rate?"
    assert looked_at(CONFIG, Arguments({"learning_rate": [0.1], "batch_size": [8]})) == []


def test_defaults_that_come_from_elsewhere_may_hold_anything() -> None:
    text = CONFIG.replace('config={"epochs": 3}', "config=read_defaults()")
    assert looked_at(text, Arguments({"batch_size": [8]})) == []


# The form of W&B's own tutorials: `config=None` is what the agent leaves to the sweep.
TUTORIAL = """
import wandb
{before}
def train(config=None):
    with wandb.init(config=config):
        config = wandb.config
        step(config.learning_rate, config.batch_size, config["epochs"])
{after}
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "train()"),
        ("", "train(None)"),
        ("", "train(config=None)"),
        ("", "wandb.agent('abc', function=train, count=3)"),
        ("", "wandb.agent('abc', train)"),
        ("", "if __name__ == '__main__':\n    train()"),
        ("DEFAULTS = {'batch_size': 8}", "train(DEFAULTS)"),
        ("DEFAULTS = dict(batch_size=8)", "train(config=DEFAULTS)"),
        ("", "train({'batch_size': 8})"),
        ("", "def main():\n    defaults = {'batch_size': 8}\n    train(defaults)\nmain()"),
    ],
)
def test_each_parameter_that_a_function_with_an_empty_config_misses_is_named(
    before: str, after: str
) -> None:
    given: dict[str, list[Any]] = {"lr": [0.1], "batch_size": [8]}
    found = looked_at(TUTORIAL.format(before=before, after=after), Arguments(given), known="lr")
    assert [finding.what for finding in found] == [
        "it reads wandb.config.learning_rate, which it is not given",
        "it reads wandb.config.epochs, which it is not given",
    ]


@pytest.mark.parametrize(
    "init",
    [
        "defaults = {'batch_size': 8}\nwandb.init(config=defaults)",
        "defaults = dict(batch_size=8)\nwandb.init(config=defaults)",
        "defaults = {}\ndefaults['batch_size'] = 8\nwandb.init(config=defaults)",
        "defaults = {}\ndefaults.update(batch_size=8)\nwandb.init(config=defaults)",
        "defaults = {**BASE, 'batch_size': 8}\nwandb.init(config=defaults)",
        "wandb.init('p', config=dict(batch_size=8))",
        "wandb.init(config=None)\nwandb.config.update({'batch_size': 8})",
    ],
)
def test_defaults_that_stand_in_a_name_are_looked_up(init: str) -> None:
    text = f"import wandb\nBASE = {{'depth': 2}}\n{init}\nuse(wandb.config.batch_size)\n"
    text += "use(wandb.config.width)\n"
    assert [finding.what for finding in looked_at(text, Arguments({}))] == [
        "it reads wandb.config.width, which it is not given"
    ]


@pytest.mark.parametrize(
    "init",
    [
        "def train(config=None):\n    wandb.init(config=config)\ntrain(read_defaults())",
        "def train(config=None):\n    wandb.init(config=config)\ntrain(*ARGUMENTS)",
        "def train(config=None):\n    wandb.init(config=config)\ntrain(**ARGUMENTS)",
        "def train(config):\n    wandb.init(config=config)",
        "defaults = read_defaults()\nwandb.init(config=defaults)",
        "defaults = {}\nfill(defaults)\nwandb.init(config=defaults)",
        "defaults = {}\nfor name in NAMES: defaults[name] = 1\nwandb.init(config=defaults)",
        "from settings import defaults\nwandb.init(config=defaults)",
        "defaults = {**read_defaults()}\nwandb.init(config=defaults)",
        "for defaults in MANY:\n    wandb.init(config=defaults)",
        "wandb.init(**OPTIONS)",
    ],
)
def test_defaults_that_cannot_be_followed_may_hold_anything(init: str) -> None:
    text = f"import wandb\n{init}\nuse(wandb.config.width)\n"
    assert looked_at(text, Arguments({})) == []


def test_the_options_of_the_program_are_defaults_where_they_are_handed_on() -> None:
    text = argparse() + "wandb.init(config=args)\nuse(wandb.config.lr, wandb.config.width)\n"
    found = looked_at(text, Arguments({"batch-size": [8]}, as_options=True))
    assert [finding.what for finding in found] == [
        "it reads wandb.config.width, which it is not given"
    ]


def test_a_name_in_a_module_beside_the_program_is_enough() -> None:
    assert looked_at(CONFIG, Arguments({"learning_rate": [0], "batch_size": [8], "depth": [2]}),
                     known="depth") == []  # fmt: skip


def test_options_of_click() -> None:
    found = looked_at(CLICK, Arguments({"learning_rate": [0.1], "seed": [1]}))
    assert errors(found) == ["it has no option --learning_rate"]
    assert found[0].mend == "did you mean --learning-rate?"
    assert errors(looked_at(CLICK, Arguments({"learning-rate": [0.1]}))) == [
        "it needs --seed, which it is not given"
    ]


def test_parsers_that_are_not_looked_into_are_judged_by_their_words() -> None:
    text = "import hydra\n@hydra.main()\ndef main(cfg): print(cfg.lr)\n"
    assert looked_at(text, Arguments({"lr": [0.1]})) == []
    assert len(looked_at(text, Arguments({"lrr": [0.1]}))) == 1


def test_what_is_not_python_is_nobodys_mistake() -> None:
    assert read_source("#!/bin/sh\nif [ x ]; then echo; fi") is None
