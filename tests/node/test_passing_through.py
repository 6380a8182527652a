"""A program under `runyard run` is seen, and sees the world, as without it."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from runyard.home import Home
from tests.conftest import run_runyard
from tests.node.terminals import PATIENCE, RUNYARD, Terminal, started, until

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("yard")]

RUN = (*RUNYARD, "run", "-q", "--")


def run(
    *command: str, stdin: bytes = b"", cwd: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*RUN, *command], input=stdin, capture_output=True, timeout=PATIENCE, cwd=cwd, check=False
    )


@pytest.mark.parametrize("code", [0, 1, 2, 75, 125, 127, 130, 255])
def test_exit_codes_pass_exactly(code: int) -> None:
    done = run("sh", "-c", f"exit {code}")
    assert (done.returncode, done.stdout, done.stderr) == (code, b"", b"")


@pytest.mark.parametrize(
    "number",
    [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGINT, signal.SIGPIPE, signal.SIGUSR1],
)
def test_a_death_by_signal_is_seen_as_that_signal(number: signal.Signals) -> None:
    assert run("sh", "-c", f"kill -{number.name[3:]} $$").returncode == -number


def test_a_core_file_is_left_once_at_most(tmp_path: Path) -> None:
    run("sh", "-c", "ulimit -c 0; kill -SEGV $$", cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_program_that_is_not_there() -> None:
    done = run("no-such-program", "x")
    assert done.returncode == 127
    assert b"cannot start 'no-such-program'" in done.stderr
    assert b"\n  try:  check its spelling" in done.stderr


def test_a_program_that_is_here_but_not_on_the_path(tmp_path: Path) -> None:
    (tmp_path / "train").write_text("#!/bin/sh\n")
    done = run("train", "two words", cwd=tmp_path)
    assert done.returncode == 127
    assert b"try:  runyard run -- ./train 'two words'" in done.stderr


def test_a_program_that_may_not_be_run(tmp_path: Path) -> None:
    (tmp_path / "train").write_text("#!/bin/sh\n")
    done = run("./train", cwd=tmp_path)
    assert done.returncode == 126
    assert b"chmod +x ./train" in done.stderr


def test_a_python_file_that_may_not_be_run(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print(1)\n")
    done = run("./train.py", "--lr", "1", cwd=tmp_path)
    assert done.returncode == 126
    assert b"try:  runyard run -- python ./train.py --lr 1" in done.stderr


def test_a_program_whose_interpreter_is_missing(tmp_path: Path) -> None:
    (tmp_path / "train").write_text("#!/no/such/interpreter\n")
    (tmp_path / "train").chmod(0o755)
    done = run("./train", cwd=tmp_path)
    assert done.returncode == 127
    assert b"interpreter" in done.stderr


def test_a_program_that_did_not_start_is_a_failed_run(yard: Home) -> None:
    run_runyard("run", "-e", "nowhere", "--", "no-such-program")
    shown = run_runyard("show", "nowhere").stdout
    assert "failed (exit code 127)" in shown
    assert list(yard.spool.iterdir()) == []


def test_a_server_that_cannot_start_is_our_own_failure(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = run_runyard("run", "true", env={"RUNYARD_HOME": str(tmp_path / "file")})
    assert done.returncode == 125
    assert "Traceback" not in done.stderr


ARGUMENTS = [
    "two words",
    "it's",
    '"quoted"',
    "line\nline",
    "--",
    "-n",
    "--name=x",
    "",
    "$HOME `id` *",
    "é∞🙂",
    "\\",
    "--help",
    "--debug",
]
_SHOW_ARGUMENTS = "import os, sys; print([os.fsencode(word) for word in sys.argv[1:]])"


@pytest.mark.parametrize("dashes", [True, False])
def test_arguments_arrive_as_they_were_given(dashes: bool) -> None:
    command = [sys.executable, "-c", _SHOW_ARGUMENTS, *ARGUMENTS]
    done = subprocess.run(
        [*RUNYARD, "run", "-q", *(["--"] if dashes else []), *command],
        capture_output=True,
        timeout=PATIENCE,
        check=True,
    )
    assert done.stdout.decode().strip() == str([os.fsencode(word) for word in ARGUMENTS])


def test_bytes_that_are_no_text_arrive_and_are_recorded(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    done = run(sys.executable, "-c", _SHOW_ARGUMENTS, os.fsdecode(b"\xff\xfe"), cwd=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"[b'\\xff\\xfe']\n", b"")


def test_a_program_whose_name_begins_with_a_dash(tmp_path: Path) -> None:
    (tmp_path / "-train").write_text("#!/bin/sh\necho started")
    (tmp_path / "-train").chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run([*RUN, "-train"], env=environment, capture_output=True, check=True)
    assert done.stdout == b"started\n"


def test_input_passes_through_a_pipe() -> None:
    data = bytes(range(256)) * 1000
    assert run("cat", stdin=data).stdout == data


def test_output_and_errors_stay_apart() -> None:
    done = run("sh", "-c", "echo out; echo err >&2")
    assert (done.stdout, done.stderr) == (b"out\n", b"err\n")


def test_output_and_errors_into_one_pipe_keep_their_order() -> None:
    script = "i=0; while [ $i -lt 200 ]; do echo o$i; echo e$i >&2; i=$((i+1)); done"
    done = subprocess.run(
        [*RUN, "sh", "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=PATIENCE,
        check=True,
    )
    assert done.stdout.decode() == "".join(f"o{i}\ne{i}\n" for i in range(200))


def test_bytes_that_are_no_text_pass_unchanged(tmp_path: Path) -> None:
    data = bytes(range(256)) + b"\xff\xfe\r\n\r\0\x1b[31m"
    (tmp_path / "data").write_bytes(data)
    assert run("cat", str(tmp_path / "data")).stdout == data


def test_fifty_megabytes_pass_complete() -> None:
    script = "import os\nfor i in range(800): os.write(1, bytes([i % 251]) * 65536)"
    wanted = hashlib.sha256(b"".join(bytes([i % 251]) * 65536 for i in range(800)))
    done = run(sys.executable, "-c", script)
    assert done.returncode == 0
    assert hashlib.sha256(done.stdout).hexdigest() == wanted.hexdigest()


def test_a_reader_that_has_enough_ends_the_program_quietly() -> None:
    done = subprocess.run(
        ["bash", "-c", 'set -o pipefail; "$@" | head -1; echo "${PIPESTATUS[0]}"', "-", *RUN,
         "yes", "word"],
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )  # fmt: skip
    assert done.stdout == b"word\n141\n"
    assert done.stderr == b""


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&- <&-"])
def test_a_stream_that_our_caller_closed(closed: str, tmp_path: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", f'"$@" {closed}', "-", *RUN, "sh", "-c", "echo out; echo err >&2; exit 7"],
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 7
    assert done.stdout == (b"" if closed.startswith(">") else b"out\n")
    assert done.stderr == (b"" if "2>" in closed else b"err\n")


def test_without_a_terminal_the_program_sees_none() -> None:
    script = "import os; print([os.isatty(handle) for handle in range(3)])"
    assert run(sys.executable, "-c", script).stdout == b"[False, False, False]\n"


def test_what_a_program_leaves_behind_is_not_waited_for(tmp_path: Path) -> None:
    """Neither where it is silent nor where it goes on and on."""
    for left in ("sleep 300", "while :; do echo more; sleep 0.05; done"):
        script = f"({left}) & echo $! > pid; echo done"
        done = run("sh", "-c", script, cwd=tmp_path)
        # The one that goes on ends by itself where it finds that nobody reads.
        with contextlib.suppress(ProcessLookupError):
            os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
        assert done.returncode == 0
        assert b"done\n" in done.stdout


def test_the_programs_last_words_pass_a_reader_that_takes_its_time(tmp_path: Path) -> None:
    """Our own pipe, our hand and the program's pipe are full, and runyard lingers in vain."""
    size = 65536 * 2 + 60_000
    script = f"import os; os.write(1, b'x' * {size}); open('ended', 'w').close()"
    with started("run", "-q", "--", sys.executable, "-c", script, cwd=tmp_path) as process:
        until((tmp_path / "ended").exists, "the program's end")
        time.sleep(0.7)  # Longer than it lingers; that nothing happens cannot be waited for.
        out, _ = process.communicate(timeout=PATIENCE)
    assert len(out) == size


