"""What attempts use of their node, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runyard.cli.output import duration, number, size


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
