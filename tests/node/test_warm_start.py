"""Programs forked from a warm parent: they begin, run and end as if they had been started."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runyard.node.attempt.keeper import start_keeper
from runyard.node.attempt.warm_start import WarmStarts, read_command
from runyard.node.system import processes
from runyard.node.system.loop import Loop
from tests.conftest import wait_until
from tests.environments import Missing, skip_or_fail
from tests.train.frameworks import ensure_framework

SLOW = """\
import os, sys, time
time.sleep(0.3)
with open("imports", "a") as file:
    print(os.getpid(), os.environ.get("OMP_NUM_THREADS"), file=file)
"""
LONG = 180.0  # A guard against a hang, never a measure.


class Yard:
    """What an agent has: a loop, a keeper, and its warm parents."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lines: list[str] = []
        self.loop = Loop()
        self.loop.on_signal(signal.SIGCHLD, lambda _number: None)
        (folder / "spool").mkdir()
        self.keeper = start_keeper(str(folder / "spool"), lambda _spool: None)
        self.children: set[int] = set()
        self.warm = WarmStarts(self.loop, lambda: self.keeper, self.lines.append, self.children)

    def turn_until(self, is_so: Callable[[], object]) -> None:
        end = time.monotonic() + LONG
        while not is_so():
            assert time.monotonic() < end, self.lines
            self.loop.turn(0.05)

    def prepare(self, *words: str, modules: tuple[str, ...] = ("slow",), **more: str) -> None:
        done: list[bool] = []
        self.warm.prepare(
            modules, list(words), environ(more), str(self.folder), lambda: done.append(True)
        )
        self.turn_until(lambda: done)

    def start(
        self, *words: str, modules: tuple[str, ...] = ("slow",), **more: str
    ) -> tuple[int, int]:
        """A program's number, and the pipe with what it says."""
        self.prepare(*words, modules=modules, **more)
        output, theirs = os.pipe()
        marked = {**environ(more), processes.MARK: os.urandom(8).hex()}
        pid = self.warm.launcher(modules)(list(words), marked, str(self.folder), theirs)
        os.close(theirs)
        return pid, output

    def run(
        self, *words: str, modules: tuple[str, ...] = ("slow",), **more: str
    ) -> tuple[int, str]:
        """How a program ends, and what it has said."""
        return ended(*self.start(*words, modules=modules, **more))

    @property
    def parents(self) -> list[int]:
        """Those that have imported the module, in turn."""
        lines = (self.folder / "imports").read_text().splitlines()
        return [int(line.split()[0]) for line in lines]

    def close(self) -> None:
        self.warm.close()
        self.keeper.dismiss()
        os.waitpid(self.keeper.pid, 0)
        for pid in self.children:
            os.waitpid(pid, 0)


def environ(more: dict[str, str]) -> dict[str, str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {"PATH": path, "PYTHONUNBUFFERED": "1", **more}


def ended(pid: int, output: int) -> tuple[int, str]:
    with os.fdopen(output, "rb") as file:
        said = file.read().decode()
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said


def heard(output: int) -> str:
    return os.read(output, 1 << 16).decode().strip()


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    (tmp_path / "slow.py").write_text(SLOW)
    before = signal.getsignal(signal.SIGCHLD)
    yard = Yard(tmp_path)
    try:
        yield yard
    finally:
        yard.close()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, before)


def write(yard: Yard, text: str) -> None:
    (yard.folder / "train.py").write_text(text)


