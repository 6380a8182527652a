"""What a cluster has, from what sinfo and scontrol print."""

from __future__ import annotations

import pytest

from runyard.schedulers.partitions import Count
from runyard.schedulers.slurm import partitions
from runyard.schedulers.slurm.accounting import _FIELDS, read_records
from runyard.schedulers.slurm.commands import Answer
from runyard.schedulers.slurm.facts import read_config
from runyard.schedulers.slurm.live_usage import read_figures
from runyard.schedulers.slurm.partitions import read_partitions
from runyard.schedulers.slurm.queue import count_tasks
from runyard.schedulers.slurm.values import (
    read_cpu_time,
    read_fields,
    read_gres,
    read_size,
    read_span,
)

_WIDTHS = (80, 80, 30, 400, 400, 40, 20)


def _line(*cells: str) -> str:
    return "".join(f"{cell:<{width}}" for cell, width in zip(cells, _WIDTHS, strict=True))


NODES = "\n".join(
    (
        _line(
            "gpu*", "g1", "mixed", "gpu:a100:4(S:0-1)", "gpu:a100:1(IDX:0)", "8/56/0/64", "512000"
        ),
        _line("gpu*", "g2", "idle", "gpu:a100:4,gpu:v100:2", "gpu:a100:0", "0/64/0/64", "256000"),
        _line("gpu*", "g3", "drained*", "gpu:a100:4", "gpu:a100:0", "0/0/64/64", "512000"),
        _line("cpu", "c1", "allocated", "(null)", "gpu:0", "64/0/0/64", "64000"),
        "half a line",
    )
)
RULES = (
    "PartitionName=gpu AllowAccounts=lab,guests AllowQos=ALL DefaultTime=01:00:00 "
    "MaxNodes=8 MaxTime=7-00:00:00 State=UP\n"
    "PartitionName=cpu AllowAccounts=ALL AllowQos=ALL DefaultTime=NONE MaxNodes=UNLIMITED "
    "MaxTime=UNLIMITED State=DOWN\n"
)


def test_free_and_all_by_partition_and_gpu_type() -> None:
    gpu, cpu = read_partitions(NODES, RULES, ["lab"])
    assert (gpu.name, gpu.is_default, gpu.nodes) == ("gpu", True, Count(1, 3))
    assert gpu.gpus == {"a100": Count(7, 12), "v100": Count(2, 2)}
    assert gpu.cpus == Count(120, 192)
    assert gpu.memory == (256000, 512000)
    assert (gpu.longest, gpu.usual, gpu.most_nodes) == (7 * 86400.0, 3600.0, 8)
    assert gpu.denied is None
    assert (cpu.nodes, cpu.gpus, cpu.longest, cpu.state) == (Count(0, 1), {}, None, "DOWN")


def test_who_may_not_use_a_partition_is_told() -> None:
    gpu, cpu = read_partitions(NODES, RULES, ["others"])
    assert gpu.denied == "for accounts guests, lab only"
    assert cpu.denied is None


def test_limits_of_time() -> None:
    told = ("30:00", "1:00:00", "2-12:00:00", "UNLIMITED", "NONE", "")
    assert [read_span(text) for text in told] == [1800.0, 3600.0, 216000.0, None, None, None]


def test_figures_of_running_steps_are_summed_by_job() -> None:
    text = "19.batch|00:00:10|9808K|1\n19.0|00:01:00|1M|4\n20.batch|00:00:02|60564K|1\nodd\n"
    assert read_figures(text) == {
        "19": (250.0, (9808 << 10) + (1 << 20)),
        "20": (2.0, 60564 << 10),
    }


def test_a_greeting_of_the_site_is_no_node(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "Welcome | to | the cluster | !\nmaintenance on Monday\nn1|idle|main*\nn2|down*|main*\n"
    monkeypatch.setattr(partitions, "ask", lambda *_, **__: Answer(0, text, ""))
    assert partitions.nodes_of(None, {}) == (["n1"], ["n2"])


def test_numbers_of_thousands_of_digits_are_unknown() -> None:
    digits = "7" * 5_000
    assert count_tasks(f"[{digits},3]") == 1
    assert read_cpu_time(f"{digits}-00:00:01") == 0.0
    assert read_size(f"{digits}M") is None
    assert read_span(f"{digits}-00:00:00") is None
    assert read_figures(f"19.0|00:00:10|1M|{digits}") == {"19": (10.0, 1 << 20)}
    (record,) = read_records("|".join(digits for _ in _FIELDS))
    assert (record.seconds, record.limit, record.cpus, record.gpus) == (0.0, None, 0, 0)
    (partition, _) = read_partitions(NODES, RULES.replace("MaxNodes=8", f"MaxNodes={digits}"))
    assert partition.most_nodes is None


def test_a_word_of_a_million_letters_costs_no_time() -> None:
    """Each of these took the square of the length."""
    word = "a" * 1_000_000
    assert read_partitions(NODES, word) != []
    assert read_fields(f"Name=x {word}")["Name"] == f"x {word}"
    assert read_config(f"A = b{' ' * 1_000_000}\n") == {"A": "b"}
    assert read_gres(f"gpu:2,{'(' * 1_000_000}") == {"": 2}
