"""Which of several different programs share which GPU."""

from __future__ import annotations

from runyard.gauge.placing import place

GIB = 1 << 30


def test_programs_of_different_size_share_as_few_gpus_as_they_can() -> None:
    """Two of 9 GiB and four of 2 on cards of 12, with nothing kept free: 9 + 2, 9 + 2, 2 + 2."""
    peaks = {1: 2, 2: 9, 3: 2, 4: 2, 5: 9, 6: 2}
    cards = place({task: size * GIB for task, size in peaks.items()}, 12 * GIB, 0.0, None)
    assert [(card.tasks, card.memory // GIB) for card in cards] == [
        ([1, 2], 11), ([3, 5], 11), ([4, 6], 4),
    ]  # fmt: skip
    assert sorted(task for card in cards for task in card.tasks) == sorted(peaks)


def test_peaks_are_rounded_up_and_a_part_stays_free() -> None:
    """The seed's: less than 2 GB each on 12 GB are six; with a tenth free they are five."""
    small = dict.fromkeys(range(10), 2 * GIB - 1)
    assert [len(card.tasks) for card in place(small, 12 * GIB, 0.0, None)] == [6, 4]
    assert [len(card.tasks) for card in place(small, 12 * GIB, 0.1, None)] == [5, 5]
    assert [len(card.tasks) for card in place(small, 12 * GIB, 0.0, 4)] == [4, 4, 2]


def test_one_that_fills_the_margin_too_has_a_gpu_to_itself() -> None:
    cards = place({1: 2 * GIB, 2: 12 * GIB}, 12 * GIB, 0.1, None)
    assert [card.tasks for card in cards] == [[1], [2]]