def cold(yard: Yard, *words: str, **more: str) -> tuple[int, str]:
    ended = subprocess.run(
        words, cwd=yard.folder, env=environ(more), stdin=subprocess.DEVNULL, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    return ended.returncode, ended.stdout


ENDS = {
    "returns": "print('done')",
    "exits": "import sys; sys.exit(75)",
    "exits with a word": "import sys; sys.exit('no data')",
    "raises": "def f():\n    raise ValueError('no')\nf()",
    "raises while handling": "try:\n    1 / 0\nexcept ZeroDivisionError:\n    {}['x']",
    "is no Python": "print('a')\nif:\n",
    "interrupted": "import os, signal; os.kill(os.getpid(), signal.SIGINT)\nprint('not here')",
    "killed": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "a thread goes on": "import threading, time\n"
    "threading.Thread(target=lambda: (time.sleep(0.1), print('late'))).start()",
    "at exit": "import atexit\nx = 3\natexit.register(lambda: print('bye', x))",
    "a hook": "import sys\nsys.excepthook = lambda *e: print('hook', e[0].__name__)\n1 / 0",
}


@pytest.mark.parametrize("program", ENDS.values(), ids=ENDS)
def test_ends_and_console_are_those_of_a_cold_start(yard: Yard, program: str) -> None:
    write(yard, program)
    warm = yard.run("python", "train.py")
    assert yard.parents, "it was not started cold"
    assert warm == cold(yard, "python", "train.py")


TELLS = """\
import json, os, signal, sys
import slow
print(json.dumps({
    "main": sorted(set(globals()) - {"json", "os", "signal", "sys", "slow"}), "file": __file__,
    "package": __package__, "spec": getattr(__spec__, "name", None), "argv": sys.argv,
    "path": sys.path, "orig": sys.orig_argv, "cwd": os.getcwd(), "name": __name__,
    "flags": str(sys.flags),
    "environ": {k: v for k, v in os.environ.items() if k not in ("RUNYARD_ATTEMPT_TOKEN", "_")},
    "streams": [(s.name, s.encoding, s.errors, s.line_buffering, s.write_through)
                for s in (sys.stdin, sys.stdout, sys.stderr)],
    "stdin": os.readlink("/proc/self/fd/0"), "open": sorted(os.listdir("/proc/self/fd")),
    "own": [os.getpgrp() == os.getpid(), os.getsid(0) == os.getpid()],
    "handlers": [str(signal.getsignal(n)) for n in sorted(signal.valid_signals()) if n < 32
                 and n not in (9, 19)],
    "masks": [str(signal.pthread_sigmask(signal.SIG_BLOCK, []))],
    "main_module": sys.modules["__main__"].__dict__ is globals(),
}))
"""


@pytest.mark.parametrize(
    "words",
    [
        ("python", "train.py", "--lr", "0.1", "a b"),
        ("python", "-u", "-O", "./train.py"),
        ("python", "-I", "train.py"),
        ("python", "-m", "pack.train", "x=1"),
        ("/usr/bin/env", "python", "pack/train.py"),
        ("bash", "-c", "python train.py --name 'a b' --x=1"),
    ],
    ids=["script", "flags", "isolated", "module", "env", "line"],
)
def test_what_a_program_finds_is_what_it_finds_cold(yard: Yard, words: tuple[str, ...]) -> None:
    write(yard, TELLS)
    (yard.folder / "pack").mkdir()
    (yard.folder / "pack/__init__.py").touch()
    (yard.folder / "pack/train.py").write_text(TELLS)
    shutil.copy(yard.folder / "slow.py", yard.folder / "pack")
    is_isolated = "-I" in words
    if is_isolated:
        write(yard, TELLS.replace("import slow", "slow = None"))
    modules = ("json",) if is_isolated else ("slow",)
    code, said = yard.run(*words, modules=modules, X="é\udcff")
    assert code == 0, said
    warm = json.loads(said)
    fresh = json.loads(cold(yard, *words, X="é\udcff")[1])
    for known in (warm, fresh):
        known.pop("own")  # Only the agent's programs lead a group.
        for name in ("OLDPWD", "SHLVL"):  # A shell's own.
            known["environ"].pop(name, None)
    assert warm == fresh
    if not is_isolated:
        assert len(yard.parents) == 2, "the cold program imported it, and the parent"


def test_the_agent_finds_the_program_by_its_mark_its_group_and_its_command(yard: Yard) -> None:
    write(yard, "import os, time; os.fork(); print('here', flush=True); time.sleep(600)")
    pid, output = yard.start("python", "train.py", "--x=1")
    wait_until(lambda: "here" in heard(output))
    words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    [mark] = [word for word in words if word.startswith(processes.MARK.encode())]
    token = mark.decode().partition("=")[2]
    wait_until(lambda: len(processes.marked([token])) == 2)
    assert pid in processes.marked([token])
    assert set(processes.members([pid], [])) == set(processes.marked([token]))
    command = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    assert command == [b"python", b"train.py", b"--x=1"]
    assert not processes.is_launcher(pid)
    processes.end_groups({pid: processes.start_time(pid)}, [token], 5.0)
    assert ended(pid, output)[0] == -signal.SIGTERM


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR2, signal.SIGKILL])
def test_signals_end_it_as_they_end_a_cold_one(yard: Yard, number: signal.Signals) -> None:
    write(yard, "import time; print('here', flush=True); time.sleep(600)")
    pid, output = yard.start("python", "train.py")
    wait_until(lambda: "here" in heard(output))
    os.killpg(pid, number)
    assert ended(pid, output)[0] == -number


