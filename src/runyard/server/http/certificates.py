"""The private authority of a state folder, and the certificates that it signs.

Its key never leaves the folder. `cryptography` is imported here alone, and only where TLS was asked
for.
"""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from runyard.errors import ServerError

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

_AUTHORITY_DAYS, _SERVER_DAYS = 3650, 365
# Clocks of two machines differ.
_BEFORE = datetime.timedelta(days=1)


def require_package() -> None:
    try:
        import cryptography.x509  # noqa: F401 - Whether it is there.
    except ImportError:
        raise ServerError(
            "TLS needs the package cryptography, which is not installed here",
            mend="pip install 'runyard[tls]'",
        ) from None


@dataclass(frozen=True)
class Pair:
    """A certificate and its private key, both PEM."""

    certificate: str
    key: str


def make_authority(name: str, now: datetime.datetime) -> Pair:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    key = _new_key()
    subject = _named(name)
    made = (
        _begun(subject, subject, key.public_key(), now, _AUTHORITY_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    return _as_pair(made, key)


def sign_server(
    authority: Pair, names: Sequence[str], addresses: Sequence[str], now: datetime.datetime
) -> Pair:
    """A certificate for these host names and addresses; with the authority's behind it."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    issuer = x509.load_pem_x509_certificate(authority.certificate.encode())
    issuer_key, key = _read_key(authority.key), _new_key()
    subjects: list[x509.GeneralName] = [x509.DNSName(name) for name in names]
    subjects += [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
    made = (
        _begun(_named(names[0]), issuer.subject, key.public_key(), now, _SERVER_DAYS)
        .add_extension(x509.SubjectAlternativeName(subjects), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(
            x509.ExtendedKeyUsage([x509.oid.ExtendedKeyUsageOID.SERVER_AUTH]), critical=False
        )
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()),
            critical=False,
        )
        .sign(issuer_key, hashes.SHA256())
    )
    return _as_pair(made, key)


def is_whole(authority: Pair, until: datetime.datetime) -> bool:
    """Whether certificate and key belong together and are good until then."""
    from cryptography import x509

    try:
        certificate = x509.load_pem_x509_certificate(authority.certificate.encode())
        key = _read_key(authority.key)
    except (ValueError, TypeError):
        return False
    good_until: datetime.datetime = certificate.not_valid_after_utc
    return bool(certificate.public_key() == key.public_key()) and good_until > until


def server_end(now: datetime.datetime) -> datetime.datetime:
    """When a certificate ends that is signed now."""
    return now + datetime.timedelta(days=_SERVER_DAYS)


def _new_key() -> ec.EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    # Understood by every TLS library in use, and quick: a handshake costs well under a millisecond.
    return ec.generate_private_key(ec.SECP256R1())


def _read_key(pem: str) -> ec.EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = serialization.load_pem_private_key(pem.encode(), None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError("the authority's key is of another kind than we make")
    return key


def _begun(
    subject: x509.Name,
    issuer: x509.Name,
    public_key: ec.EllipticCurvePublicKey,
    now: datetime.datetime,
    days: int,
) -> x509.CertificateBuilder:
    from cryptography import x509

    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BEFORE)
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
    )


def _named(name: str) -> x509.Name:
    from cryptography import x509

    # X.509 has room for 64 characters there; what clients compare are the alternative names.
    return x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, name[:64])])


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _as_pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
    from cryptography.hazmat.primitives import serialization as forms

    return Pair(
        certificate.public_bytes(forms.Encoding.PEM).decode(),
        key.private_bytes(
            forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.NoEncryption()
        ).decode(),
    )
