"""Artifacts from program to program, with the stock client."""

from __future__ import annotations

import json
import os
import subprocess
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runyard.home import Home
from tests.conftest import run_runyard, server_pids
from tests.live.programs import PYTHON

pytestmark = pytest.mark.live

Program = Callable[..., Any]

MAKE_DATA = """
    with wandb.init(project="birds", job_type="make-data", id=sys.argv[1]) as run:
        data = wandb.Artifact("songs", "dataset", description="of birds", metadata={"count": 3})
        data.add_dir("songs")
        data = run.log_artifact(data, aliases=["latest", *sys.argv[2:]]).wait()
        tell(version=data.version, aliases=sorted(data.aliases))
"""
USE_DATA = """
    with wandb.init(project="birds", job_type="train", id=sys.argv[1]) as run:
        data = run.use_artifact(sys.argv[2])
        folder = Path(data.download(root="fetched"))
        files = {str(path.relative_to(folder)): path.read_bytes().hex()
                 for path in folder.rglob("*") if path.is_file()}
        told = dict(version=data.version, files=files, metadata=data.metadata)
    api = wandb.Api()
    data = api.artifact("birds/songs:latest")
    tell(**told, made_by=data.logged_by().id, used_by=[run.id for run in data.used_by()],
         made=[made.name for made in api.run("birds/maker").logged_artifacts()],
         used=[used.name for used in api.run("birds/trainer").used_artifacts()],
         job_type=api.run("birds/maker").job_type)
"""


@pytest.fixture(scope="module")
def yard(module_home: Home, module_environment: pytest.MonkeyPatch) -> Home:
    """One server for the module's tests, which their programs log to."""
    shown = run_runyard("env", "--json")
    assert shown.returncode == 0, shown.stderr
    for name, value in json.loads(shown.stdout).items():
        module_environment.setenv(name, value)
    module_environment.setenv("WANDB_SILENT", "true")
    return module_home


@pytest.fixture
def program(yard: Home, tmp_path: Path) -> Program:
    """Runs a program in this test's folder and answers what it told."""

    def run(text: str, *words: str, timeout: float = 600) -> Any:
        head = (
            "import json, os, sys, wandb\nfrom pathlib import Path\n"
            "def tell(**what): Path('told.json').write_text(json.dumps(what))\n"
        )
        file = tmp_path / "program.py"
        file.write_text(head + textwrap.dedent(text))
        done = subprocess.run(
            [PYTHON, str(file), *words],
            cwd=tmp_path, capture_output=True, text=True, timeout=timeout, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        told = tmp_path / "told.json"
        return json.loads(told.read_text()) if told.exists() else None

    return run


def _songs(folder: Path, **songs: bytes) -> None:
    for name, content in songs.items():
        path = folder / "songs" / f"{name}.wav"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)


def test_a_data_set_goes_from_the_run_that_made_it_to_the_one_that_trains(
    program: Program, tmp_path: Path
) -> None:
    wren, robin = os.urandom(300_000), b""
    _songs(tmp_path, wren=wren, robin=robin)
    (tmp_path / "songs" / "deep").mkdir()
    (tmp_path / "songs" / "deep" / "er.txt").write_bytes(b"still")
    made = program(MAKE_DATA, "maker", "clean")
    assert made == {"version": "v0", "aliases": ["clean", "latest"]}
    used = program(USE_DATA, "trainer", "songs:latest")
    assert used == {
        "version": "v0",
        "metadata": {"count": 3},
        "files": {"wren.wav": wren.hex(), "robin.wav": "", "deep/er.txt": b"still".hex()},
        "made_by": "maker",
        "used_by": ["trainer"],
        "made": ["songs:v0"],
        "used": ["songs:v0"],
        "job_type": "make-data",
    }


def test_only_changed_content_makes_a_new_version(program: Program) -> None:
    told = program("""
        def log(content, *aliases):
            Path("calls.csv").write_text(content)
            with wandb.init(project="birds") as run:
                calls = wandb.Artifact("calls", "dataset")
                calls.add_file("calls.csv")
                calls = run.log_artifact(calls, aliases=["latest", *aliases]).wait()
                return calls.version, sorted(calls.aliases)
        logged = log("one", "mine"), log("one", "again"), log("two")
        api = wandb.Api()
        names = ("latest", "mine", "again", "v0", "v1")
        tell(logged=logged,
             by_name={name: api.artifact(f"birds/calls:{name}").version for name in names},
             listed=[v.version for v in api.artifacts("dataset", "birds/calls", per_page=1)])
    """)
    assert told == {
        "logged": [
            ["v0", ["latest", "mine"]],
            ["v0", ["again", "latest", "mine"]],
            ["v1", ["latest"]],
        ],
        "by_name": {"latest": "v1", "mine": "v0", "again": "v0", "v0": "v0", "v1": "v1"},
        "listed": ["v1", "v0"],
    }


