"""Signatures of requests to S3 and compatible stores: AWS Signature Version 4, in the header Authorization.

https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html. Implemented here because botocore, the
library for it, takes 28 MB of memory of each worker and 34 MB on disk; the tests compare this code with Amazon's own
examples and with a server that checks signatures.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import quote

from rowcall.core.data.record import Record

ALGORITHM = "AWS4-HMAC-SHA256"


@dataclass(frozen=True, slots=True)
class Credentials(Record):
    """Credentials of an account of S3. session_token: of temporary credentials; None: they are permanent."""

    key_id: str
    secret: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)


def encoded_path(path: str) -> str:
    """Return the decoded path, percent-encoded as S3 expects it in signatures; slashes stay."""
    return quote(path, safe="/-_.~")


def encoded_query(query: Mapping[str, str]) -> str:
    """Return the query percent-encoded and sorted, as it is signed. query: decoded names and values."""
    pairs = sorted((quote(name, safe="-_.~"), quote(value, safe="-_.~")) for name, value in query.items())
    return "&".join(f"{name}={value}" for name, value in pairs)


def presigned_query(
    credentials: Credentials,
    region: str,
    now: datetime,
    host: str,
    path: str,
    seconds: int,
    query: Mapping[str, str],
) -> str:
    """Return the query, with a signature, of a URL with which any client may GET an object for a time.

    https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-query-string-auth.html. now: in UTC. host: as in the header
    Host. path: decoded, with a slash at the beginning. seconds: time for which the URL is valid. query: further
    parameters, decoded.
    """
    moment = now.strftime("%Y%m%dT%H%M%SZ")
    scope = f"{moment[:8]}/{region}/s3/aws4_request"
    parameters = {
        **query,
        "X-Amz-Algorithm": ALGORITHM,
        "X-Amz-Credential": f"{credentials.key_id}/{scope}",
        "X-Amz-Date": moment,
        "X-Amz-Expires": str(seconds),
        "X-Amz-SignedHeaders": "host",
    }
    if credentials.session_token is not None:
        parameters["X-Amz-Security-Token"] = credentials.session_token
    encoded = encoded_query(parameters)
    canonical = "\n".join(("GET", encoded_path(path), encoded, f"host:{host}", "", "host", "UNSIGNED-PAYLOAD"))
    return f"{encoded}&X-Amz-Signature={_signature(credentials, scope, moment, canonical)}"


def _signature(credentials: Credentials, scope: str, moment: str, canonical: str) -> str:
    text = "\n".join((ALGORITHM, moment, scope, hashlib.sha256(canonical.encode()).hexdigest()))
    key = f"AWS4{credentials.secret}".encode()
    for part in (*scope.split("/"), text):
        key = hmac.digest(key, part.encode(), "sha256")
    return key.hex()


def sign_headers(
    credentials: Credentials,
    region: str,
    now: datetime,
    method: str,
    host: str,
    path: str,
    query: Mapping[str, str],
    headers: Iterable[tuple[str, str]],
    payload_hash: str,
    service: str = "s3",
) -> list[tuple[str, str]]:
    """Return the headers to send, including those of the signature.

    Host is signed, but not returned, because the client adds it. now: in UTC. path: decoded. query: decoded names and
    values. headers: to send besides those of the signature; all are signed. payload_hash: SHA-256 of the body, in
    hexadecimal digits. service: of AWS, for which the signature is valid.
    """
    moment = now.strftime("%Y%m%dT%H%M%SZ")
    signed_headers = [*headers, ("x-amz-content-sha256", payload_hash), ("x-amz-date", moment)]
    if credentials.session_token is not None:
        signed_headers.append(("x-amz-security-token", credentials.session_token))
    fields = sorted((name.lower(), " ".join(value.split())) for name, value in (*signed_headers, ("host", host)))
    names = ";".join(name for name, _ in fields)
    canonical = "\n".join(
        (
            method,
            encoded_path(path),
            encoded_query(query),
            *(f"{name}:{value}" for name, value in fields),
            "",
            names,
            payload_hash,
        )
    )
    scope = f"{moment[:8]}/{region}/{service}/aws4_request"
    signature = _signature(credentials, scope, moment, canonical)
    authorization = f"{ALGORITHM} Credential={credentials.key_id}/{scope},SignedHeaders={names},Signature={signature}"
    return [*signed_headers, ("authorization", authorization)]
