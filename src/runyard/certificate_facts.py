"""The names and the expiry date of a certificate, and whether it expires soon."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

_SOON = datetime.timedelta(days=21)


@dataclass(frozen=True)
class CertificateFacts:
    """The host names that it is valid for, and when it expires."""

    names: tuple[str, ...]
    ends_at: datetime.datetime


def describe(pem: str) -> CertificateFacts:
    """For the first certificate in a PEM text. ImportError if cryptography is not installed."""
    from cryptography import x509

    certificate = x509.load_pem_x509_certificate(pem.encode())
    try:
        alternatives = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        names = tuple(alternatives.value.get_values_for_type(x509.DNSName))
    except x509.ExtensionNotFound:
        names = ()
    return CertificateFacts(names, certificate.not_valid_after_utc)


def ending_soon(what: str, ends_at: datetime.datetime) -> str | None:
    left = ends_at - datetime.datetime.now(datetime.timezone.utc)
    if left > _SOON:
        return None
    if left < datetime.timedelta(0):
        return f"the certificate {what} ended on {ends_at:%Y-%m-%d}: browsers refuse it"
    return f"the certificate {what} ends on {ends_at:%Y-%m-%d}, in {left.days} days"
