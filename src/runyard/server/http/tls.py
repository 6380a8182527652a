"""TLS of the server: which certificate it shows to whom, and that none of its own ever ends.

Our own clients ask for `SERVER_NAME` and get the certificate of the private authority, and so does
whoever comes by an address or a name of this machine. A certificate of the user's own is shown to
those who come by one of its names: browsers, and programs of other people.
"""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import logging
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from runyard.certificate_facts import describe, ending_soon
from runyard.errors import ServerError
from runyard.home import Discovery, Home, write_whole
from runyard.server.http import certificates
from runyard.server.http.certificates import Pair
from runyard.server.http.listening import Listening, own_addresses
from runyard.trust import SERVER_NAME

log = logging.getLogger("runyard.server")

_LOOK_SECONDS = 12 * 3600.0


@dataclass(frozen=True)
class TlsOptions:
    """What the command line asks for; `on` is None where all stays as it was."""

    on: bool | None = None
    cert: str = ""
    key: str = ""
    ca: str = ""

    def over(self, before: Discovery | None) -> TlsOptions:
        """Together with what the server did last time."""
        if self.on is not None and (self.cert or not self.on):
            return self
        if before is None or not before.authority:
            return self
        return TlsOptions(True, before.tls_cert, before.tls_key, before.tls_ca)


class Tls:
    """The contexts of a server, and the files behind them."""

    def __init__(self, home: Home, wish: TlsOptions, listening: Listening) -> None:
        certificates.require_package()
        self._home = home
        self.wish = wish
        self._listening = listening
        home.tls.mkdir(mode=0o700, exist_ok=True)
        self.authority = _authority(home)
        self.context = _new_context()
        self.context.sni_callback = self._choose
        self._given: ssl.SSLContext | None = None
        self._given_names: tuple[str, ...] = ()
        self.note: str | None = None
        """What is worth telling whoever starts the server."""
        self._load_own()
        if wish.cert:
            self._load_given()

    async def keep(self) -> None:
        """A server runs for months: renew what ends, and take up a certificate that was renewed."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            try:
                self._load_own()
                if self.wish.cert:
                    self._load_given()
            except (OSError, ServerError) as error:
                log.error("the certificate stays as it is: %s", error)

    def _load_own(self) -> None:
        """Signed anew each time: the machine may have other names and addresses by now."""
        names, addresses = names_of(self._listening)
        made = certificates.sign_server(self.authority, names, addresses, _now())
        path = self._home.tls / "server.pem"
        write_whole(path, made.certificate + made.key)
        self.context.load_cert_chain(path)

    def _load_given(self) -> None:
        cert, key = self.wish.cert, self.wish.key
        context = _new_context()
        try:
            context.load_cert_chain(cert, key or None)
            about = describe(Path(cert).read_text())
        except (OSError, ValueError) as error:
            raise ServerError(
                f"cannot use the certificate {cert}",
                said=error,
                mend="--tls-cert FILE and --tls-key FILE are PEM files that belong together; "
                "`runyard server restart --no-tls`, then `--tls`, goes without them",
            ) from error
        self._given, self._given_names = context, about.names
        self.note = ending_soon(cert, about.ends_at)

    def _choose(self, tls: ssl.SSLObject, name: str | None, _context: ssl.SSLContext) -> None:
        if name and self._given is not None and is_covered(name, self._given_names):
            tls.context = self._given


def is_covered(name: str, names: Sequence[str]) -> bool:
    """Whether a certificate with these names, `*.` in front of some, is good for a host."""
    name = name.lower().rstrip(".")
    parent = "*." + name.partition(".")[2]
    return any(known.lower() in (name, parent) for known in names)


def names_of(listening: Listening) -> tuple[list[str], list[str]]:
    """Host names and addresses under which this server is reached."""
    named = [SERVER_NAME, "localhost", socket.gethostname(), socket.getfqdn(), listening.name]
    own_names = ["127.0.0.1", "::1", *own_addresses(listening)]
    names: dict[str, None] = {}
    addresses: dict[str, None] = {}
    for text in (*named, *own_names):
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            if text.isascii() and text:
                names[text.lower()] = None
        else:
            if not address.is_unspecified:
                addresses[str(address)] = None
    return list(names), list(addresses)


def _authority(home: Home) -> Pair:
    """The one in the folder, or a new one where there is none that outlives a new certificate."""
    certificate, key = home.tls / "authority.pem", home.tls / "authority.key"
    try:
        known = Pair(certificate.read_text(), key.read_text())
    except (FileNotFoundError, UnicodeDecodeError):
        known = None
    if known and certificates.is_whole(known, certificates.server_end(_now())):
        return known
    made = certificates.make_authority(f"runyard of {socket.gethostname()}", _now())
    write_whole(key, made.key)
    write_whole(certificate, made.certificate)
    log.info("made a private authority in %s", home.tls)
    return made


def _new_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(["http/1.1"])
    return context


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.timezone.utc)
