"""Slurm's words for states, as every command and release writes them."""

from __future__ import annotations

import pytest

from runyard.schedulers.slurm.states import counted, read_state
from runyard.schedulers.states import states_text

# squeue's and sacct's manual pages, releases 22.05 to 25.05.
COMPACT = {
    "BF": "BOOT_FAIL", "CA": "CANCELLED", "CD": "COMPLETED", "CF": "CONFIGURING",
    "CG": "COMPLETING", "DL": "DEADLINE", "F": "FAILED", "NF": "NODE_FAIL",
    "OOM": "OUT_OF_MEMORY", "PD": "PENDING", "PR": "PREEMPTED", "R": "RUNNING",
    "RD": "RESV_DEL_HOLD", "RF": "REQUEUE_FED", "RH": "REQUEUE_HOLD", "RQ": "REQUEUED",
    "RS": "RESIZING", "RV": "REVOKED", "SI": "SIGNALING", "SE": "SPECIAL_EXIT",
    "SO": "STAGE_OUT", "ST": "STOPPED", "S": "SUSPENDED", "TO": "TIMEOUT",
}  # fmt: skip
ENDED = {
    "BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY",
    "PREEMPTED", "REVOKED", "TIMEOUT",
}  # fmt: skip


@pytest.mark.parametrize(("compact", "name"), COMPACT.items())
def test_every_state_in_its_compact_and_its_long_form(compact: str, name: str) -> None:
    for text in (compact, name, name.lower(), f" {name} "):
        state = read_state(text)
        assert state.name == name
        assert (state.phase == "ended") == (name in ENDED)
        assert state.is_open == (name not in ENDED)
        assert state.is_bad == (name in ENDED - {"COMPLETED"})
        assert state.says


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("CANCELLED by 1000", "CANCELLED"),
        ("CANCELLED+", "CANCELLED"),
        ("OUT_OF_ME+", "OUT_OF_MEMORY"),
        ("COMPLETED,COMPLETING", "COMPLETING"),
        ("RUNNING,COMPLETING", "COMPLETING"),
        ("FAILED COMPLETING", "COMPLETING"),
        ("PENDING,REQUEUED", "REQUEUED"),
        ("RUNNING|STAGE_OUT", "STAGE_OUT"),
        ("NODE_FAIL", "NODE_FAIL"),
        ("NODE_FAIL+", "NODE_FAIL"),
        ("PREEMPTED+", "PREEMPTED"),
    ],
)
def test_flags_users_and_cut_words(text: str, name: str) -> None:
    assert read_state(text).name == name


@pytest.mark.parametrize("text", ["HIBERNATING", "42", "RE", "CO", "?"])
def test_a_new_word_is_unknown_and_quoted(text: str) -> None:
    state = read_state(text)
    assert (state.name, state.word, state.is_open, state.is_bad) == ("UNKNOWN", text, False, False)
    assert text in state.says


@pytest.mark.parametrize("text", ["", "  ", ",", "+"])
def test_no_word_at_all_is_unknown(text: str) -> None:
    assert read_state(text).name == "UNKNOWN"


def test_many_are_counted_and_told_in_the_order_that_matters() -> None:
    counts = counted(["PD", "PENDING", "R", "CANCELLED by 7", "COMPLETED", "F", "ODD"])
    assert counts == {
        "PENDING": 2, "RUNNING": 1, "CANCELLED": 1, "COMPLETED": 1, "FAILED": 1, "UNKNOWN": 1,
    }  # fmt: skip
    assert states_text(counts).startswith("1 running, 2 waiting, 1 done, 1 cancelled, 1 failed")
    assert states_text({}) == ""
