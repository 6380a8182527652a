"""A Python that imports torch once, and forks a process of its own for every program it is given.

Starting torch takes seconds, and most tests need many processes. Orders and answers are lines of
JSON; the child leaves the loop and runs the program as `python PROGRAM WORDS ...` would.
"""

import atexit
import json
import os
import runpy
import sys
import time
import traceback
from importlib import import_module
from pathlib import Path

import torch._dynamo


def take_orders() -> dict:
    """Fork for each program that is ordered; returns its order, in the child alone."""
    assert torch.__version__
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        order = json.loads(line)
        if "program" in order:
            child = os.fork()
            if child == 0:
                return order
            answer = {"pid": child}
        elif "module" in order:
            answer = {"loaded": import_module(order["module"]).__name__}
        else:
            answer = {"code": wait(order["pid"], order["seconds"])}
        print(json.dumps(answer), file=answers, flush=True)
    os._exit(0)


def wait(child: int, seconds: float) -> int | None:
    """The exit code of a child, negative for a signal; None if it is alive after that time."""
    end = time.monotonic() + seconds
    while True:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() >= end:
            return None
        time.sleep(0.002)


order = take_orders()
for number, path in ((1, order["output"]), (2, order["errors"])):
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(file, number)
    os.close(file)
nothing = os.open(os.devnull, os.O_RDONLY)
os.dup2(nothing, 0)
os.environ.clear()
os.environ.update(order["environment"])
os.chdir(order["folder"])
sys.argv = [order["program"], *order["words"]]
sys.path[0] = str(Path(order["program"]).parent)
code = 0
try:
    runpy.run_path(order["program"], run_name="__main__")
except SystemExit as leaving:
    code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    if isinstance(leaving.code, str):
        print(leaving.code, file=sys.stderr)
except BaseException:
    traceback.print_exc()
    code = 1
# As Python ends, but for the destructors of torch's C++: in a forked process they may wait for
# threads that only the parent has.
atexit._run_exitfuncs()
sys.stdout.flush()
sys.stderr.flush()
os._exit(code)
