"""What a user's program may import.

Owns checkpoints, time left, progress, ranks and parameters for the program's side. Standard library
only, and it works alone, as a plain local run, when nothing of runyard is around it.

    from runyard import train
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runyard.train.arrays import check_finite, histograms, named_arrays
    from runyard.train.checkpoints import Checkpoint
    from runyard.train.commands import command
    from runyard.train.errors import Damaged, NotFinite, TrainError
    from runyard.train.loop import steps
    from runyard.train.pace import progress
    from runyard.train.parameters import Params
    from runyard.train.ranks import Ranks, distributed
    from runyard.train.rehearsing import rehearsal
    from runyard.train.stopping import GO_ON, go_on, should_stop, time_left
    from runyard.train.sweeping import sweep_trial, swept_values, trial_name
    from runyard.train.torch_state import load_model

# Each name is fetched from its module when it is first used: importing this costs next to nothing.
_MODULES = {
    "arrays": ("check_finite", "histograms", "named_arrays"),
    "checkpoints": ("Checkpoint",),
    "commands": ("command",),
    "errors": ("Damaged", "NotFinite", "TrainError"),
    "loop": ("steps",),
    "pace": ("progress",),
    "parameters": ("Params",),
    "ranks": ("Ranks", "distributed"),
    "rehearsing": ("rehearsal",),
    "stopping": ("GO_ON", "go_on", "should_stop", "time_left"),
    "sweeping": ("sweep_trial", "swept_values", "trial_name"),
    "torch_state": ("load_model",),
}
_WHERE = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "GO_ON",
    "Checkpoint",
    "Damaged",
    "NotFinite",
    "Params",
    "Ranks",
    "TrainError",
    "check_finite",
    "command",
    "distributed",
    "go_on",
    "histograms",
    "load_model",
    "named_arrays",
    "progress",
    "rehearsal",
    "should_stop",
    "steps",
    "sweep_trial",
    "swept_values",
    "time_left",
    "trial_name",
]


def __getattr__(name: str) -> object:
    if name not in _WHERE:
        raise AttributeError(f"module 'runyard.train' has no attribute {name!r}")
    import importlib

    value: object = getattr(importlib.import_module(f"runyard.train.{_WHERE[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
