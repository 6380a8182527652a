"""Parameters from YAML, on the command line, and from sweeps."""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from typing import Any, Literal

import pytest

from runyard import train
from runyard.train.values import parse

CONFIG = """
test: &test
  lr: 1E-3
  small: 3e-3
  whole: 32
  time: 1:30
  code: 010
  shuffle: yes
  path: None
  empty:
  sizes: [64, 1e2]
  loss: {name: mse, weight: 1}
  when: 2024-01-01
test2:
  <<: *test
  whole: 16
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text(CONFIG)
    return path


def test_a_section_is_read_with_its_numbers(config: Path) -> None:
    params = train.Params.load(config, "test")
    assert params.plain() == {
        "lr": 0.001, "small": 0.003, "whole": 32, "time": "1:30", "code": 10, "shuffle": True,
        "path": None, "empty": None, "sizes": [64, 100.0], "when": "2024-01-01",
        "loss": {"name": "mse", "weight": 1},
    }  # fmt: skip
    assert type(params.lr) is float


def test_a_section_inherits_another(config: Path) -> None:
    params = train.Params.load(config, "test2")
    assert params.whole == 16
    assert params.lr == 0.001
    with pytest.raises(train.TrainError, match=r"no section 'none'\n.*test or test2"):
        train.Params.load(config, "none")


def test_items_and_attributes_always_agree() -> None:
    params = train.Params(lr=0.1)
    params.name = "a"
    assert params["name"] == "a"
    params["lr"] = 0.2
    assert params.lr == 0.2
    params.update({"depth": 3}, width=4)
    params |= {"more": {"deep": 1}}
    params.setdefault("last", "None")
    assert (params.depth, params["width"], params.more.deep, params.last) == (3, 4, 1, None)
    params.more.deep = 2
    assert params["more"]["deep"] == 2
    del params.depth
    assert "depth" not in params
    with pytest.raises(AttributeError):
        _ = params.depth
    assert not hasattr(params, "depth")
    with pytest.raises(train.TrainError, match="cannot be called 'items'"):
        params.items = 3  # type: ignore[method-assign,assignment]


def test_swept_values_replace_single_keys_in_their_types(config: Path) -> None:
    params = train.Params.load(config, "test").merge(
        {"lr": "1E-5", "whole": 16.0, "loss": {"weight": "2"}, "sizes": "[1, 2]"}
    )
    assert (params.lr, params.whole, params.loss, params.sizes) == (
        1e-5, 16, {"name": "mse", "weight": 2}, [1, 2],
    )  # fmt: skip
    assert type(params.whole) is int
    assert params.small == 0.003
    with pytest.raises(train.TrainError, match=r"no parameter 'whol'\n.*whole"):
        params.merge({"whol": 3}, known=True)


class Version(str):
    """A text of a library's own kind, as torch.__version__ is."""


def test_written_down_it_reads_back_with_its_types(config: Path, tmp_path: Path) -> None:
    params = train.Params.load(config, "test").merge(
        {"tiny": 1e-300, "nan": float("inf"), "tuple": (1, 2), "unicode": "\u00fc"}
    )
    params.version, params.on = Version("2.13"), True
    params.text = "1E-3"
    params.dump(tmp_path / "hyperparams.yaml")
    again = train.Params.load(tmp_path / "hyperparams.yaml")
    assert again == params | {"tuple": [1, 2]}
    assert type(again.text) is str


def test_it_can_be_sent_to_other_ranks(config: Path) -> None:
    params = train.Params.load(config, "test")
    again = pickle.loads(pickle.dumps(params))
    assert again == params
    assert isinstance(again.loss, train.Params)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1E-3", 1e-3), ("-.5", -0.5), ("12", 12), ("None", None), ("true", True),
        ("inf", math.inf),
        ("[64, 64]", [64, 64]), ("[0.003, 3E-3]", [0.003, 0.003]), ("{'lr': 0.1}", {"lr": 0.1}),
        ('{"on": true, "of": null}', {"on": True, "of": None}), ("(1, 2)", (1, 2)),
        ("adam", "adam"), ("1e", "1e"), ("[not closed", "[not closed"), ("", ""),
    ],
)  # fmt: skip
def test_texts_as_values(text: str, value: object) -> None:
    assert parse(text) == value
    assert type(parse(text)) is type(value)


