"""Python starts with this where `LIGHT_STARTS` is set: tests start it thousands of times.

Half of what a short program with a wandb client costs is work that no test looks at. `_begin` and
`_CHANGES` say which, and leave it out. runyard's own processes start as they do at a user's.
"""

from __future__ import annotations

import gc
import os
import sys
from importlib.machinery import PathFinder

TYPE_CHECKING = False  # Every Python here starts with this, and most import no typing.
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

    Execute = Callable[[ModuleType], None]

_OWN = ("runyard", "warm_server.py")
# They run the tests: what is in their environment is in everybody's.
_TESTS = ("pytest", "suite.py", "import sys;exec(eval(sys.stdin.readline()))")


def _begin(words: list[str]) -> None:
    if any(word.startswith(_OWN) or word.endswith(_OWN) for word in words):
        return
    gc.set_threshold(50000, 20, 100)
    # pydantic reads the sources of classes for descriptions of their fields, and the metadata of
    # every installed package to look for plugins. No test needs either.
    _replace("pydantic._internal._docs_extraction", "extract_docstrings_from_cls", {})
    _replace("pydantic.plugin._loader", "get_plugins", ())
    if not any(word.endswith(_TESTS) for word in words):
        # The client lists every package that is installed here.
        os.environ.setdefault("WANDB_X_SAVE_REQUIREMENTS", "false")
        sys.meta_path.insert(0, _Finder)


def _replace(name: str, function: str, answer: object) -> None:
    """Put a stand-in for a module: its one function always returns the same."""
    module = type(sys)(name)
    vars(module)[function] = lambda *_words, **_named: answer
    sys.modules.setdefault(name, module)


def _keep_from_collector(module: ModuleType, execute: Execute) -> None:
    """The garbage collector neither runs during the import nor looks at its objects afterwards."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        execute(module)
    finally:
        gc.freeze()
        if enabled:
            gc.enable()


def _look_before_reading(module: ModuleType, execute: Execute) -> None:
    """`wandb.init` imports yaml for a settings file, and only then sees that there is no file."""
    execute(module)
    read: Any = getattr(module, "dict_from_config_file", None)

    def read_if_there(filename: str, must_exist: bool = False) -> Any:
        from pathlib import Path  # By now wandb has imported it.

        return read(filename, must_exist) if must_exist or Path(filename).exists() else None

    if read:
        vars(module)["dict_from_config_file"] = read_if_there


def _apply_staged_inputs(module: ModuleType, execute: Execute) -> None:
    """`wandb.init` imports all of `wandb.sdk.launch` to apply inputs that the program staged there.

    As long as the program itself has not imported it, no inputs are staged.
    """
    execute(module)
    apply: Any = getattr(module.Run, "_detect_and_apply_job_inputs", None)

    def apply_if_staged(run: object) -> None:
        if "wandb.sdk.launch.inputs.internal" in sys.modules:
            apply(run)

    if apply:
        module.Run._detect_and_apply_job_inputs = apply_if_staged


def _build_on_first_use(module: ModuleType, execute: Execute) -> None:
    """Set pydantic's `defer_build` for every model: most are never used."""
    execute(module)
    vars(module).get("config_defaults", {})["defer_build"] = True


def _record_nothing(module: ModuleType, execute: Execute) -> None:
    """Without error reporting it records nothing, but would still import requests."""
    execute(module)
    if os.environ.get("WANDB_ERROR_REPORTING") == "false" and hasattr(module, "disable"):
        module.disable()


def _compile_nothing(module: ModuleType, execute: Execute) -> None:
    """The first optimizer imports torch's compiler (900 modules), only to be left out by it."""
    execute(module)

    def leave_as_it_is(function: Any = None, recursive: bool = True) -> Any:
        del recursive
        return function or leave_as_it_is

    vars(module)["_disable_dynamo"] = leave_as_it_is


def _step_without_compiler(module: ModuleType, execute: Execute) -> None:
    """So does its first step, to tell the compiler where it begins and ends."""
    execute(module)

    def use_grad_for_differentiable(step: Any) -> Any:
        from functools import wraps

        @wraps(step)
        def step_with_grad(self: Any, *words: Any, **named: Any) -> Any:
            with module.torch.set_grad_enabled(self.defaults["differentiable"]):
                return step(self, *words, **named)

        return step_with_grad

    if hasattr(module, "_use_grad_for_differentiable"):
        vars(module)["_use_grad_for_differentiable"] = use_grad_for_differentiable


# What happens when a module of that name is imported. Releases that lack a module are unaffected.
_CHANGES: dict[str, Callable[[ModuleType, Execute], None]] = {
    # They bring 100,000 objects and 250,000. When Python exits it collects garbage several times,
    # which would take 0.1 s of CPU for wandb's, 0.35 s for torch's.
    "wandb": _keep_from_collector,
    "torch": _keep_from_collector,
    "torch._compile": _compile_nothing,
    "torch.optim.optimizer": _step_without_compiler,
    "wandb.sdk.wandb_run": _apply_staged_inputs,
    "wandb.sdk.lib.config_util": _look_before_reading,
    "wandb.analytics.opentelemetry.opentelemetry_proxy": _record_nothing,
    "pydantic._internal._config": _build_on_first_use,
}


class _Finder:
    """Finds modules where Python would, and hands those in `_CHANGES` to their function."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        change = _CHANGES.get(name)
        spec = PathFinder.find_spec(name, path, target) if change else None
        if change and spec and spec.loader:
            execute = spec.loader.exec_module
            vars(spec.loader)["exec_module"] = lambda module: change(module, execute)
        return spec


if __name__ == "light_starts":
    _begin(sys.orig_argv)