def test_a_model_is_a_versioned_artifact(program: Program, tmp_path: Path) -> None:
    (tmp_path / "net.pt").write_bytes(b"weights")
    told = program("""
        with wandb.init(project="birds") as run:
            run.log_model("net.pt", name="net", aliases=["good"])
        Path("net.pt").write_bytes(b"better weights")
        with wandb.init(project="birds") as run:
            run.log_model("net.pt", name="net")
        with wandb.init(project="birds") as run:
            good, latest = run.use_model("net:good"), run.use_model("net:latest")
            tell(good=Path(good).read_text(), latest=Path(latest).read_text())
    """)
    assert told == {"good": "weights", "latest": "better weights"}


def test_references_and_versions_that_build_on_others(program: Program, tmp_path: Path) -> None:
    (tmp_path / "big.csv").write_bytes(b"stays where it is")
    told = program("""
        def log(artifact):
            with wandb.init(project="birds") as run:
                return run.log_artifact(artifact).wait()
        api = wandb.Api()
        there = wandb.Artifact("there", "dataset")
        there.add_reference(Path("big.csv").resolve().as_uri(), name="big.csv")
        log(there)
        across = wandb.Artifact("across", "dataset")
        across.add_reference(api.artifact("birds/there:latest").get_entry("big.csv").ref_url(),
                             name="far.csv")
        log(across)
        for number in range(2):
            Path(f"part{number}").write_text(str(number))
            part = wandb.Artifact("parts", "dataset", incremental=True)
            part.add_file(f"part{number}")
            log(part)
        draft = api.artifact("birds/parts:v1").new_draft()
        Path("last").write_text("last")
        draft.add_file("last")
        log(draft)
        tell(there=Path(api.artifact("birds/there:latest").download(), "big.csv").read_text(),
             across=Path(api.artifact("birds/across:latest").download(), "far.csv").read_text(),
             parts=[sorted(api.artifact(f"birds/parts:v{n}").manifest.entries) for n in range(3)])
    """)
    assert told == {
        "there": "stays where it is",
        "across": "stays where it is",
        "parts": [["part0"], ["part0", "part1"], ["last", "part0", "part1"]],
    }


def test_tables_are_artifacts(program: Program) -> None:
    told = program("""
        with wandb.init(project="birds", id="tables") as run:
            run.log({"seen": wandb.Table(columns=["bird", "n"], data=[["wren", 2], ["jay", 1]])})
            kept = wandb.Artifact("kept", "dataset")
            kept.add(wandb.Table(columns=["page"], data=[[wandb.Html("<p>hi</p>")]]), "pages")
            run.log_artifact(kept).wait()
        api = wandb.Api()
        logged = {found.type: found for found in api.run("birds/tables").logged_artifacts()}
        tell(seen=logged["run_table"].get("seen").data,
             pages=[type(row[0]).__name__ for row in logged["dataset"].get("pages").data])
    """)
    assert told == {"seen": [["wren", 2], ["jay", 1]], "pages": ["Html"]}


def test_aliases_texts_links_and_deletion(program: Program) -> None:
    told = program("""
        blobs = Path(os.environ["RUNYARD_HOME"], "blobs")
        def stored():
            return len([path for path in blobs.rglob("*") if path.is_file()])
        before = stored()
        for number in range(2):
            Path("wren.wav").write_bytes(os.urandom(1000))
            with wandb.init(project="birds") as run:
                recording = wandb.Artifact("tape", "recording")
                recording.add_file("wren.wav")
                run.log_artifact(recording).wait()
        api = wandb.Api()
        counts = [stored() - before]
        version = api.artifact("birds/tape:v0")
        version.aliases.append("good")
        version.tags = ["heard"]
        version.metadata["count"] = 4
        version.description = "changed"
        version.save()
        version.link("birds/chosen", aliases=["pick"])
        api = wandb.Api()
        picked = api.artifact("birds/chosen:pick")
        version = api.artifact("birds/tape:good")
        told = dict(source=picked.source_name, tags=version.tags, count=version.metadata["count"],
                    description=version.description)
        try:
            version.delete()
        except Exception as error:
            told["refused"] = str(error)
        api.artifact("birds/tape:v1").delete(delete_aliases=True)
        counts.append(stored() - before)
        left = [version.version for version in wandb.Api().artifacts("recording", "birds/tape")]
        wandb.Api().artifact_type("recording", "birds").collection("tape").delete()
        tell(**told, left=left, stored=[*counts, stored() - before])
    """)
    assert "delete_aliases=True" in told.pop("refused")
    assert told == {
        "source": "tape:v0",
        "tags": ["heard"],
        "count": 4,
        "description": "changed",
        "left": ["v0"],
        "stored": [2, 1, 0],
    }


