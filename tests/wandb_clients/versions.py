"""Which releases of the client are tested, and what each needs besides its own requirements."""

from __future__ import annotations

# The newest, and those that clusters still have: one or two a year, back to mid 2023.
VERSIONS = ("0.31.0", "0.25.1", "0.22.3", "0.19.11", "0.17.9", "0.16.6", "0.15.12")

# Tried by every ./test: the Go core and the Python service. RUNYARD_ALL_CLIENTS=1 tries all seven.
IN_EVERY_TEST = ("0.31.0", "0.17.9")

# numpy and pillow: what programs log tables, histograms and images with.
_ALWAYS = ("numpy", "pillow")
# Older releases import pkg_resources, which setuptools 81 dropped, and met neither numpy 2 nor the
# click that changed how a flag without a value is read.
_BEFORE_0_18 = (
    "numpy<2; python_version < '3.13'",  # There is none for newer ones.
    "numpy; python_version >= '3.13'",
    "pillow",
    "setuptools<81",
    "click<8.2",
)


def requirements(version: str) -> tuple[str, ...]:
    """What to install for a release."""
    return (f"wandb=={version}", *(_BEFORE_0_18 if ordered(version) < (0, 18) else _ALWAYS))


def ordered(version: str) -> tuple[int, ...]:
    """A version as numbers, which compare as versions do."""
    return tuple(int(part) for part in version.split("."))
