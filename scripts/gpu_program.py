"""A program that takes GPU memory and computes, for `record_nvml.py`. Standard library only.

    python3 gpu_program.py --hold 2000000000 --kind small --marks FILE

CUDA is called through its driver's library (`libcuda.so.1`), so no package is needed. It prints
`{"pid": ..., "holds": BYTES}` when it has its memory, takes other amounts as lines on its standard
input, and ends when that is closed. `small` steps compute on one of the GPU's processors and leave
the others idle; `large` ones write the whole of the program's memory. A line `[time, steps]` goes
to FILE five times a second. With `--child` a child does all this, as below a wrapper script. With
`--torch` the memory is taken by PyTorch, whose own figure is printed beside it.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

_MARK_EVERY = 0.2
# One thread that looks at the clock for so many cycles: about a tenth of a millisecond.
_CYCLES = 150_000
_SPIN = b"""
.version 6.0
.target sm_60
.address_size 64
.visible .entry spin(.param .u64 cycles)
{
    .reg .u64 %rd<5>;
    .reg .pred %p1;
    ld.param.u64 %rd1, [cycles];
    mov.u64 %rd2, %clock64;
AGAIN:
    mov.u64 %rd3, %clock64;
    sub.u64 %rd4, %rd3, %rd2;
    setp.lt.u64 %p1, %rd4, %rd1;
    @%p1 bra AGAIN;
    ret;
}
\0"""


class Cuda:
    """The first GPU that is visible here."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libcuda.so.1")
        self._ask("cuInit", 0)
        self._context, self._spin = ctypes.c_void_p(), ctypes.c_void_p()
        device, module = ctypes.c_int(), ctypes.c_void_p()
        self._ask("cuDeviceGet", ctypes.byref(device), 0)
        self._ask("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), device)
        self._ask("cuCtxSetCurrent", self._context)
        self._ask("cuModuleLoadData", ctypes.byref(module), _SPIN)
        self._ask("cuModuleGetFunction", ctypes.byref(self._spin), module, b"spin")
        self._address, self._size = ctypes.c_uint64(), 0

    def hold(self, size: int) -> None:
        """Have so many bytes from now on."""
        if self._size:
            self._ask("cuMemFree_v2", self._address)
        self._ask("cuMemAlloc_v2", ctypes.byref(self._address), ctypes.c_size_t(size))
        self._size = size

    def step(self, kind: str) -> None:
        """Compute a little, and wait until it is done."""
        if kind == "large":
            size = ctypes.c_size_t(self._size)
            self._ask("cuMemsetD8_v2", self._address, ctypes.c_ubyte(1), size)
        else:
            cycles = ctypes.c_uint64(_CYCLES)
            arguments = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.byref(cycles), ctypes.c_void_p))
            one, none = ctypes.c_uint(1), ctypes.c_void_p()
            shape = (one, one, one, one, one, one, ctypes.c_uint(0))
            self._ask("cuLaunchKernel", self._spin, *shape, none, arguments, none)
        self._ask("cuCtxSynchronize")

    def _ask(self, name: str, *arguments: Any) -> None:
        code = getattr(self._library, name)(*arguments)
        if code != 0:
            raise SystemExit(f"{name} failed with code {code}")


class Torch:
    """The same by PyTorch, and what it says of its own memory."""

    def __init__(self) -> None:
        self._torch: Any = importlib.import_module("torch")
        self._room: Any = None

    def hold(self, size: int) -> None:
        self._room = None
        self._torch.cuda.empty_cache()
        self._room = self._torch.zeros(size, dtype=self._torch.uint8, device="cuda")

    def step(self, _kind: str) -> None:
        self._room.add_(1)
        self._torch.cuda.synchronize()

    def reserved(self) -> int:
        return int(self._torch.cuda.max_memory_reserved())


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--hold", type=int, required=True)
    parser.add_argument("--kind", choices=("small", "large"), default="small")
    parser.add_argument("--marks", required=True)
    parser.add_argument("--child", action="store_true")
    parser.add_argument("--torch", action="store_true")
    options = parser.parse_args()
    if options.child:
        words = [word for word in sys.argv if word != "--child"]
        return subprocess.run([sys.executable, *words], check=False).returncode
    gpu: Cuda | Torch = Torch() if options.torch else Cuda()
    _hold(gpu, options.hold)
    steps, due = 0, 0.0
    with Path(options.marks).open("a", buffering=1) as marks:
        while True:
            gpu.step(options.kind)
            steps += 1
            if time.monotonic() < due:
                continue
            due = time.monotonic() + _MARK_EVERY
            marks.write(f"{json.dumps([time.time(), steps])}\n")
            if select.select([0], [], [], 0)[0]:
                line = os.read(0, 100)
                if not line:
                    return 0
                _hold(gpu, int(line))


def _hold(gpu: Cuda | Torch, size: int) -> None:
    gpu.hold(size)
    gpu.step("large")
    told: dict[str, int] = {"pid": os.getpid(), "holds": size}
    if isinstance(gpu, Torch):
        told["torch_reserved"] = gpu.reserved()
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    sys.exit(main())
