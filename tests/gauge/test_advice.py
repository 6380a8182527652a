"""What measured figures mean for a job."""

from __future__ import annotations

from dataclasses import replace

import pytest

from runyard.clusters.load import load_profile
from runyard.clusters.profile import Gpus, GpuSlice, GpuType, Limits, Profile
from runyard.config.request import Gauge, Request, Resources
from runyard.gauge.advice import ask_for, rooms, smaller_gpu
from runyard.gauge.conclusions import Raw, conclude, raw_from_json, raw_to_json
from runyard.gauge.kinds import kind_of, kind_of_line, kind_of_sweep
from runyard.gauge.measured import Look, Measured, growth_of, has_levelled, summarise
from runyard.gauge.measuring import Card, Seen
from runyard.gauge.packs import Level, climb

GB = 10**9
SITE = Profile(
    name="site",
    gpus=Gpus(
        types={"a100": GpuType(memory_gb=40.0, cpus=12), "t4": GpuType(memory_gb=16.0)},
        slices={"a100_1g.5gb": GpuSlice(memory_gb=5.0, of="a100")},
    ),
    limits=Limits(longest=3600.0),
)
MEASURED = Measured(
    seconds=60.0, memory_peak=1_500_000_000, is_level=True, vram_peaks={"GPU-0": 3 * GB}, cpus=1.3,
    seconds_per_step=0.01, total=100_000, step=6000, warm_up=5.0, whole_seconds=1000.0,
)  # fmt: skip


def looks(*memory: int, vram: list[int] | None = None) -> list[Look]:
    return [
        Look(at=float(n), memory=one, memory_peak=max(memory[: n + 1]), cpu_seconds=n / 2,
             vram={} if vram is None else {"GPU-0": vram[n]})
        for n, one in enumerate(memory)
    ]  # fmt: skip


def test_how_many_fit_which_gpu_of_the_profile() -> None:
    found = {room.gpu: room.count for room in rooms(SITE, 3 * GB, 0.1)}
    assert found == {"a100_1g.5gb": 1, "t4": 4, "a100": 11}
    assert {room.gpu: room.count for room in rooms(SITE, 20 * GB, 0.1)}["t4"] == 0
    shipped = rooms(load_profile("narval"), 3 * GB, 0.1)
    assert shipped[0].memory_gb <= shipped[-1].memory_gb


def test_the_margins_are_settings() -> None:
    usual = ask_for(MEASURED, Gauge(), programs=4, per_gpu=4)
    assert (usual.memory, usual.cpus, usual.seconds) == (7168, 8, 1260.0)
    none = ask_for(MEASURED, Gauge(time_margin=0, memory_margin=0), programs=4)
    assert (none.memory, none.seconds) == (6144, 1020.0)
    slower = ask_for(MEASURED, Gauge(time_margin=0), programs=4, slow_down=2.0)
    assert slower.seconds == 2100.0


def test_one_cpu_each_and_never_less() -> None:
    assert ask_for(replace(MEASURED, cpus=0.05), Gauge(), programs=6).cpus == 6
    assert ask_for(replace(MEASURED, cpus=2.9), Gauge(), programs=2).cpus == 6


def test_what_is_longer_than_a_job_may_be_becomes_a_chain() -> None:
    long = replace(MEASURED, whole_seconds=9000.0)
    ask = ask_for(long, Gauge(), longest=3600.0)
    assert (ask.seconds, ask.chain) == (3600.0, 4)
    notes = conclude(Raw(Seen((long,)), ()), Request(profile=SITE)).notes
    assert any("--chain 4" in note for note in notes)


def test_a_smaller_gpu_is_suggested_where_most_of_it_stays_empty() -> None:
    found = rooms(SITE, GB, 0.1)
    smaller = smaller_gpu(found, "a100", 3, GB)
    assert smaller is not None
    assert smaller.gpu == "a100_1g.5gb"
    assert smaller_gpu(found, "a100", 30, GB) is None
    request = Request(profile=SITE, resources=Resources(gpus=1, gpu_type="a100"))
    alone = Raw(Seen((MEASURED,)), (Card("GPU-0", "A100", 40 * GB),))
    notes = " ".join(conclude(alone, request).notes)
    assert "a100_1g.5gb" in notes
    assert "11 fit this GPU's memory; --pack" in notes