def trainer(
    lr: float = 1e-3,
    sizes: tuple[int, ...] = (64, 64),
    opt: dict[str, Any] | None = None,
    batch_size: int = 32,
    plot: bool = False,
    name: str | None = None,
    kind: Literal["adam", "sgd"] = "adam",
    *,
    steps: list[float] | None = None,
) -> dict[str, Any]:
    """Train it."""
    return dict(locals())


def call(*words: str) -> dict[str, Any]:
    made: dict[str, Any] = train.command(trainer, argv=words)
    return made


def test_a_function_is_a_command_line_without_extra_code() -> None:
    assert call() == trainer()
    assert call("--lr=3", "--batch-size", "64", "--plot") == trainer(3.0, batch_size=64, plot=True)
    assert call("--batch_size=1e2")["batch_size"] == 100
    assert call("--plot=False") == call("--no-plot") == call("--plot", "False") == call()
    assert call("0.5", "--name=5")["name"] == "5"
    assert call("--name=None")["name"] is None
    assert call("--lr", "-3")["lr"] == -3


def test_lists_and_dicts_come_as_sweeps_pass_them() -> None:
    assert call("--sizes=[64, 32]")["sizes"] == (64, 32)
    assert call("--steps=[500, 1E3]")["steps"] == [500.0, 1000.0]
    assert call("--opt={'lr': 0.1, 'betas': [0.9, 0.99]}")["opt"] == {
        "lr": 0.1,
        "betas": [0.9, 0.99],
    }


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("--lrr=1", "no option --lrr; did you mean --lr?"),
        ("--lr=fast", "--lr=fast: it is no number"),
        ("--batch_size=1.5", "it is no whole number"),
        ("--kind=rmsprop", "one of adam, sgd"),
        ("--opt=3", "it is none of dict, NoneType"),
        ("--lr", "--lr needs a value"),
    ],
)
def test_what_is_wrong_is_told(word: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        call(word)
    assert told in capsys.readouterr().err


def test_defaults_without_annotations_tell_the_type() -> None:
    def untyped(lr=1, strategy=(0.1, 1), watch=False, name="a", **more):  # type: ignore[no-untyped-def]
        return lr, strategy, watch, name, more

    words = ["--lr=0.5", "--strategy=[0.2, 1]", "--watch", "--name=7", "--other=[1]"]
    assert train.command(untyped, argv=words) == (0.5, (0.2, 1), True, "7", {"other": [1]})


def test_several_functions_are_called_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    def make_data(size: int) -> int:
        return size

    assert train.command(trainer, make_data, argv=["make-data", "--size=3"]) == 3
    assert train.command(trainer, make_data, argv=["make_data", "4"]) == 4
    with pytest.raises(SystemExit):
        train.command(trainer, make_data, argv=[])
    assert "trainer or make-data" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        train.command(make_data, argv=[])
    assert "--size must be given" in capsys.readouterr().err


def test_help_lists_flags_and_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        call("--help")
    shown = capsys.readouterr().out
    assert "Train it." in shown
    assert "--sizes=(64, 64)" in shown


def test_trials_are_named_by_whatever_is_swept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WANDB_RUN_ID", raising=False)
    values = {"lr": 1e-5, "batch_size": 16}
    assert train.trial_name("cnn", values) == "cnn_lr1em5_batchsize16"
    assert train.trial_name("a/b", {"sizes": [64, 32], "drop": 0.25, "opt": "ad am"}, "x1") == (
        "ab_sizes64x32_drop0.25_optadam-x1"
    )
    assert train.trial_name("a", {"lr": 2.5e-4}) == "a_lr2.5em4"
    # Trials of equal values have folders of their own: the agent tells the id of each.
    monkeypatch.setenv("WANDB_RUN_ID", "y2")
    assert train.trial_name("cnn", values) == "cnn_lr1em5_batchsize16-y2"
    assert train.trial_name("cnn", values, "") == "cnn_lr1em5_batchsize16"


def test_the_values_of_a_trial_are_known_before_the_run_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert train.swept_values() == {}
    given = tmp_path / "config.yaml"
    given.write_text("wandb_version: 1\nlr:\n  value: 1E-5\nsizes:\n  value: [1, 2]\n")
    monkeypatch.setenv("WANDB_SWEEP_PARAM_PATH", str(given))
    assert train.swept_values() == {"lr": 1e-5, "sizes": [1, 2]}
