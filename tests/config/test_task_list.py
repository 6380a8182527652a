"""Command lines as tasks: from files, from lines with braces, and as files again."""

from __future__ import annotations

import io
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from runyard.config.braces import TooMany, expand
from runyard.config.task_files import parts_of, write_task_files
from runyard.config.task_list import as_value, read_task_file, sweep_config, tasks_of_grid
from runyard.errors import ConfigError, NotFoundError
from runyard.search.sweep import read_sweep

BRACES = (
    "a{1,2}b{x..z}",
    "{01..10..3}",
    "{5..1}",
    "{-05..10..5}",
    "{a,b{1..3},c}",
    "x{,y}",
    "a{b}c{}",
    "'{a,b}'{1,2}",
    '"a,b"{1,"x,y"}',
    r"\{a,b}",
    "${NOTHING}{1,2}",
    "{1,2",
    "{{1,2}}",
    "{a,b}}",
    "{{a,b}",
    "{1..3..0}",
)


@pytest.mark.parametrize("text", BRACES)
def test_braces_mean_what_they_mean_in_bash(text: str) -> None:
    def printed(*words: str) -> str:
        return subprocess.run(
            ["bash", *words], capture_output=True, text=True, check=True, env={}
        ).stdout

    ours = " ".join(expand(text))
    assert printed("+B", "-c", f"printf '%s\\n' {ours}") == printed("-c", f"printf '%s\\n' {text}")


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("{1e-4..1e-1..x10}", "0.0001 0.001 0.01 0.1"),
        ("{0.1..1e-3..x10}", "0.1 0.01 0.001"),
        ("{1..100..x2}", "1 2 4 8 16 32 64"),
        ("{27..1..x3}", "27 9 3 1"),
        ("{0.1..0.5..0.1}", "0.1 0.2 0.3 0.4 0.5"),
        ("{1..0..0.25}", "1 0.75 0.5 0.25 0"),
        ("{-1..1..0.5}", "-1 -0.5 0 0.5 1"),
        # A factor that goes nowhere, and ends with zero between them: text, as bash has it.
        ("{1..8..x1}", "{1..8..x1}"),
        ("{-1..8..x2}", "{-1..8..x2}"),
        ("{0.1..0.2..0}", "{0.1..0.2..0}"),
    ],
)
def test_sequences_of_fractions_and_geometric_ones(text: str, values: str) -> None:
    assert " ".join(expand(text)) == values


def test_every_combination_is_a_task_named_by_what_differs() -> None:
    tasks = tasks_of_grid("python run.py --epochs 3 --lr {0.1,1e-5} --seed {1..5}")
    assert len(tasks.tasks) == 10
    assert tasks.seeds == 5
    first, last = tasks.tasks[1], tasks.tasks[10]
    assert (first.name, last.name) == ("lr1em1_seed1", "lr1em5_seed5")
    # The command as it was written, the config in numbers.
    assert last.command_line == "python run.py --epochs 3 --lr 1e-5 --seed 5"
    assert last.values == {"epochs": 3, "lr": 1e-5, "seed": 5}


def test_too_many_combinations_are_refused_before_they_are_made() -> None:
    with pytest.raises(TooMany):
        expand("{1..1000}" * 4)
    with pytest.raises(ConfigError, match="100,000"):
        tasks_of_grid("python run.py {1..1000000000}")
    with pytest.raises(ConfigError, match="100,000"):
        tasks_of_grid("python run.py {0..1..1e-9}")


def test_a_file_has_a_task_a_line(tmp_path: Path) -> None:
    file = tmp_path / "tasks.txt"
    file.write_text(
        "\ufeff# what to run\r\n"
        "python t.py --lr=0.1 model.width=8 --amp\r\n"
        "\n"
        "  cd sub && OMP_NUM_THREADS=1 python t.py --lr 'a b'; echo done\n"
        "python t.py\n"
        "python t.py\n"
    )
    found = read_task_file(str(file))
    # As in GNU parallel's log, a task has the number of its line.
    assert list(found.tasks) == [2, 4, 5, 6]
    options = {"lr": 0.1, "model.width": 8, "amp": True}
    assert found.tasks[2].values == {"words": "python t.py", **options}
    assert found.tasks[4].values["lr"] == "a b"
    assert found.tasks[4].values["OMP_NUM_THREADS"] == 1
    assert found.tasks[4].command_line.startswith("cd sub && ")
    # Nothing to tell them by: the line's number does.
    assert [found.tasks[number].name for number in (5, 6)] == ["line5", "line6"]
    assert len({task.name for task in found.tasks.values()}) == 4