def test_a_deleted_run_takes_its_artifacts_with_it(program: Program) -> None:
    told = program("""
        for name in ("kept", "gone"):
            with wandb.init(project="birds", id=name) as run:
                nest = wandb.Artifact(f"nest-{name}", "nest")
                with nest.new_file("egg.txt") as file:
                    file.write(name)
                run.log_artifact(nest).wait()
        wandb.Api().run("birds/kept").delete()
        wandb.Api().run("birds/gone").delete(delete_artifacts=True)
        tell(left=[one.name for one in wandb.Api().artifact_type("nest", "birds").collections()
                   if len(list(one.artifacts()))])
    """)
    assert told == {"left": ["nest-kept"]}


@pytest.mark.clients
def test_a_file_beyond_the_clients_limit_for_one_piece(program: Program) -> None:
    """Clients cut files of 2 GiB and more, unless the server wants them whole, as ours does.

    RUNYARD_ALL_CLIENTS=1 takes one as large. Else a smaller one is fetched as those are.
    """
    size = (2 << 30) + 1 if os.environ.get("RUNYARD_ALL_CLIENTS") else (100 << 20) + 1
    told = program(
        """
        size = int(sys.argv[1])
        with open("large.bin", "wb") as file:
            file.write(os.urandom(1000))
            file.truncate(size - 4)
            file.seek(0, os.SEEK_END)
            file.write(os.urandom(4))
        with wandb.init(project="birds") as run:
            film = wandb.Artifact("film", "recording")
            film.add_file("large.bin", skip_cache=True, policy="immutable")
            run.log_artifact(film).wait()
        Path("large.bin").rename("sent.bin")
        found = wandb.Api().artifact("birds/film:latest")
        # In pieces of 100 MiB, which the client puts together.
        found.download(root=".", skip_cache=True, multipart=True)
        same = True
        with open("sent.bin", "rb") as sent, open("large.bin", "rb") as fetched:
            while piece := sent.read(1 << 24):
                same = same and piece == fetched.read(1 << 24)
            same = same and fetched.read() == b""
        Path("sent.bin").unlink()
        Path("large.bin").unlink()
        found.delete(delete_aliases=True)
        tell(size=found.size, same=same)
    """,
        str(size),
        timeout=600,
    )
    assert told == {"size": size, "same": True}


def test_a_server_killed_in_the_middle_of_an_upload_loses_nothing(
    program: Program, yard: Home, tmp_path: Path
) -> None:
    for number in range(60):
        _songs(tmp_path, **{f"song{number}": os.urandom(20_000)})
    pids = ",".join(map(str, server_pids(yard)))
    told = program(
        """
        import subprocess, threading, time
        def arrived():
            return sum(path.is_file() for path in Path(sys.argv[2]).rglob("*"))
        before = arrived()
        def kill():
            while arrived() == before:
                time.sleep(0.01)
            for pid in sys.argv[1].split(","):
                os.kill(int(pid), 9)
            # Any command brings the server back.
            subprocess.run([sys.executable, "-m", "runyard", "runs"], stdout=subprocess.DEVNULL)
        with wandb.init(project="birds") as run:
            data = wandb.Artifact("survivor", "dataset")
            data.add_dir("songs")
            threading.Thread(target=kill).start()
            version = run.log_artifact(data).wait().version
            fetched = Path(run.use_artifact("survivor:latest").download(root="fetched"))
        same = [path.read_bytes() == Path("songs", path.name).read_bytes()
                for path in fetched.iterdir()]
        tell(version=version, files=len(same), same=all(same))
        """,
        pids,
        str(yard.blobs),
    )
    assert told == {"version": "v0", "files": 60, "same": True}
    assert pids != ",".join(map(str, server_pids(yard)))
