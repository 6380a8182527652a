"""What is on the machine: modules, CUDA, containers, scratch."""

from __future__ import annotations

from pathlib import Path

from runyard.clusters.asking import USUAL_SECONDS, Answer
from runyard.clusters.findings import Finding
from runyard.clusters.load import SHIPPED, load_profile
from runyard.clusters.site_checks import check_site

# As Lmod prints it on the Alliance's clusters; there is no module system here.
LMOD = """\
/cvmfs/soft.computecanada.ca/easybuild/modules/2023/x86-64-v3/Core:
cuda/11.4
cuda/12.2
/opt/modules/
cuda/12.6
cudacore/.12.2.2
"""
NVCC = "nvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release 12.2, V12.2.140\n"


def site(
    profile: str = "generic", texts: dict[str, str] | None = None, **environ: str
) -> dict[str, Finding]:
    def ask(*words: str, seconds: float = USUAL_SECONDS) -> Answer:
        """A stand-in for the site's commands: knows what it is given, and nothing else."""
        text = (texts or {}).get(words[0])
        return Answer(trouble=f"{words[0]} is not on the path") if text is None else Answer(text)

    found = check_site(load_profile(profile, folders=[SHIPPED]), ask, environ)
    return {one.name: one for one in found}


def test_cuda_of_the_site_and_of_this_shell() -> None:
    found = site(texts={"bash": LMOD, "nvcc": NVCC}, LMOD_CMD="/lmod", LMOD_VERSION="8.7", HOME="/")
    assert found["modules"].says == "Lmod 8.7"
    assert found["cuda"].says == (
        "modules cuda/11.4, cuda/12.2, cuda/12.6; nvcc of this shell is 12.2"
    )
    assert "cuda" not in site(HOME="/")


def test_containers_that_the_profile_wants(tmp_path: Path) -> None:
    program = tmp_path / "apptainer"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert site("claix-2023", PATH=str(tmp_path), HOME="/")["containers"].state == "ok"
    missing = site("claix-2023", PATH="/nowhere", HOME="/")["containers"]
    assert missing.state == "warn"
    assert site("narval", PATH="/nowhere")["containers"].says == (
        "apptainer, by `module load apptainer`"
    )


def test_scratch_is_there_and_can_be_written(tmp_path: Path) -> None:
    assert site("narval")["scratch"].state == "fail"
    good = site("perlmutter", SCRATCH=str(tmp_path))["scratch"]
    assert good.state == "ok"
    assert "files go after 56 days" in good.says
    assert "which is made when it is needed" in site(SCRATCH=str(tmp_path / "new"))["scratch"].says


def test_what_may_be_stored_is_said(tmp_path: Path) -> None:
    found = site("nibi", HOME="/", SCRATCH=str(tmp_path))
    assert found["quotas"].says == "you may store: scratch 1 TB, a soft limit"
    assert "quotas" not in site(HOME="/")
