"""What stock clients are told to trust: everything that they trusted before, and our authority."""

from __future__ import annotations

import datetime
import ssl
from pathlib import Path

import pytest

from runyard.client import roots
from runyard.client.roots import trust_environment
from runyard.server.http.certificates import make_authority

NOW = datetime.datetime.now(datetime.timezone.utc)
OURS = make_authority("ours", NOW).certificate
SYSTEMS = make_authority("the system's", NOW).certificate
USERS = make_authority("the user's", NOW).certificate


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "state").mkdir()
    (tmp_path / "system.pem").write_text(f"# for people\n{SYSTEMS}")
    monkeypatch.setattr(roots, "_SYSTEM", ("/nowhere", str(tmp_path / "system.pem")))
    paths = ssl.get_default_verify_paths()._replace(openssl_cafile="/nowhere")
    monkeypatch.setattr(ssl, "get_default_verify_paths", lambda: paths)
    return str(tmp_path / "state")


def names(path: str) -> set[str]:
    context = ssl.create_default_context(cafile=path)
    subjects = [dict(part[0] for part in found["subject"]) for found in context.get_ca_certs()]  # type: ignore[misc]
    return {str(subject.get("commonName")) for subject in subjects}


def test_nothing_is_set_for_plain_http(home: str) -> None:
    assert trust_environment(home, "", {"SSL_CERT_FILE": "/mine"}) == {}


def test_the_systems_and_ours(home: str) -> None:
    variables = trust_environment(home, OURS, {})
    assert set(variables) == {"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"}
    for path in variables.values():
        assert {"ours", "the system's"} <= names(path)
        assert len(names(path)) > 50  # Python's certifi, which programs go by.
        assert Path(path).is_relative_to(home)
    # Written once, also by the agents of hundreds of nodes.
    before = Path(variables["SSL_CERT_FILE"]).stat()
    assert trust_environment(home, OURS, {}) == variables
    assert Path(variables["SSL_CERT_FILE"]).stat().st_ino == before.st_ino


def test_what_the_user_chose_is_the_base(home: str, tmp_path: Path) -> None:
    mine = tmp_path / "mine.pem"
    mine.write_text(USERS)
    variables = trust_environment(home, OURS, {"SSL_CERT_FILE": str(mine)})
    assert names(variables["SSL_CERT_FILE"]) == {"ours", "the user's"}
    assert "the system's" in names(variables["REQUESTS_CA_BUNDLE"])
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        found = trust_environment(home, OURS, {name: str(mine)})["REQUESTS_CA_BUNDLE"]
        assert names(found) == {"ours", "the user's"}


def test_a_folder_of_certificates_is_read(home: str, tmp_path: Path) -> None:
    folder = tmp_path / "certificates"
    folder.mkdir()
    (folder / "a.0").write_text(USERS)
    (folder / "b.0").write_text(SYSTEMS)
    found = trust_environment(home, OURS, {"REQUESTS_CA_BUNDLE": str(folder)})
    assert names(found["REQUESTS_CA_BUNDLE"]) == {"ours", "the user's", "the system's"}


def test_a_shell_that_has_it_already_keeps_its_file(home: str) -> None:
    first = trust_environment(home, OURS, {})
    assert trust_environment(home, OURS, first) == first


def test_the_authority_of_a_certificate_of_ones_own_is_in_it(home: str, tmp_path: Path) -> None:
    root = tmp_path / "root.pem"
    root.write_text(USERS)
    found = trust_environment(home, OURS, {}, str(root))["SSL_CERT_FILE"]
    assert {"ours", "the user's", "the system's"} <= names(found)
