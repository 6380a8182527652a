"""What a job asked for and what a program used, each in one line of text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runyard.reading.units import duration, memory_text, number, size


def asked_text(request: dict[str, Any]) -> str:
    """What each task asked for: 2 GPUs, 8 CPUs, 16 GB, 2 h 0 min."""
    parts = []
    if (request.get("nodes") or 1) > 1:
        parts.append(f"{request['nodes']} nodes")
    if request.get("gpus"):
        kind = f" {request['gpu_type']}" if request.get("gpu_type") else ""
        parts.append(f"{request['gpus']}{kind} GPU{'s' if request['gpus'] != 1 else ''}")
    if request.get("cpus"):
        parts.append(f"{request['cpus']} CPU{'s' if request['cpus'] != 1 else ''}")
    if request.get("memory"):
        parts.append(memory_text(int(request["memory"]) << 20))
    if request.get("time"):
        parts.append(duration(float(request["time"])))
    return ", ".join(parts)


def usage_text(usage: Mapping[str, Any] | None) -> str:
    """One line, of what is known; empty if nothing is."""
    if not usage:
        return ""
    parts = []
    if "memory_peak" in usage:
        parts.append(f"{size(int(usage['memory_peak']))} memory")
    if "vram_peak" in usage:
        parts.append(f"{size(int(usage['vram_peak']))} GPU memory")
    if "gpu_use" in usage:
        parts.append(f"GPU {100 * usage['gpu_use']:.0f} % busy")
    if "cpu_seconds" in usage:
        parts.append(f"{duration(usage['cpu_seconds'])} CPU")
    if "read_bytes" in usage and usage["read_bytes"] + usage.get("written_bytes", 0):
        read, written = size(int(usage["read_bytes"])), size(int(usage.get("written_bytes", 0)))
        parts.append(f"{read} read, {written} written")
    if "steps_per_second" in usage:
        parts.append(f"{number(usage['steps_per_second'])} steps/s")
    return ", ".join(parts)