def test_two_side_by_side_have_their_own_place_and_numbers(yard: Yard) -> None:
    pytest.importorskip("numpy")
    write(
        yard,
        "import os, random, slow, numpy, tempfile, uuid\n"
        "print(os.environ['RUNYARD_SLOT'], os.environ['CUDA_VISIBLE_DEVICES'], random.random(),"
        " numpy.random.rand(), uuid.uuid4(), next(tempfile._get_candidate_names()))",
    )
    modules = ("slow", "random", "numpy", "uuid", "tempfile", "multiprocessing.process")
    started = [
        yard.start("python", "train.py", modules=modules,
                   RUNYARD_SLOT=str(slot), CUDA_VISIBLE_DEVICES=str(7 - slot))
        for slot in range(3)
    ]  # fmt: skip
    told = [ended(*one) for one in started]
    assert [code for code, _ in told] == [0, 0, 0], told
    words = [said.split() for _, said in told]
    assert [(slot, gpu) for slot, gpu, *_ in words] == [("0", "7"), ("1", "6"), ("2", "5")]
    for numbers in list(zip(*words, strict=True))[2:]:
        assert len(set(numbers)) == 3, numbers
    assert len(yard.parents) == 1


def test_programs_with_other_threads_have_another_parent(yard: Yard) -> None:
    write(yard, "import os; print(os.environ['OMP_NUM_THREADS'])")
    told = [yard.run("python", "train.py", OMP_NUM_THREADS=n)[1].strip() for n in "123123"]
    assert told == [*"123123"]
    imports = (yard.folder / "imports").read_text().split()[1::2]
    assert imports == ["1", "2", "3"], "each was set before its parent's import"


WORKERS = """\
import multiprocessing, os, sys

def square(x):
    return x * x, os.getpid()

if __name__ == "__main__":
    for way in ("spawn", "fork", "forkserver"):
        with multiprocessing.get_context(way).Pool(2) as pool:
            answers = pool.map(square, range(4))
        assert os.getpid() not in [pid for _, pid in answers]
        print(way, [number for number, _ in answers])
"""


@pytest.mark.parametrize("words", [("train.py",), ("-m", "train")])
def test_workers_of_a_program_find_its_functions(yard: Yard, words: tuple[str, ...]) -> None:
    write(yard, WORKERS)
    squares = "[0, 1, 4, 9]"
    expected = f"spawn {squares}\nfork {squares}\nforkserver {squares}\n"
    modules = ("slow", "multiprocessing.pool")
    assert yard.run("python", *words, modules=modules) == (0, expected)
    assert len(yard.parents) == 1


def test_a_killed_parent_costs_nothing_but_its_import(yard: Yard) -> None:
    write(yard, "import os, time; print(os.getppid(), flush=True); time.sleep(0.5); exit(3)")
    first = yard.start("python", "train.py")
    [parent] = yard.parents
    os.kill(parent, signal.SIGKILL)
    assert ended(*first) == (3, f"{os.getpid()}\n"), "it is ours, not its parent's"
    yard.turn_until(lambda: any("is gone" in line for line in yard.lines))
    assert yard.run("python", "train.py")[0] == 3
    assert len(yard.parents) == 2
    # Killed after it was found to be ready, before it is asked.
    yard.prepare("python", "train.py")
    os.kill(yard.parents[-1], signal.SIGKILL)
    wait_until(lambda: processes.start_time(yard.parents[-1]) is None)
    marked = {**environ({}), processes.MARK: "0" * 16}
    output, theirs = os.pipe()
    words = ["python", "train.py"]
    pid = yard.warm.launcher(("slow",))(words, marked, str(yard.folder), theirs)
    os.close(theirs)
    assert ended(pid, output) == (3, f"{os.getpid()}\n")
    assert len([line for line in yard.lines if "is gone" in line]) == 2


