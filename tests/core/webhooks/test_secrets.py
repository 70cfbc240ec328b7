"""Secrets of webhooks in the configuration."""

from __future__ import annotations

import pytest

from rowcall.core.endpoint.capabilities import WebhookScheme
from rowcall.core.webhooks.signatures import SecretError, check_secrets


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_é", "whpk_", "whsec_YWJj whsec_"])
def test_secret_without_a_key_is_refused(secret: str) -> None:
    with pytest.raises(SecretError):
        check_secrets(WebhookScheme.STANDARD, secret)
