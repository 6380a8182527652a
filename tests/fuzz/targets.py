"""Every target by its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.fuzz.engine import Target
from tests.fuzz.server import SERVER
from tests.fuzz.slurm_output import SlurmOutput
from tests.fuzz.user_files import FILES

TARGETS: Mapping[str, Callable[[], Target]] = {
    kind.name: kind for kind in (*SERVER, *FILES, SlurmOutput)
}