def test_memory_that_grows_steadily_is_pointed_out() -> None:
    mb = 1 << 20
    growing = looks(*(100 * mb + n * 5 * mb for n in range(40)))
    assert growth_of([(one.at, one.memory) for one in growing]) == pytest.approx(5 * mb, rel=0.1)
    assert not has_levelled(growing)
    level = looks(*[50 * mb] * 4, *[400 * mb + n % 3 * mb for n in range(40)])
    assert growth_of([(one.at, one.memory) for one in level]) is None
    assert has_levelled(level)
    found = summarise(growing, [(1, 1.0), (11, 11.0)], began=0, ended=40, total=1000)
    notes = conclude(Raw(Seen((found,)), ()), Request()).notes
    assert "grows steadily, by 315 MB a minute" in notes[0]
    assert "at the end of a whole run" in notes[0]
    assert "Allocate buffers once" in notes[0]


def test_gpu_memory_has_to_level_out_too() -> None:
    flat = [10**8] * 30
    assert not has_levelled(looks(*flat, vram=[GB + n * 10**8 for n in range(30)]))
    assert has_levelled(looks(*flat, vram=[GB] * 30))


def test_more_at_a_time_as_long_as_it_pays() -> None:
    def table(rates: dict[int, float | None]) -> list[int]:
        asked: list[int] = []

        def measure(count: int) -> Level:
            asked.append(count)
            return Level(count, rates[count], "out of memory")

        found = climb(measure, 16, "no more fit", limit=max(rates))
        return [found.best.count, *asked]

    assert table({1: 100, 2: 190, 4: 240, 8: 245}) == [4, 1, 2, 4, 8]
    assert table({1: 100, 2: 101}) == [1, 1, 2]
    assert table({1: 100, 2: 190, 4: None}) == [2, 1, 2, 4]
    assert table({1: 100, 2: 190, 3: 270}) == [3, 1, 2, 3]


def test_the_slow_down_is_in_the_time_that_is_asked_for() -> None:
    found = climb(lambda count: Level(count, {1: 100.0, 2: 160.0}[count]), 2, "", limit=2)
    raw = Raw(Seen((MEASURED,)), (Card("GPU-0", "A100", 40 * GB),), climb=found)
    ask = conclude(raw, Request(profile=Profile())).ask
    # Two at a time are each at 80 %: 1,000 s become 1,250, and a quarter more is asked for.
    assert (ask.per_gpu, ask.seconds) == (2, 1620.0)


def test_a_whole_task_file_fits_or_does_not() -> None:
    three = Seen((MEASURED, MEASURED, MEASURED))
    card = Card("GPU-0", "T4", 16 * GB)
    good = conclude(Raw(three, (card,), at_once=3, job_memory=8000), Request())
    assert good.fits
    tight = conclude(Raw(three, (card,), at_once=3, job_memory=4000), Request())
    assert tight.fits is False
    assert "do not fit" in " ".join(tight.notes)
    full = conclude(Raw(three, (replace(card, total=8 * GB),), at_once=3), Request())
    assert full.fits is False


def test_what_a_job_measured_comes_home_unchanged() -> None:
    found = climb(lambda count: Level(count, 10.0 * count), 2, "", limit=2)
    raw = Raw(Seen((MEASURED,), said="x", mps="with MPS"), (Card("a", "A100", 1),), climb=found)
    assert raw_from_json(raw_to_json(raw)) == raw


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("python train.py --lr 3", "train.py"),
        ("/env/bin/python3.12 -u ./scripts/train.py", "scripts/train.py"),
        ("python -m birds.train --algo ppo", "birds.train algo=ppo"),
        ("cd x && CUDA=1 python train.py --algo=sac", "train.py algo=sac"),
        ("julia fit.jl", "fit.jl"),
        ("./simulate 3 4", "simulate"),
    ],
)
def test_kinds_of_experiments(line: str, kind: str) -> None:
    assert kind_of_line(line, ("algo",)) == kind


def test_kinds_are_the_same_alone_and_in_a_sweep() -> None:
    alone = kind_of(["python", "train.py", "--algo", "ppo"], ("algo",))
    assert alone == kind_of_sweep(None, "train.py", {"algo": "ppo"}, ("algo",))
    assert kind_of_sweep(None, "train.py", {}, ("algo",)) == "train.py"
