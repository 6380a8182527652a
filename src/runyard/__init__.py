"""runyard takes an experiment that works on a laptop to a Slurm cluster and back."""

from runyard.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runyard.inline import sweep
    from runyard.report.export import dataframe

__all__ = ["__version__", "dataframe", "sweep"]


def __getattr__(name: str) -> object:
    # Looked up when it is wanted: every command imports this module, and must be quick.
    if name == "dataframe":
        from runyard.report.export import dataframe

        return dataframe
    if name == "sweep":
        from runyard.inline import sweep

        return sweep
    raise AttributeError(f"module 'runyard' has no attribute {name!r}")
