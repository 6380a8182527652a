"""A call on its way to a job, and what came of it on its way back."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from runyard.errors import UsageError
from runyard.scripting import run_call
from runyard.scripting.calls import Call, CallFolder, NotReturned, Outcome, name_of
from tests.test_house import SOURCE


def divide(a: float, by: float = 2.0) -> float:
    return a / by


def lock() -> object:
    return threading.Lock()


class Strange(Exception):
    """Can be sent, and not be made again."""

    def __init__(self, one: int, other: int) -> None:
        super().__init__(one + other)


def raise_strange() -> None:
    raise Strange(1, 2)


def made(tmp_path: Path, *calls: Call) -> CallFolder:
    return CallFolder.make(tmp_path, tmp_path, calls)


def outcome_of(folder: CallFolder, number: int = 1) -> Outcome:
    outcome = folder.outcome(number)
    assert outcome is not None
    return outcome


def test_what_it_returns_comes_back(tmp_path: Path) -> None:
    folder = made(tmp_path, Call(divide, (6,)), Call(divide, (6,), {"by": 3}))
    assert folder.outcome(2) is None
    assert run_call.main(folder.path, 1) == run_call.main(folder.path, 2) == 0
    assert [outcome_of(folder, number).value for number in (1, 2)] == [3.0, 2.0]
    assert folder.path.stat().st_mode & 0o777 == 0o700


def test_what_it_raises_comes_back_with_where(tmp_path: Path) -> None:
    folder = made(tmp_path, Call(divide, (6, 0)))
    assert run_call.main(folder.path, 1) == 1
    outcome = outcome_of(folder)
    assert isinstance(outcome.error, ZeroDivisionError)
    assert "in divide\n    return a / by" in outcome.traceback
    assert "run_call" not in outcome.traceback


@pytest.mark.parametrize(
    ("function", "said"), [(lock, "cannot pickle"), (raise_strange, "missing 1 required")]
)
def test_what_cannot_be_sent_back_is_told(function: object, said: str, tmp_path: Path) -> None:
    folder = made(tmp_path, Call(function))  # type: ignore[arg-type]
    run_call.main(folder.path, 1)
    error = outcome_of(folder).error
    assert isinstance(error, NotReturned)
    assert said in str(error.said)


def test_the_outcome_of_an_earlier_attempt_is_forgotten(tmp_path: Path) -> None:
    folder = made(tmp_path, Call(sys.exit, (75,)))
    folder.keep(1, Outcome("of the first"))
    with pytest.raises(SystemExit):
        run_call.main(folder.path, 1)
    assert folder.outcome(1) is None


def test_of_several_ranks_the_first_speaks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = made(tmp_path, Call(divide, (6,)))
    for name, value in (("RANK", "1"), ("WORLD_SIZE", "2"), ("LOCAL_RANK", "1")):
        monkeypatch.setenv(name, value)
    assert run_call.main(folder.path, 1) == 0
    assert folder.outcome(1) is None


def test_a_canceled_call_is_not_made(tmp_path: Path) -> None:
    folder = made(tmp_path, Call(divide, (6,)))
    folder.cancel(1)
    assert run_call.main(folder.path, 1) == 1
    assert folder.outcome(1) is None


def test_what_has_no_name_needs_cloudpickle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    of_script = type("Settings", (), {"__module__": "__main__"})
    monkeypatch.setattr(sys.modules["__main__"], "Settings", of_script, raising=False)
    for call in (Call(lambda: 1), Call(divide, (of_script(),))):
        with pytest.raises(UsageError) as refused:
            made(tmp_path, call)
        assert "pip install cloudpickle" in (refused.value.mend or "")
    assert list(tmp_path.iterdir()) == []
    assert name_of(lambda: 1) == "lambda"


def test_a_job_needs_the_standard_library_alone(tmp_path: Path) -> None:
    """The Python of a job need not have what runyard's commands need."""
    folder = made(tmp_path, Call(divmod, (7, 2)))
    code = (
        f"import sys; sys.path.insert(0, {str(SOURCE)!r})\n"
        "from pathlib import Path\n"
        "from runyard.scripting.run_call import main\n"
        f"sys.exit(main(Path({str(folder.path)!r}), 1))\n"
    )
    subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True)
    assert outcome_of(folder).value == (3, 1)
