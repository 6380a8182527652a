"""What is said and asked before a submission: previews, questions, refusals. No Slurm is needed."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from runyard.actions.submit import node_line
from runyard.actions.submitting.description import advise, describe
from runyard.actions.submitting.submission import Submission
from runyard.config.request import Agents, Request, Staging
from runyard.home import Home
from tests.conftest import RunRunyard, run_runyard
from tests.launch.planning import planned, request
from tests.node.terminals import RUNYARD, Terminal

# Says what a real one says when it takes a job; only whether it is called matters here.
SBATCH = "#!/bin/sh\ncat >>'{0}'; echo 7\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "cats"
    folder.mkdir()
    (folder / "train.py").write_text("print('hello')\n")
    grid = {"lr": {"values": [1, 2, 3]}, "bs": {"values": [16, 32]}}
    file = {"program": "train.py", "method": "grid", "parameters": grid}
    (folder / "sweep.yaml").write_text(json.dumps(file))
    return folder


@pytest.fixture
def slurm(tmp_path: Path) -> tuple[dict[str, str], Path]:
    """A stand-in for sbatch, and where it writes what it was sent."""
    folder, sent = tmp_path / "bin", tmp_path / "sent"
    folder.mkdir()
    for name, text in (("sbatch", SBATCH.format(sent)), ("scontrol", "#!/bin/sh\n")):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}, sent


def test_a_job_with_a_name_of_its_own_is_described_with_all_else() -> None:
    named, usual = (describe(planned(extra=extra)) for extra in (("--job-name=mine",), ()))
    assert "--nodes=1" in usual
    assert named == usual


def test_a_dry_run_needs_no_cluster_and_makes_nothing(
    runyard: RunRunyard, state_folder: Home, project: Path
) -> None:
    shown = runyard("submit", "--dry-run", "--seeds", "5", "-g", "2", "-t", "1-00:00:00",
                    "--cluster", "plai", "--", "python", "train.py", cwd=project,
                    env={"SCRATCH": "/scratch/kim"})  # fmt: skip
    assert shown.returncode == 0, shown.stderr
    assert "#SBATCH --array=1-5\n" in shown.stdout
    assert "#SBATCH --gres=gpu:2\n" in shown.stdout
    assert "#SBATCH --time=1-00:00:00\n" in shown.stdout
    assert not state_folder.path.exists()


def test_without_a_word_a_job_is_short_and_has_no_gpu_and_a_log_of_its_number(
    runyard: RunRunyard, state_folder: Home, project: Path
) -> None:
    shown = runyard("submit", "--dry-run", "--", "python", "train.py", cwd=project).stdout
    assert "#SBATCH --time=0-01:00:00\n" in shown
    assert not re.search(r"#SBATCH --(gres|gpus|mem|error)", shown)  # Memory is the site's usual.
    assert re.search(r"#SBATCH --output=/.*[/-]%j\.log\n", shown)
    # A guide's ten minutes and 5 GB are two words.
    words = ("-t", "10m", "--memory", "5G", "--sbatch=--error=errors/%j.txt")
    asked = runyard("submit", "--dry-run", *words, "--", "python", "train.py", cwd=project)
    assert "#SBATCH --time=0-00:10:00\n" in asked.stdout
    assert "#SBATCH --mem=5120M\n" in asked.stdout
    assert "--error" not in asked.stdout
    assert "--error=errors/%j.txt is left out" in asked.stderr


def test_four_ranks_of_a_perlmutter_node_in_a_shifter_image(
    runyard: RunRunyard, project: Path
) -> None:
    """The header that NERSC's example of DDP has, from Perlmutter's profile and these words."""
    (project / "runyard.yaml").write_text(
        "profile: {containers: {gpu_flag: '--module=gpu,nccl-2.15'}}\n"
    )

    def dry_run(*more: str) -> str:
        shown = runyard(
            "submit", "--dry-run", "--no-check", "--cluster", "perlmutter", "-a", "m1234", "-t",
            "01:00:00", "--distributed", "srun", "--environment", "shifter",
            "-s", "nersc/pytorch:ngc-22.09-v0", *more, "--", "python", "train.py",
            cwd=project, env={"SCRATCH": "/scratch/kim"},
        )  # fmt: skip
        assert shown.returncode == 0, shown.stderr
        return shown.stdout

    script = dry_run()
    assert "#!/bin/bash -l\n" in script  # A login shell.
    asked = {
        "time": "0-01:00:00", "constraint": "gpu", "account": "m1234", "qos": "regular",
        "nodes": "1", "ntasks-per-node": "4", "gpus-per-node": "4", "cpus-per-task": "32",
        "image": "nersc/pytorch:ngc-22.09-v0", "module": "gpu,nccl-2.15",
    }  # fmt: skip
    header = dict(re.findall(r"^#SBATCH --([\w-]+)=(.*)$", script, re.MULTILINE))
    assert {name: header.get(name) for name in asked} == asked
    assert header["output"].endswith("%j-%N.log")
    for variable in ('HDF5_USE_FILE_LOCKING="FALSE"', 'NCCL_NET_GDR_LEVEL="PHB"'):
        assert f"export {variable}\n" in script
    # Against hangs at scale, on several nodes only.
    at_scale = 'export FI_MR_CACHE_MONITOR="userfaultfd"\n'
    assert at_scale not in script
    assert at_scale in dry_run("-n", "2")


def test_the_first_command_of_all_may_be_a_submission_that_builds_an_environment(
    runyard: RunRunyard, state_folder: Home, project: Path, slurm: tuple[dict[str, str], Path]
) -> None:
    (project / "requirements.txt").touch()
    (project / "runyard.yaml").write_text("environment: {kind: venv, build: true}\n")
    environ, sent = slurm
    done = runyard("submit", "--yes", "--", "python", "train.py", cwd=project, env=environ)
    assert done.returncode == 0, done.stderr
    assert "the environment is built" in done.stderr
    assert "#SBATCH" in sent.read_text()


def test_a_program_that_is_not_there_does_not_wait_in_the_queue(
    runyard: RunRunyard, project: Path, slurm: tuple[dict[str, str], Path]
) -> None:
    environ, sent = slurm
    words = ("submit", "--yes", "--", "python", "trian.py")
    done = runyard(*words, cwd=project, env=environ)
    assert done.returncode == 2
    assert f"trian.py: is not in {project}" in done.stderr
    assert not sent.exists()
    # What the node makes, or a shell finds, is its own affair.
    shown = runyard("submit", "--dry-run", "--", "python", "${SLURM_TMPDIR}/made.py", cwd=project)
    assert shown.returncode == 0, shown.stderr
    assert "is not in" not in shown.stderr


def test_as_many_agents_as_a_grid_has_points(
    runyard: RunRunyard, state_folder: Home, project: Path
) -> None:
    shown = runyard("sweep", "sweep.yaml", "--on", "slurm", "--dry-run", cwd=project)
    assert "#SBATCH --array=1-6\n" in shown.stdout
    few = runyard("sweep", "sweep.yaml", "--on", "slurm", "--agents", "30", "--at-once", "5",
                  "--dry-run", cwd=project)  # fmt: skip
    assert "#SBATCH --array=1-30%5\n" in few.stdout


def test_no_is_an_answer_and_numbers_are_asked_for(
    state_folder: Home,
    project: Path,
    slurm: tuple[dict[str, str], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    env, sent = slurm
    monkeypatch.chdir(project)
    with Terminal([*RUNYARD, "sweep", "sweep.yaml", "--on", "slurm"], env=env) as terminal:
        terminal.expect(re.escape("how many agents? [6]"))
        terminal.type("many\n")
        terminal.expect(re.escape("is no whole number"))
        terminal.type("4\n")
        terminal.expect(re.escape("an array of 4 tasks"))
        terminal.expect(re.escape("submit this? [Y/n]"))
        terminal.type("n\n")
        terminal.expect(re.escape("nothing was submitted"))
        assert terminal.wait() == 1
    assert not sent.exists()
    assert not state_folder.path.exists()


def test_a_sweep_without_an_end_asks_how_many_too(
    state_folder: Home,
    project: Path,
    slurm: tuple[dict[str, str], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(project)
    words = [*RUNYARD, "sweep", "sweep.yaml", "--on", "slurm", "--method", "random"]
    with Terminal(words, env=slurm[0]) as terminal:
        terminal.expect(re.escape("how many agents? [1]"))
        terminal.type("3\n")
        terminal.expect(re.escape("an array of 3 tasks"))
        terminal.type("n\n")
        assert terminal.wait() == 1


def test_yes_answers_and_what_slurm_took_is_told(
    runyard: RunRunyard, state_folder: Home, project: Path, slurm: tuple[dict[str, str], Path]
) -> None:
    env, sent = slurm
    done = runyard("submit", "--yes", "--", "python", "train.py", cwd=project, env=env)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "7\n"
    assert sent.read_text().startswith("#!/bin/bash\n#SBATCH --job-name=run-cats\n")
    for words in ("runyard status", "runyard logs", "runyard cancel"):
        assert words in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--gpu", "1", "--", "true"], "has no option '--gpu'"),
        (["--nope", "--", "true"], "has no option '--nope'"),
        (["--gpus", "many", "--", "true"], "'many'"),
        (["--", "python", "t.py", "--api-key", "0123456789abcdef"], "looks like a secret"),
        (["--", "env", "WANDB_API_KEY=0123456789", "python"], "looks like a secret"),
        (["--on", "here", "--", "true"], "runyard run -- true"),
        ([], "which program?"),
    ],
)
def test_what_is_wrong_is_refused_before_anything_is_made(
    runyard: RunRunyard, state_folder: Home, project: Path, words: list[str], said: str
) -> None:
    done = runyard("submit", *words, cwd=project)
    assert done.returncode == 2
    assert said in done.stderr
    assert not state_folder.path.exists()


@pytest.mark.parametrize("words", [("-W", "torchrun"), ("--nodes", "2")])
def test_what_takes_srun_says_how_to_get_an_allocation(
    state_folder: Home, project: Path, words: tuple[str, ...]
) -> None:
    done = run_runyard("sweep", "sweep.yaml", "--cpus", "2", *words, cwd=project)
    assert done.returncode == 2
    assert "takes srun, which works inside a job only" in done.stderr
    assert "add --on slurm; or get an allocation to try it in:  runyard shell" in done.stderr
    assert not state_folder.path.exists()


def test_an_option_for_the_cluster_is_not_passed_over_here(
    runyard: RunRunyard, state_folder: Home, project: Path
) -> None:
    for words in (("sweep", "sweep.yaml", "--cpus", "2"), ("run", "--cpus", "2", "--", "true")):
        done = runyard(*words, cwd=project)
        assert done.returncode == 2
        assert "--cpus 2 is for the cluster" in done.stderr
        assert "--on slurm" in done.stderr
    assert not state_folder.path.exists()


def test_submit_runs_what_the_projects_file_says(
    runyard: RunRunyard, state_folder: Home, project: Path
) -> None:
    (project / "runyard.yaml").write_text("sweep: sweep.yaml\nresources: {time: 3h}\n")
    shown = runyard("submit", "--dry-run", "--cpus", "3", cwd=project)
    assert shown.returncode == 0, shown.stderr
    assert "#SBATCH --array=1-6\n" in shown.stdout
    assert "#SBATCH --cpus-per-task=3\n" in shown.stdout
    assert "#SBATCH --time=0-03:00:00\n" in shown.stdout
    (project / "runyard.yaml").write_text("command: python train.py --lr 1\n")
    shown = runyard("submit", "--dry-run", cwd=project)
    assert "#SBATCH --job-name=run-cats\n" in shown.stdout


def test_another_program_takes_the_place_of_the_one_in_the_file(
    runyard: RunRunyard, state_folder: Home, project: Path
) -> None:
    (project / "other.py").write_text("lr = bs = 0\n")
    shown = runyard("sweep", "sweep.yaml", "--set", "program=other.py", "--dry-run", cwd=project)
    assert "python other.py --bs=16 --lr=1" in shown.stdout


def test_a_sweep_file_that_is_not_valid_is_refused_with_its_line(
    runyard: RunRunyard, state_folder: Home, project: Path
) -> None:
    (project / "bad.yaml").write_text("method: grid\nparameters:\n  lr: {valuess: [1]}\n")
    done = runyard("sweep", "bad.yaml", "--on", "slurm", cwd=project)
    assert done.returncode == 2
    assert re.search(r"bad\.yaml:3", done.stderr)
    assert not state_folder.path.exists()


def test_words_reach_the_node_as_they_are_but_for_its_variables() -> None:
    assert node_line(["python", "a b", "it's"]) == """python 'a b' 'it'"'"'s'"""
    assert node_line(["--data", "${SLURM_TMPDIR}/d", "$HOME"]) == (
        """--data "${SLURM_TMPDIR}/d" '$HOME'"""
    )
    assert node_line(['${scratch_dir}/"x" `y` $z']) == '"${scratch_dir}/\\"x\\" \\`y\\` \\$z"'


def test_source_dir_is_the_projects_absolute_root(runyard: RunRunyard, project: Path) -> None:
    """Also where the command is typed in a folder below; with a copy of the code, the copy's."""
    (project / "runyard.yaml").write_text("command: python train.py\n")
    below = project / "scripts"
    below.mkdir()
    (below / "own.py").touch()

    def show(*words: str) -> str:
        dry = ("submit", "--dry-run", "--cluster", "plai")
        return runyard(*dry, *words, cwd=below, env={"SCRATCH": "/scratch/kim"}).stdout

    own = ("--", "python", "own.py")
    for words, work in (((), project), (own, below)):
        shown = show("--no-snapshot", *words)
        assert f"export source_dir={project}\n" in shown
        assert f"cd {work} || " in shown
        assert "export project_name=cats " in shown
    for words, behind in (((), ""), (own, "/scripts")):
        shown = show(*words)
        (source,) = re.findall(r"export source_dir=(\S+)\n", shown)
        assert Path(source).is_absolute()
        assert f"cd {source}{behind} || " in shown


