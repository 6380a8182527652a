"""Why tests of W&B's fail here, where their own words do not tell; see `wandb_system_tests.py`."""

from __future__ import annotations

import re

# Groups of tests for what this server has not.
NOT_BUILT = {
    "test_launch": "W&B Launch (queues, agents that build images) is not built: jobs go to Slurm "
    "by `runyard submit`",
    "test_registries": "registries belong to organizations of W&B's cloud, which are not built",
    "test_automations": "automations of W&B's cloud are not built",
}

_INTERNET = "it fetches a file from W&B's own store on the internet"

# By the name of the test, without its parameters.
REASONS = {
    "test_reference_download": _INTERNET,
    "test_get_artifact_obj_by_name": _INTERNET,
    "test_table_slice_reference_artifact": _INTERNET,
    "test_media_obj_referential_equality": _INTERNET,
    "test_wandb_artifact_config_update": _INTERNET,
    "test_wandb_artifact_config_set_item": _INTERNET,
    "test_wandb_artifact_init_config": _INTERNET,
    "test_client_sharp": "it builds a C# program with .NET packages from the internet",
    "test_flow_pytorch": "it needs torchvision; for torch without CUDA it is in PyTorch's own "
    "registry only",
    "test_organization_by_name": "organizations belong to W&B's cloud",
}


# By words of the failure, the first that fits; they say more than the test's name.
BY_WORDS = (
    (
        r"AttributeError: (module|type object|<module) '[\w.]*[Ww]andb[\w.]*'( from '[^']*'>)?"
        r" has no attribute|ImportError: cannot import name '\w+' from 'wandb\b"
        r"|ModuleNotFoundError: No module named 'wandb\b",
        "it uses a function or a class of the client's that is not in this release",
    ),
    # CatBoost's own examples.
    (r"failed to download from", "it fetches a data set from the internet"),
)


def explain(test: str, text: str) -> str | None:
    """Why a test failed, in our words; None where we do not know more than its text says."""
    by_words = next((reason for words, reason in BY_WORDS if re.search(words, text)), None)
    return by_words or REASONS.get(test.partition("[")[0])
