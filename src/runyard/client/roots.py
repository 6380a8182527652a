"""What stock clients are to trust where our server speaks TLS with an authority of its own.

A file with the certificates that the program would trust anyway, and ours. wandb's Go process reads
`SSL_CERT_FILE`; its Python part, through requests, reads `REQUESTS_CA_BUNDLE`. Other downloads of
the program go by the same variables, so nothing may be missing from the file.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from runyard.home import Discovery, Home

# By variable: others that say the same to the same programs.
_VARIABLES = {
    "SSL_CERT_FILE": ("SSL_CERT_FILE",),
    "REQUESTS_CA_BUNDLE": ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
}
_SYSTEM = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Ubuntu, Arch
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  # Fedora, Red Hat
    "/etc/pki/tls/certs/ca-bundle.crt",  # older ones of these
    "/etc/ssl/ca-bundle.pem",  # openSUSE
    "/etc/ssl/cert.pem",  # Alpine, macOS
)
_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"


def trust_environment(
    home: str, authority: str, environ: Mapping[str, str], extra: str = ""
) -> dict[str, str]:
    """Variables to set on top of `environ`; none where the server speaks plain HTTP.

    `extra` names a file with the authority of a certificate of the user's own.
    """
    if not authority:
        return {}
    ours = [*_certificates(authority), *(_read(extra) if extra else ())]
    variables = {}
    for variable, names in _VARIABLES.items():
        chosen = next((environ[name] for name in names if environ.get(name)), None)
        trusted = _read(chosen) if chosen is not None else _system_certificates()
        if chosen is not None and os.path.isfile(chosen) and set(ours) <= set(trusted):
            variables[variable] = chosen  # Ours of before, or a user's that has ours in it.
        else:
            variables[variable] = _write_bundle(home, [*trusted, *ours])
    return variables


def trust_of(home: Home, discovery: Discovery, environ: Mapping[str, str]) -> dict[str, str]:
    """The same for a state folder's server."""
    return trust_environment(str(home.path), discovery.authority, environ, discovery.tls_ca)


def _system_certificates() -> list[str]:
    """Of the system, and of Python's certifi, which may be the newer of the two."""
    import importlib.util
    import ssl

    places = [ssl.get_default_verify_paths().openssl_cafile, *_SYSTEM]
    bundle = next((place for place in places if os.path.isfile(place)), None)
    certifi = importlib.util.find_spec("certifi")
    folders = (certifi.submodule_search_locations if certifi else None) or []
    files = [bundle, *(f"{folder}/cacert.pem" for folder in folders)]
    return [text for file in files if file is not None for text in _read(file)]


def _read(place: str) -> list[str]:
    """The certificates of a file; or of a folder's files, which requests takes too."""
    files = [place]
    if os.path.isdir(place):
        files = [f"{place}/{name}" for name in sorted(os.listdir(place))]
    certificates: list[str] = []
    for file in files:
        try:
            with open(file, encoding="utf-8", errors="replace") as opened:
                certificates += _certificates(opened.read())
        except OSError:  # Not there: then the program would not have found it either.
            continue
    return certificates


def _certificates(text: str) -> Iterator[str]:
    """Each as it stands between its lines; what else stands in the file is for people."""
    for part in text.split(_BEGIN)[1:]:
        body, end, _ = part.partition(_END)
        if end:
            letters = "".join(body.split())
            lines = (letters[start : start + 64] for start in range(0, len(letters), 64))
            yield "\n".join((_BEGIN, *lines, _END, ""))


def _write_bundle(home: str, certificates: list[str]) -> str:
    """A file that is named after its contents: written once, and right for as long as it is."""
    import hashlib
    from pathlib import Path

    from runyard.home import write_whole

    text = "".join(dict.fromkeys(certificates))
    name = hashlib.sha256(text.encode()).hexdigest()[:16]
    path = Path(home, "tls", f"trusted-{name}.pem")
    if not path.exists():
        path.parent.mkdir(mode=0o700, exist_ok=True)
        write_whole(path, text)
    return str(path)