def advice_for(asked: Request, trials: int | None = None) -> str:
    made = planned(asked)
    submission = Submission(
        plan=made,
        request=asked,
        home=Home(Path("/home/kim/.runyard")),
        make=lambda _agents: made,
        settle=lambda _dry: made.wrapping,
        again=lambda: submission,
        trials=trials,
    )
    return " ".join(advise(submission.plan, submission.request, submission.trials, submission.copy))


def test_advice_of_an_old_hand() -> None:
    array = Agents(count=4)
    several = advice_for(request(agents=array, time=86400.0))
    assert several.startswith("short jobs start sooner and can cost less")
    assert advice_for(request(agents=array, time=3600.0)) == ""
    # One long job for many trials, where an array of short ones would do.
    alone = Agents(count=1)
    assert "each of the 30 trials" in advice_for(request(agents=alone, time=86400.0), trials=30)
    assert advice_for(request(agents=alone, time=86400.0), trials=1) == ""
    assert advice_for(request(agents=alone, time=3600.0), trials=30) == ""
    staged = replace(request(), staging=Staging(data=("images",)))
    assert advice_for(staged) == (
        "scratch may be slow for many small reads and writes: read the data in ${SLURM_TMPDIR}; "
        "checkpoints and large files stay in ${scratch_dir}"
    )
