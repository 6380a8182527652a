"""How clients reach the server: TLS, its address behind a proxy."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from runyard.errors import StateError, UsageError
from runyard.home import Home, read_discovery


@dataclass(frozen=True)
class Access:
    """None: as last time. `tls_cert`, `tls_key` and `tls_ca` are the user's own."""

    tls: bool | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls_ca: Path | None = None
    url: str | None = None
    proxy: str | None = None

    def options(self) -> list[str]:
        """For the server's process, with whole paths: it runs elsewhere."""
        if self.tls_cert is None and (self.tls_key or self.tls_ca):
            raise UsageError("--tls-key and --tls-ca belong to --tls-cert", mend="give that, too")
        if self.tls_cert is not None and self.tls is False:
            raise UsageError(
                "--tls-cert and --no-tls contradict each other", mend="give one of them"
            )
        words = [] if self.tls is None else ["--tls" if self.tls else "--no-tls"]
        if self.tls_cert is not None:
            words = ["--tls"]
        for name, path in (("cert", self.tls_cert), ("key", self.tls_key), ("ca", self.tls_ca)):
            if path is not None:
                words += [f"--tls-{name}", os.path.abspath(path.expanduser())]  # noqa: PTH100 - Links stay.
        for name, value in (("url", self.url), ("proxy", self.proxy)):
            if value is not None:
                words += [f"--{name}", value]
        return words


def authority_of(home: Home) -> str:
    """The certificate of the private authority behind the server, as text."""
    discovery = read_discovery(home)
    if discovery is None or not discovery.authority:
        raise StateError(
            f"the server of {home.path} speaks plain HTTP", mend="runyard server restart --tls"
        )
    return discovery.authority
