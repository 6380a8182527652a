"""runyard takes an experiment that works on a laptop to a Slurm cluster and back."""

from runyard.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runyard.report.export import dataframe
    from runyard.scripting.jobs import FunctionJob, Job, JobError, job
    from runyard.scripting.submit import map, submit
    from runyard.scripting.sweep import Sweep, sweep
    from runyard.scripting.watch import NobodyWorks

__all__ = [
    "FunctionJob",
    "Job",
    "JobError",
    "NobodyWorks",
    "Sweep",
    "__version__",
    "dataframe",
    "job",
    "map",
    "submit",
    "sweep",
]

# Looked up when it is wanted: every command imports this module, and must be quick.
_WHERE = {
    "FunctionJob": "scripting.jobs",
    "Job": "scripting.jobs",
    "JobError": "scripting.jobs",
    "NobodyWorks": "scripting.watch",
    "Sweep": "scripting.sweep",
    "dataframe": "report.export",
    "job": "scripting.jobs",
    "map": "scripting.submit",
    "submit": "scripting.submit",
    "sweep": "scripting.sweep",
}


def __getattr__(name: str) -> object:
    if name not in _WHERE:
        raise AttributeError(f"module 'runyard' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"runyard.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
