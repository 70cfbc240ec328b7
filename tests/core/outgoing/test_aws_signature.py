"""Signature Version 4, compared with the examples of Amazon's documentation (sig-v4-header-based-auth)."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

import pytest

from rowcall.core.outgoing.aws_signature import Credentials, encoded_path, sign_headers

CREDENTIALS = Credentials("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
NOW = datetime(2013, 5, 24, tzinfo=UTC)
HOST = "examplebucket.s3.amazonaws.com"


@pytest.mark.parametrize(
    ("method", "path", "query", "headers", "body", "signature"),
    [
        (
            "GET",
            "/test.txt",
            {},
            [("Range", "bytes=0-9")],
            b"",
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
        ),
        (
            "PUT",
            "/test$file.text",
            {},
            [("Date", "Fri, 24 May 2013 00:00:00 GMT"), ("x-amz-storage-class", "REDUCED_REDUNDANCY")],
            b"Welcome to Amazon S3.",
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
        ),
        ("GET", "/", {"lifecycle": ""}, [], b"", "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
        (
            "GET",
            "/",
            {"prefix": "J", "max-keys": "2"},
            [],
            b"",
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
        ),
    ],
)
def test_signatures_equal_the_published_examples(
    method: str, path: str, query: dict[str, str], headers: list[tuple[str, str]], body: bytes, signature: str
) -> None:
    digest = hashlib.sha256(body).hexdigest()
    sent = dict(sign_headers(CREDENTIALS, "us-east-1", NOW, method, HOST, path, query, headers, digest))
    assert sent["authorization"].endswith(f"Signature={signature}")
    assert sent["x-amz-date"] == "20130524T000000Z"


def test_a_session_token_is_signed_too() -> None:
    temporary = Credentials("id", "secret", "token")
    sent = dict(sign_headers(temporary, "eu-west-1", NOW, "GET", HOST, "/", {}, [], hashlib.sha256(b"").hexdigest()))
    assert sent["x-amz-security-token"] == "token"
    assert "host;x-amz-content-sha256;x-amz-date;x-amz-security-token" in sent["authorization"]


def test_secrets_are_not_shown() -> None:
    assert "secret" not in repr(Credentials("id", "secret!", "token!")).replace("secret=", "")
    assert encoded_path("/a b/ä+~") == "/a%20b/%C3%A4%2B~"
