"""The kinds of environments that a program can run in. Alone, because every command loads it."""

ENVIRONMENT_KINDS = (
    "none", "venv", "uv", "conda", "pixi", "modules",
    "apptainer", "shifter", "podman-hpc", "pyxis", "charliecloud",
)  # fmt: skip
CONTAINER_KINDS = ENVIRONMENT_KINDS[6:]