def test_programs_with_the_same_options_are_no_seeds_of_each_other() -> None:
    tasks = tasks_of_grid("python {a,b}.py --seed {1,2}").tasks
    assert [task.values["words"] for task in tasks.values()] == [
        "python a.py", "python a.py", "python b.py", "python b.py"
    ]  # fmt: skip
    assert len({task.name for task in tasks.values()}) == 4


def test_standard_input_is_a_file_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("echo a\necho b\n"))
    assert [task.command_line for task in read_task_file("-").tasks.values()] == [
        "echo a",
        "echo b",
    ]


@pytest.mark.parametrize(
    ("text", "value"),
    [("3", 3), ("-0.5", -0.5), ("1e-3", 1e-3), (".5", 0.5), ("1_000", "1_000"), ("nan", "nan"),
     ("1e999", "1e999"), ("-", "-"), ("e5", "e5"), ("9" * 30, 1e30)],
)  # fmt: skip
def test_numbers_are_numbers(text: str, value: object) -> None:
    assert as_value(text) == value


def test_mistakes_are_told_with_their_line(tmp_path: Path) -> None:
    file = tmp_path / "tasks.txt"
    with pytest.raises(NotFoundError, match=r"no file .*tasks\.txt"):
        read_task_file(str(file))
    file.write_text("# nothing\n\n")
    with pytest.raises(ConfigError, match="holds no command line"):
        read_task_file(str(file))
    file.write_text("echo a\necho 'b\n")
    with pytest.raises(ConfigError, match=r"tasks\.txt:2: the quotes") as caught:
        read_task_file(str(file))
    assert caught.value.mend
    file.write_bytes(b"echo \xff\n")
    with pytest.raises(ConfigError, match="UTF-8"):
        read_task_file(str(file))


def test_a_list_is_a_sweep_that_the_reader_takes() -> None:
    found = tasks_of_grid("echo {1..3}")
    for tasks in (found, found.only([2])):
        sweep, problems = read_sweep(sweep_config(tasks, "sh", retries=2, job_log=None))
        assert not problems
        assert sweep is not None
        assert sweep.space.size == len(sweep.options.tasks) == len(tasks.tasks)


def test_a_list_with_mistakes_is_refused_whole() -> None:
    config = sweep_config(tasks_of_grid("echo {1..3}"), "sh")
    wrong = [
        {**config["runyard"]["tasks"][0], "name": "../up"},
        {"name": "twin", "command_line": "a"},
        {"name": "twin", "command_line": "b", "color": 1},
        "echo",
    ]
    sweep, problems = read_sweep({**config, "runyard": {"tasks": wrong}})
    assert sweep is None
    told = " ".join(str(problem) for problem in problems)
    for part in ("no name for a task", "stands twice", '"color"', "a task is"):
        assert part in told
    sweep, problems = read_sweep({**config, "method": "random"})
    assert sweep is None
    assert "3 tasks are a grid" in str(problems[0])


def in_fours(grid: str) -> list[Sequence[str]]:
    return parts_of([task.command_line for task in tasks_of_grid(grid).tasks.values()], 4)


def test_a_hundred_lines_at_four_a_file_are_25_files(tmp_path: Path) -> None:
    files = write_task_files(in_fours("echo {1..100}"), tmp_path)
    assert [file.name for file in files] == [f"tasks_{number}.txt" for number in range(25)]
    assert files[-1].read_text() == "".join(f"echo {number}\n" for number in range(97, 101))
    # Written anew, none is left from before; what is not ours stays.
    (tmp_path / "notes.txt").write_text("mine")
    write_task_files(in_fours("echo {1..6}"), tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "notes.txt",
        "tasks_0.txt",
        "tasks_1.txt",
    ]
    assert (tmp_path / "tasks_1.txt").read_text() == "echo 5\necho 6\n"


def test_a_line_that_no_shell_would_run_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "tasks").write_text(f"python a.py\npython {'a' * 1_000_000}\n")
    with pytest.raises(ConfigError, match=r"tasks:2: this line is longer than 100,000"):
        read_task_file(str(tmp_path / "tasks"))


def test_a_nul_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "tasks").write_text("python a.py\npython \0\n")
    with pytest.raises(ConfigError, match=r"tasks:2: this line holds a NUL"):
        read_task_file(str(tmp_path / "tasks"))
