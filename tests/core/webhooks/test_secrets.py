"""Secrets of webhooks in the configuration."""

from __future__ import annotations

import base64

import pytest

from rowcall.core.endpoint.capabilities import WebhookScheme
from rowcall.core.webhooks.signatures import SecretError, check_secrets


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_é", "whpk_", "whsec_YWJj whsec_"])
def test_secret_without_a_key_is_refused(secret: str) -> None:
    with pytest.raises(SecretError):
        check_secrets(WebhookScheme.STANDARD, secret)


def test_keys_of_the_wrong_kind_are_refused() -> None:
    """Everyone may know the public key, and could sign with it."""
    key = base64.b64encode(bytes(range(32))).decode()
    for kind, signs in (("whpk_", True), ("whsk_", False)):
        assert check_secrets(WebhookScheme.STANDARD, kind + key, signs=not signs) == (kind + key,)
        with pytest.raises(SecretError, match=f"has a key {kind}"):
            check_secrets(WebhookScheme.STANDARD, kind + key, signs=signs)
