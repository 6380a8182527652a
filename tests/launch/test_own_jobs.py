"""Jobs of runyard's own: the server, a build. What a site wants of jobs, it wants of these too."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from runyard.clusters.load import load_profile
from runyard.clusters.profile import Profile, Submission
from runyard.config.request import Request, Resources
from runyard.errors import ConfigError
from runyard.home import Home
from runyard.launch.building import Builder, build_job
from runyard.launch.own_jobs import own_script
from runyard.launch.serving import server_job
from runyard.schedulers.slurm.scheduler import Slurm
from tests.packages import find_shells

HOME = Home(Path("/home/ada/it's state"))
BUILDER = Builder("/opt/run yard/python", "/opt/src", HOME.path)


def request_for(profile: Profile, **resources: str) -> Request:
    return Request(folder=Path("/p"), profile=profile, resources=Resources(**resources))  # type: ignore[arg-type]


def server_script(request: Request, seconds: float = 86_400.0) -> str:
    python, source = BUILDER.python, BUILDER.source
    job = server_job(HOME, request, python=python, source=source, seconds=seconds)
    return own_script(job, request, Path("/home/ada/jobs/server-1"), Slurm({}))


def test_the_servers_script_can_be_read() -> None:
    text = server_script(request_for(load_profile("generic")))
    assert text.startswith("#!/bin/bash\n#SBATCH --job-name=runyard-server\n")
    for line in (
        "#SBATCH --time=1-00:00:00",
        "#SBATCH --cpus-per-task=2",
        "#SBATCH --mem=4096M",
        "#SBATCH --signal=B:TERM@60",
        "#SBATCH --output=/home/ada/jobs/server-1/%j.log",
        "exec '/opt/run yard/python' -m runyard server run --listen cluster",
    ):
        assert f"{line}\n" in text
    for shell in find_shells():
        subprocess.run([shell, "-n"], input=text, text=True, check=True)


def test_a_build_has_one_task_and_ten_gigabytes() -> None:
    text = own_script(
        build_job(BUILDER, Path("/p/build.json")), request_for(load_profile("generic")),
        Path("/j"), Slurm({}),
    )  # fmt: skip
    assert "#SBATCH --mem=10240M\n" in text
    assert "#SBATCH --ntasks-per-node=1\n" in text
    assert "#SBATCH --gres" not in text
    assert "env build --plan /p/build.json\n" in text


def test_what_a_site_demands_and_forbids_holds_for_them_too() -> None:
    strict = replace(
        load_profile("generic"),
        submission=Submission(
            mandatory={"account": "jobs are paid by accounts"},
            forbidden={"memory": "nodes are whole"},
        ),
    )
    with pytest.raises(ConfigError, match="account"):
        server_script(request_for(strict))
    text = server_script(request_for(strict, account="def-ada"))
    assert "--account=def-ada" in text
    assert "--mem" not in text


def test_no_job_is_longer_than_the_site_lets_it_be() -> None:
    generic = load_profile("generic")
    short = replace(generic, limits=replace(generic.limits, longest=4 * 3600.0))
    assert "#SBATCH --time=0-04:00:00\n" in server_script(request_for(short))


def test_the_servers_job_gets_the_options_of_the_submission() -> None:
    request = request_for(load_profile("generic"))
    options = ["--tls-cert", "/our lab/cert.pem"]
    job = server_job(HOME, request, python="p", source="s", seconds=3600.0, options=options)
    assert job.lines[-1].endswith("server run --listen cluster --tls-cert '/our lab/cert.pem'")
