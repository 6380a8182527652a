"""The kinds of environments of a program. A separate module, because every command loads it."""

ENVIRONMENT_KINDS = (
    "none", "venv", "uv", "conda", "pixi", "modules",
    "apptainer", "shifter", "podman-hpc", "podman", "pyxis", "charliecloud",
)  # fmt: skip
CONTAINER_KINDS = ENVIRONMENT_KINDS[6:]