BROKEN = {
    "raise ImportError('no libcublas')": "import slow: ImportError: no libcublas",
    "import nothing_like_it": "import slow: ModuleNotFoundError",
    "import sys; sys.exit(1)": "import slow: SystemExit",
    "import os; os._exit(0)": "their import ended the process",
    "import os; os.kill(os.getpid(), 9)": "their import ended the process",
    "import threading, time\n"
    "threading.Thread(target=time.sleep, args=(9,), daemon=True, name='w').start()": "a thread (w)",
    "f = open('/dev/null'); import os; os.symlink('/dev/null', 'x')\n"
    "import _thread, time; _thread.start_new_thread(time.sleep, (9,))": "outside of Python",
}


@pytest.mark.parametrize(("module", "why"), BROKEN.items())
def test_a_module_that_cannot_be_held_is_said_once(yard: Yard, module: str, why: str) -> None:
    (yard.folder / "slow.py").write_text(module)
    write(yard, "print('all the same')")
    for _ in range(2):
        assert yard.run("python", "train.py") == (0, "all the same\n")
    [line] = yard.lines
    assert line.startswith("programs start cold: slow cannot be held ready: ")
    assert why in line


COUNTS_LATE_IMPORTS = """\
import sys
import {library}
before = set(sys.modules)
{use}
print(len(set(sys.modules) - before))
"""


def test_wandb_is_held_with_what_it_imports_when_a_run_begins(yard: Yard) -> None:
    use = "wandb.init(mode='offline').log({'loss': 1})"
    write(yard, COUNTS_LATE_IMPORTS.format(library="wandb", use=use))
    assert_held(yard, "wandb", "python")


@pytest.mark.frameworks
def test_torch_is_held_with_what_the_first_optimizer_imports(yard: Yard) -> None:
    use = "torch.optim.Adam(torch.nn.Linear(2, 2).parameters())"
    write(yard, COUNTS_LATE_IMPORTS.format(library="torch", use=use))
    try:
        python = ensure_framework("torch")
    except Missing as missing:
        skip_or_fail(str(missing))
    assert_held(yard, "torch", str(python))


def assert_held(yard: Yard, library: str, python: str) -> None:
    """A warm program imports less than a tenth of what a cold one does."""
    more = {"WANDB_SILENT": "true", "HOME": str(yard.folder)}
    yard.prepare(python, "train.py", modules=(library,), **more)
    yard.turn_until(lambda: any("imported once" in line for line in yard.lines))
    code, said = yard.run(python, "train.py", modules=(library,), **more)
    assert code == 0, said
    late_when_cold = int(cold(yard, python, "train.py", **more)[1])
    assert late_when_cold > 100
    assert int(said) < late_when_cold / 10


def test_other_commands_start_cold_and_that_is_said_once(yard: Yard) -> None:
    write(yard, "print('hello')")
    for _ in range(2):
        assert yard.run("bash", "-c", "python train.py | tr h H") == (0, "Hello\n")
    [line] = yard.lines
    assert "start cold" in line
    assert "python train.py | tr h H" in line
    assert not (yard.folder / "imports").exists()


def test_a_script_that_is_not_there_is_python_s_to_tell(yard: Yard) -> None:
    code, said = yard.run("python", "no.py")
    assert code == 2
    assert "can't open file" in said


COLD = (
    "bash -c 'cd x && python t.py'", "bash -c 'A=1 python t.py'", "bash -c 'python t.py $HOME'",
    "torchrun t.py", "conda run -n x python t.py", "apptainer exec x.sif python t.py",
    "python -c 'print(1)'", "python -i t.py", "python", "python -", "python t.pyz", "python -m",
    "srun python t.py", "/usr/bin/env A=1 python t.py", "pythonista t.py", "./train.py",
    "bash -c 'python t.py *.txt'", 'bash -c \'python t.py "\'',
)  # fmt: skip


@pytest.mark.parametrize("line", COLD)
def test_only_commands_of_python_itself_are_warm(line: str) -> None:
    import shlex

    assert read_command(shlex.split(line), {}) is None


def test_a_shell_that_reads_a_file_first_is_left_alone() -> None:
    words = ["bash", "-c", "python t.py"]
    assert read_command(words, {}) is not None
    assert read_command(words, {"BASH_ENV": "/etc/profile"}) is None
