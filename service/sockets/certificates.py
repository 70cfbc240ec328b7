"""Load certificates from PEM or PKCS #12 files, and private keys from these or from DER files, as PEM (server-2).

The supervisor reads and decrypts them once. Workers get the PEM texts through files in memory, so that a key that is
encrypted on disk is never stored there unencrypted, and a replacement of a worker needs no access to the files.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes, PublicKeyTypes
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_der_private_key,
    load_pem_private_key,
    pkcs12,
)

from rowcall.service.startup_error import StartupError

_LEAST_RSA_BITS = 2048


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """Configured paths of a certificate and its key. name: the configuration key of the section. key_path: None: the
    key is in the file at `path`. password: of the key; None: it has none.
    """

    name: str
    path: str
    key_path: str | None = None
    password: str | None = None

    @classmethod
    def of(cls, name: str, section: Mapping[str, object]) -> CertificateFiles:
        """Return the paths in a configuration section. name: the configuration key of the section. Raises StartupError
        for a section without a file.
        """
        texts = {key.casefold(): str(text) for key, text in section.items() if text not in (None, "")}
        if "path" not in texts:
            store = " (there is no store of certificates to look in)" if {"subject", "store"} & texts.keys() else ""
            raise StartupError(f"{name}: Path must name a .pem, .crt or .pfx file{store}")
        return cls(name, texts["path"], texts.get("keypath"), texts.get("password"))


@dataclass(frozen=True, slots=True, repr=False)
class Certificate:
    """A certificate chain and its private key, as PEM. chain: the certificate and its issuers.

    The key is not encrypted.
    """

    chain: bytes
    key: bytes


def load_certificate(files: CertificateFiles) -> Certificate:
    """Load a certificate with its private key.

    Raises StartupError if a file cannot be read or has no certificate or key, if the password is missing or wrong, if
    the key is of an unsuitable kind or length, or if key and certificate do not match. The message names the
    configuration key and the file, and never contains the password.
    """
    data = _content(f"{files.name}:Path", files.path)
    key_data = _content(f"{files.name}:KeyPath", files.key_path) if files.key_path else data
    password = files.password.encode() if files.password else None
    if b"-----BEGIN" in data:
        chain = _chain(files, data)
        key = _with_startup_errors(files, lambda: _private_key(key_data, password))
    else:
        chain, key = _with_startup_errors(files, lambda: _from_pkcs12(data, password))
    _check(files, chain, key)
    return Certificate(
        b"".join(certificate.public_bytes(Encoding.PEM) for certificate in chain),
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    )


def _content(key: str, path: str) -> bytes:
    """Return the content of a file. Raises StartupError with `key`, the configuration key of the path."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise StartupError(f"{key}: {path} cannot be read: {error.strerror or error}") from None


def _chain(files: CertificateFiles, data: bytes) -> list[x509.Certificate]:
    """Return the certificates in PEM data. Raises StartupError if there are none, or if they cannot be read."""
    try:
        return x509.load_pem_x509_certificates(data)
    except ValueError as error:
        what = "holds no certificate, but a private key" if b"PRIVATE KEY" in data else f"holds none: {error}"
        raise StartupError(f"{files.name}:Path: {files.path} {what}") from None


_Opened = TypeVar("_Opened")


def _with_startup_errors(files: CertificateFiles, load: Callable[[], _Opened]) -> _Opened:
    """Return what `load` returns. Its ValueError, TypeError or UnsupportedAlgorithm becomes a StartupError in terms of
    configuration keys.
    """
    try:
        return load()
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise StartupError(_reason(files, error)) from None


def _private_key(data: bytes, password: bytes | None) -> PrivateKeyTypes:
    """Return the private key in PEM or DER data. A password for an unencrypted key is ignored. Raises ValueError,
    UnsupportedAlgorithm, and TypeError for an encrypted key without a password."""
    load = load_pem_private_key if b"-----BEGIN" in data else load_der_private_key
    try:
        # The password may be set for another environment.
        return load(data, None)
    except TypeError:
        return load(data, password)


def _from_pkcs12(data: bytes, password: bytes | None) -> tuple[list[x509.Certificate], PrivateKeyTypes]:
    """Return the certificate with its issuers, and its private key. Raises ValueError for other data or a wrong
    password.
    """
    key, leaf, others = pkcs12.load_key_and_certificates(data, password)
    if key is None or leaf is None:
        raise ValueError("the file holds no certificate with its private key")
    return [leaf, *others], key


def _reason(files: CertificateFiles, error: Exception) -> str:
    """Return the error message in terms of configuration keys, since the messages of the library name its functions.
    error: of loading the key.
    """
    where = files.key_path or files.path
    key = f"{files.name}:{'KeyPath' if files.key_path else 'Path'}"
    if isinstance(error, TypeError):
        return f"{files.name}:Password must open the private key in {where}, which is encrypted"
    if "assword" in str(error) or "decrypt" in str(error).lower():
        return f"{files.name}:Password does not open the private key in {where}"
    if files.key_path is None:
        return f"{key}: {where}: no private key in it that can be used; KeyPath names another file ({error})"
    return f"{key}: {where}: no private key in it that can be used ({error})"


def _check(files: CertificateFiles, chain: list[x509.Certificate], key: PrivateKeyTypes) -> None:
    """Raise StartupError if TLS servers do not use keys of this kind or length, or if the key is not that of the first
    certificate.
    """
    if not isinstance(key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey):
        raise StartupError(f"{files.name}: the private key is of a kind that TLS servers do not use")
    if isinstance(key, rsa.RSAPrivateKey) and key.key_size < _LEAST_RSA_BITS:
        raise StartupError(f"{files.name}: an RSA key needs {_LEAST_RSA_BITS} bits; this one has {key.key_size}")
    if not chain or _public(chain[0].public_key()) != _public(key.public_key()):
        where = files.key_path or files.path
        raise StartupError(
            f"{files.name}: the private key in {where} is not the one of the certificate in {files.path}"
        )


def _public(key: PublicKeyTypes) -> bytes:
    """Return the DER form of a public key of `cryptography`."""
    encoded: bytes = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return encoded


class PemFile:
    """A PEM text that workers read from `path`; they must inherit `descriptor`. Construction raises `OSError`.

    It is a file in memory if the system supports that, otherwise a temporary file that only this user can read and that
    `close` deletes.
    """

    def __init__(self, text: bytes) -> None:
        self._name: str | None = None
        if hasattr(os, "memfd_create"):
            self.descriptor = os.memfd_create("rowcall-tls", 0)
            self.path = f"/proc/self/fd/{self.descriptor}"
        else:
            self.descriptor, self._name = tempfile.mkstemp(prefix="rowcall-tls-")
            self.path = self._name
        os.write(self.descriptor, text)

    def close(self) -> None:
        os.close(self.descriptor)
        if self._name is not None:
            with contextlib.suppress(OSError):
                os.unlink(self._name)
