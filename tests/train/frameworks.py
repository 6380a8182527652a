"""torch and JAX for the tests that need them, each in an environment beside this one's packages."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

from tests.environments import CACHE, ensure, pip_install

ROOT = Path(__file__).parents[2]
# On Linux the builds for the CPU alone: the others are several gigabytes. Where the index has none,
# the tests say so and are skipped.
_TORCH = "torch==2.13.0+cpu" if sys.platform == "linux" else "torch==2.13.0"
REQUIREMENTS = {
    "torch": (_TORCH, "matplotlib", "lightning"),
    "keras": ("keras",),
    "transformers": ("transformers", "accelerate"),
    "integrations": (
        _TORCH,
        "transformers",
        "accelerate",
        "keras",
        "xgboost",
        "lightgbm",
        "catboost",
        "scikit-learn",
        "stable-baselines3",
        "hydra-core",
        "optuna",
        "optuna-integration",
        "tensorboard",
    ),
    # wandb's own callbacks for Keras want TensorFlow.
    "tensorflow": ("tensorflow", "wandb"),
    # Its torchvision wants another torch.
    "ultralytics": ("ultralytics", "wandb"),
    "notebook": ("ipykernel", "nbclient"),
    "jax": ("jax", "equinox", "diffrax", "optax", "matplotlib"),
}
_ON_TORCH = ("keras", "transformers", "integrations")


def ensure_framework(name: str) -> Path:
    """The Python that has torch or JAX, and everything that this Python has."""

    def install(python: Path) -> None:
        # numpy, wandb and the rest are here already: the environment looks here after itself.
        (site,) = python.parents[1].glob("lib/python*/site-packages")
        beside = [sysconfig.get_path("purelib")]
        if name in _ON_TORCH:  # On torch, which has an environment already.
            beside += map(
                str, ensure_framework("torch").parents[1].glob("lib/python*/site-packages")
            )
        (site / "beside.pth").write_text("\n".join(beside) + "\n")
        pip_install(python, name, REQUIREMENTS[name])

    return ensure(CACHE / "frameworks" / name, REQUIREMENTS[name], install)


def program_environment(**more: str) -> dict[str, str]:
    """The environment of a program under test: this checkout's runyard, few threads, no W&B."""
    # torch without compiled modules takes three times as long to start.
    inherited = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return {
        **inherited,
        "PYTHONPYCACHEPREFIX": str(CACHE / "frameworks" / "pycache"),
        "PYTHONPATH": str(ROOT / "src"),
        "OMP_NUM_THREADS": "1",
        "MPLBACKEND": "agg",
        "JAX_PLATFORMS": "cpu",
        **more,
    }


def run_program(
    python: Path | str, program: Path, *words: str, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, whatever that is."""
    return subprocess.run(
        [str(python), str(program), *words],
        env=program_environment(**more),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
