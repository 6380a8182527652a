"""NVIDIA's driver, asked through its own library (NVML): which GPUs, whose memory, how busy.

Only ever called from a process of its own (`sampler`): a driver in trouble may not answer.
"""

from __future__ import annotations

import contextlib
import ctypes
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Where the loader does not look by itself: containers, and Windows' own Linux.
_LIBRARIES = (
    "libnvidia-ml.so.1",
    "/usr/local/nvidia/lib64/libnvidia-ml.so.1",
    "/usr/lib64/nvidia/libnvidia-ml.so.1",
    "/usr/lib/wsl/lib/libnvidia-ml.so.1",
)
_GOOD = 0
_TOO_SMALL = 7
_UNKNOWN_MEMORY = (1 << 64) - 1
_MOST_PROCESSES = 256
_EXCLUSIVE_PROCESS, _PROHIBITED = 3, 2


class _Memory(ctypes.Structure):
    _fields_ = (
        ("total", ctypes.c_ulonglong),
        ("free", ctypes.c_ulonglong),
        ("used", ctypes.c_ulonglong),
    )


class _Process(ctypes.Structure):
    _fields_ = (
        ("pid", ctypes.c_uint),
        ("memory", ctypes.c_ulonglong),
        ("instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    )


class _Use(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class NoDriver(Exception):
    """There is no driver of NVIDIA's here, or it does not answer; why."""


class Driver:
    """The driver of this machine."""

    def __init__(self) -> None:
        self._library = _load()
        code = self._library.nvmlInit_v2()
        if code != _GOOD:
            raise NoDriver(f"the driver does not answer: {self._words(code)}")

    def uuids(self) -> list[str]:
        """Every GPU that may be used here, in the driver's order."""
        return [self._uuid(device) for device in self._usable()]

    def device(self, name: str) -> Any:
        """The GPU or MIG slice of this name (an index or a UUID); None if there is none."""
        if name.isdecimal():
            usable = self._usable()
            return usable[int(name)] if int(name) < len(usable) else None
        handle = ctypes.c_void_p()
        code = self._library.nvmlDeviceGetHandleByUUID(name.encode(), ctypes.byref(handle))
        return handle if code == _GOOD else None

    def _usable(self) -> list[Any]:
        """As CUDA numbers them: from 0, without those of other jobs. NVML may count them, too, and
        refuse them (NVML_ERROR_NO_PERMISSION)."""
        count, usable = ctypes.c_uint(), []
        self._library.nvmlDeviceGetCount_v2(ctypes.byref(count))
        for index in range(count.value):
            handle = ctypes.c_void_p()
            code = self._library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle))
            if code == _GOOD:
                usable.append(handle)
        return usable

    def model(self, device: Any) -> str:
        """What it is: `NVIDIA H200`; empty where the driver does not tell."""
        text = ctypes.create_string_buffer(96)
        with contextlib.suppress(AttributeError):
            self._library.nvmlDeviceGetName(device, text, len(text))
        return text.value.decode(errors="replace")

    def index(self, device: Any) -> int | None:
        """Its number, as `nvidia-smi` shows it; slices have none."""
        number = ctypes.c_uint()
        with contextlib.suppress(AttributeError):
            if self._library.nvmlDeviceGetIndex(device, ctypes.byref(number)) == _GOOD:
                return number.value
        return None

    def memory(self, device: Any) -> tuple[int, int] | None:
        """Bytes in all, and in use."""
        counts = _Memory()
        if self._library.nvmlDeviceGetMemoryInfo(device, ctypes.byref(counts)) != _GOOD:
            return None
        return counts.total, counts.used

    def use(self, device: Any) -> float | None:
        """The share of the last moments in which it was busy, 0 to 1. Slices do not tell."""
        rates = _Use()
        if self._library.nvmlDeviceGetUtilizationRates(device, ctypes.byref(rates)) != _GOOD:
            return None
        return float(rates.gpu) / 100

    def processes(self, device: Any) -> dict[int, int]:
        """Bytes of every process that computes there, where the driver tells; MPS' clients too."""
        sizes: dict[int, int] = {}
        for name in (
            "nvmlDeviceGetComputeRunningProcesses_v3",
            "nvmlDeviceGetMPSComputeRunningProcesses_v3",
        ):
            with contextlib.suppress(AttributeError):  # An older driver.
                for process in self._list(getattr(self._library, name), device):
                    if process.memory != _UNKNOWN_MEMORY:
                        sizes[process.pid] = max(sizes.get(process.pid, 0), process.memory)
        return sizes

    def refuses_sharing(self, device: Any) -> bool:
        """Whether one process at a time has it for itself, or nobody may compute there."""
        mode = ctypes.c_uint()
        code = self._library.nvmlDeviceGetComputeMode(device, ctypes.byref(mode))
        return code == _GOOD and mode.value in (_EXCLUSIVE_PROCESS, _PROHIBITED)

    def _list(self, ask: Any, device: Any) -> list[_Process]:
        room = _MOST_PROCESSES
        while True:
            count, rows = ctypes.c_uint(room), (_Process * room)()
            code = ask(device, ctypes.byref(count), rows)
            if code == _TOO_SMALL and room < 1 << 16:
                room *= 4
                continue
            return list(rows[: count.value]) if code == _GOOD else []

    def _uuid(self, device: Any) -> str:
        text = ctypes.create_string_buffer(96)
        self._library.nvmlDeviceGetUUID(device, text, len(text))
        return text.value.decode(errors="replace")

    def _words(self, code: int) -> str:
        with contextlib.suppress(AttributeError):
            words = self._library.nvmlErrorString
            words.restype = ctypes.c_char_p
            return str(words(code).decode(errors="replace"))
        return f"code {code}"


def _load() -> Any:
    library = os.environ.get("RUNYARD_NVML")
    for path in (library,) if library else _LIBRARIES:
        with contextlib.suppress(OSError):
            return ctypes.CDLL(path)
    raise NoDriver("there is no driver of NVIDIA's here (libnvidia-ml.so.1)")