def test_on_a_terminal_the_program_sees_one_of_the_same_size() -> None:
    script = "import os; print([os.isatty(h) for h in range(3)], *os.get_terminal_size(1))"
    with Terminal([*RUN, sys.executable, "-c", script], rows=31, columns=97) as terminal:
        terminal.expect(r"\[True, True, True\] 97 31\r\n")
        assert terminal.wait() == 0


def test_output_into_a_pipe_and_errors_on_a_terminal() -> None:
    script = (
        "import os, sys; print([os.isatty(h) for h in range(3)]);"
        # In one piece: what is piped reaches the same terminal.
        "sys.stderr.write('%d %d\\n' % os.get_terminal_size(2))"
    )
    piped = ["sh", "-c", '"$@" | sed s/^/piped:/', "-", *RUN, sys.executable, "-c", script]
    with Terminal(piped, rows=31, columns=97) as terminal:
        terminal.wait()
        shown = terminal.seen.decode()
        assert "piped:[True, False, True]\r\n" in shown
        assert "97 31\r\n" in shown


def test_a_new_window_size_reaches_the_program() -> None:
    script = (
        "import os, signal, time\n"
        "def told(*_): print('size', *os.get_terminal_size(1), flush=True)\n"
        "signal.signal(signal.SIGWINCH, told)\n"
        "print('ready', flush=True)\n"
        "while True: time.sleep(10)\n"
    )
    with Terminal([*RUN, sys.executable, "-c", script]) as terminal:
        terminal.expect("ready")
        terminal.resize(50, 60)
        terminal.expect("size 60 50")
        terminal.resize(24, 80)
        terminal.expect("size 80 24")


def test_what_is_typed_reaches_the_program() -> None:
    script = 'read line; echo "heard:$line"'
    with Terminal([*RUN, "sh", "-c", script]) as terminal:
        terminal.type("hello there\n")
        terminal.expect("heard:hello there\r\n")
        assert terminal.wait() == 0


def test_the_end_of_input_is_typed_too() -> None:
    with Terminal([*RUN, "sh", "-c", "cat; echo over"]) as terminal:
        terminal.type("a line\n")
        terminal.expect("a line\r\n.*a line\r\n|a line\r\na line")
        terminal.type("\x04")
        terminal.expect("over")
        assert terminal.wait() == 0


def test_colours_and_bare_line_ends_pass_a_terminal_unchanged() -> None:
    script = "printf '\\033[31mred\\033[0m 1%%\\r2%%\\n'"
    with Terminal([*RUN, "sh", "-c", script]) as terminal:
        terminal.wait()
        assert terminal.seen == b"\x1b[31mred\x1b[0m 1%\r2%\r\n"


def test_a_terminal_that_stops_background_writers_shows_all() -> None:
    script = 'stty tostop; "$@"; echo "code $?"'
    with Terminal(
        ["sh", "-c", script, "-", *RUN, "sh", "-c", "echo one; sleep 0.1; echo two"]
    ) as terminal:
        terminal.expect("one\r\ntwo\r\ncode 0")
        assert terminal.wait() == 0
