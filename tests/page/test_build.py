"""What the page is built from, and that an installation can build it."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

from runyard.cli.catalog import COMMANDS

ROOT = Path(__file__).parent.parent.parent
APP = ROOT / "dashboard" / "app"


@pytest.fixture
def hook() -> ModuleType:
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_download_address_is_in_the_lock_file() -> None:
    text = (APP / "package-lock.json").read_text()
    assert "://" not in text
    packages = json.loads(text)["packages"]
    assert all("integrity" in entry for name, entry in packages.items() if name)


def test_nothing_of_the_page_comes_from_elsewhere() -> None:
    sources = [path for path in (APP / "src").rglob("*") if path.suffix in (".ts", ".tsx", ".css")]
    assert sources
    for path in [*sources, APP / "index.html"]:
        text = path.read_text().replace("http://www.w3.org/2000/svg", "")
        code = [
            line for line in text.splitlines() if not line.lstrip().startswith(("//", "*", "/*"))
        ]
        for line in code:
            assert "https://" not in line, path


def test_the_built_page_is_of_these_sources(hook: ModuleType) -> None:
    """`./test` installs, and installing builds; a checkout without its page has missed that."""
    static = ROOT / hook.STATIC
    if not (static / "index.html").exists():
        pytest.skip("the page is not built here: pip install -e .")
    first_load = [
        path
        for path in (static / "assets").glob("*.br")
        if path.name.startswith(("index", "Project-"))
    ]
    assert sum(path.stat().st_size for path in first_load) < 200_000


def test_the_sources_have_no_type_errors() -> None:
    """Vite drops types without reading them."""
    compiler = APP / "node_modules/typescript/bin/tsc"
    node = shutil.which("node")
    if node is None or not compiler.exists():
        pytest.skip("needs node, and what `npm ci` brings into dashboard/app")
    # What it knows of files that have not changed since, it does not find out again.
    words = ["--noEmit", "--incremental", "--tsBuildInfoFile", str(ROOT / ".cache/tsc.json")]
    done = subprocess.run([node, compiler, *words], cwd=APP, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_unchanged_sources_are_not_built_again(hook: ModuleType, tmp_path: Path) -> None:
    app = tmp_path / hook.APP
    app.mkdir(parents=True)
    (app / "main.ts").write_text("1")
    (app / "node_modules").mkdir()
    assert not hook.is_built(tmp_path)
    static = tmp_path / hook.STATIC
    static.mkdir(parents=True)
    (static / hook.STAMP).write_text(hook.sources_hash(tmp_path))
    assert hook.is_built(tmp_path)
    (app / "node_modules" / "new.js").write_text("not a source")
    assert hook.is_built(tmp_path)
    (app / "main.ts").write_text("2")
    assert not hook.is_built(tmp_path)


def test_a_failed_build_installs_without_the_page_and_says_why(
    hook: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / hook.APP).mkdir(parents=True)

    def fail(root: Path) -> None:
        raise subprocess.CalledProcessError(1, ["npm"], stderr="npm error network\nmore")

    monkeypatch.setattr(hook, "_run_node", fail)
    hook.build(tmp_path)
    why = (tmp_path / hook.STATIC / hook.WHY_NOT).read_text()
    assert why == "building it failed: npm error network"
    monkeypatch.setenv("RUNYARD_PAGE", "required")
    with pytest.raises(subprocess.CalledProcessError):
        hook.build(tmp_path)


def test_commands_that_the_page_names_exist() -> None:
    named = {
        (match[1], path.name)
        for path in (APP / "src").rglob("*.tsx")
        for match in re.finditer(r"(?<![\w./-])runyard ([a-z]+)", path.read_text())
    }
    assert len(named) > 10
    # "any runyard command": a sentence.
    known = {*COMMANDS, "command", "submitted"}
    assert [(name, file) for name, file in sorted(named) if name not in known] == []
