"""Processes are ended by who they are, not by their number; and the keeper outlives its agent."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from runyard.node.attempt import records
from runyard.node.attempt.exit_causes import cause_of
from runyard.node.attempt.records import Record
from runyard.node.link.channel import parse_answer
from runyard.node.system import processes
from runyard.node.system.processes import NotStarted, launch
from tests.node.terminals import until

SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]
STUBBORN = [
    sys.executable, "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); "
    "time.sleep(600)",
]  # fmt: skip


@contextlib.contextmanager
def group(command: list[str], **environ: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        command, start_new_session=True, stdout=subprocess.PIPE, env={**os.environ, **environ}
    ) as process:
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def test_a_group_is_asked_to_end_and_then_killed() -> None:
    with group(SLEEP) as willing, group(STUBBORN) as stubborn:
        assert stubborn.stdout is not None
        stubborn.stdout.readline()
        began = {one.pid: processes.start_time(one.pid) for one in (willing, stubborn)}
        processes.end_groups(began, [], grace=0.3)
        assert willing.wait() == -signal.SIGTERM
        assert stubborn.wait() == -signal.SIGKILL


def test_a_number_that_is_somebody_elses_by_now_is_left_alone() -> None:
    with group(SLEEP) as stranger:
        processes.end_groups({stranger.pid: "12345"}, [], grace=0.1)
        assert stranger.poll() is None


def test_what_left_its_group_is_found_by_its_mark() -> None:
    with group(SLEEP, **{processes.MARK: "abc"}) as marked, group(SLEEP) as other:
        until(lambda: processes.marked(["abc"]) == [marked.pid], "the mark")
        processes.end_groups({}, ["abc"], grace=5.0)
        assert marked.wait() == -signal.SIGTERM
        assert other.poll() is None


def test_a_zombie_does_not_live() -> None:
    pid = os.fork()
    if not pid:
        os._exit(0)
    try:
        until(lambda: processes.start_time(pid) is None, "its end")
        assert processes.start_time(os.getpid()) is not None
    finally:
        os.waitpid(pid, 0)


def test_a_record_is_an_orphan_when_agent_and_keeper_are_gone(tmp_path: Path) -> None:
    gone = {"keeper": 2**22 + 1, "keeper_began": "1"}
    ours = {"agent": 1, "host": os.uname().nodename, **processes.identity()}
    with group(SLEEP) as agent:
        lives = {**ours, "pid": agent.pid, "pid_began": processes.start_time(agent.pid), **gone}
        assert not records.is_orphan(lives)
        assert records.is_orphan({**lives, "pid_began": "1"})
        assert records.is_orphan({**lives, "boot": "another"})
    assert records.is_orphan(lives)
    # Our own number does not count: it is the keeper who asks.
    assert records.is_orphan({**ours, **gone})


def test_a_record_is_written_over_and_read_back(tmp_path: Path) -> None:
    record = Record(
        f"{tmp_path}/r.json", {"agent": 1, "host": os.uname().nodename, "note": "x" * 300}
    )
    record.write()
    record.write(note="", exit_code=0)
    (found,) = records.read_all(str(tmp_path))
    assert found.content == {"agent": 1, "host": os.uname().nodename, "note": "", "exit_code": 0}
    record.remove()
    assert not list(tmp_path.iterdir())


def test_a_program_begins_in_a_group_of_its_own_as_in_a_shell(tmp_path: Path) -> None:
    tell = (
        "import os, signal, sys; "
        "print(os.getpgrp() == os.getpid(), os.getcwd() == sys.argv[1], sys.stdin.read() == '', "
        "signal.getsignal(signal.SIGTERM) == signal.SIG_DFL, "
        "signal.pthread_sigmask(signal.SIG_BLOCK, ()) == set(), os.environ['A'])"
    )
    heard, told = os.pipe()
    words = [sys.executable, "-c", tell, str(tmp_path)]
    pid = launch(words, {"A": "b"}, str(tmp_path), told)
    os.close(told)
    with os.fdopen(heard) as said:
        assert said.read() == "True True True True True b\n"
    assert os.waitpid(pid, 0)[1] == 0


@pytest.mark.parametrize(
    ("name", "folder", "code", "said"),
    [
        ("missing", None, 127, "'{0}/missing': No such file or directory"),
        ("plain", None, 126, "'{0}/plain': Permission denied"),
        ("plain", "/nowhere", 127, "'{0}/plain' in /nowhere: No such file or directory"),
        ("nul\0", None, 126, "'{0}/nul\\x00': embedded null byte"),
    ],
)
def test_a_program_that_cannot_be_started_says_why(
    name: str, folder: str | None, code: int, said: str, tmp_path: Path
) -> None:
    (tmp_path / "plain").touch(mode=0o600)
    with pytest.raises(NotStarted) as refused:
        launch([f"{tmp_path}/{name}"], {}, folder, 1)
    assert refused.value.exit_code == code
    assert str(refused.value) == f"cannot start {said.format(tmp_path)}"


@pytest.mark.parametrize(
    ("code", "tail", "killed", "cause"),
    [
        (0, b"", False, None),
        (1, b"ValueError: no", False, None),
        (75, b"", False, "go-on"),
        (1, b"torch.cuda.OutOfMemoryError: CUDA out of memory.", False, "memory"),
        (
            1,
            b"torch.AcceleratorError: CUDA error: out of memory\nSearch for `cuda",
            False,
            "memory",
        ),
        (1, b"CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cubl", False, "memory"),
        (1, b"cupy: CUDA_ERROR_OUT_OF_MEMORY: out of memory", False, "memory"),
        (1, b"ResourceExhaustedError: OOM when allocating tensor with shape[", False, "memory"),
        (
            1,
            b"[enforce fail at alloc_cpu.cpp:114] data. DefaultCPUAllocator: can't allocate "
            b"memory: you tried to allocate 8 bytes",
            False,
            "memory",
        ),
        (134, b"what():  std::bad_alloc", False, "memory"),
        (1, b"numpy.core._exceptions._ArrayMemoryError: Unable", False, "memory"),
        (1, b"runyard.train.errors.NotFinite: loss is not finite any more", False, "nan"),
        (1, b"FloatingPointError: invalid value (nan) encountered in mul", False, "nan"),
        (-9, b"", True, "memory"),
        (137, b"", True, "memory"),
        (-9, b"", False, None),
        (-15, b"MemoryError", False, None),
    ],
)
def test_causes_that_can_be_seen_from_beside(
    code: int, tail: bytes, killed: bool, cause: str | None
) -> None:
    assert cause_of(code, tail, lambda: killed) == cause


@pytest.mark.parametrize(
    ("data", "status", "body", "rest"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}HTTP", 200, b"{}", b"HTTP"),
        (b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", 404, b"", b""),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"3\r\nabc\r\n1\r\nd\r\n0\r\n\r\nX",
            200,
            b"abcd",
            b"X",
        ),
        (
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
            200,
            b"x",
            b"",
        ),
    ],
)
def test_an_answer_is_read_whole_or_not_at_all(
    data: bytes, status: int, body: bytes, rest: bytes
) -> None:
    parsed = parse_answer(data)
    assert parsed is not None
    assert (parsed[0].status, parsed[0].body, parsed[1]) == (status, body, rest)
    whole = len(data) - len(rest)
    for cut in range(whole):
        assert parse_answer(data[:cut]) is None


def test_time_goes_on() -> None:
    from runyard.node.system.loop import Loop

    loop, fired = Loop(), list[str]()
    loop.after(0.02, lambda: fired.append("second"))
    loop.after(0.01, lambda: fired.append("first"))
    loop.after(0.015, lambda: fired.append("never")).cancel()
    end = time.monotonic() + 180
    while len(fired) < 2 and time.monotonic() < end:
        loop.turn()
    loop.close()
    assert fired == ["first", "second"]
