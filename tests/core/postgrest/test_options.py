"""Options from texts by key: values that cannot be used are refused with their key."""

from __future__ import annotations

import pytest

from rowcall.core.postgrest.options import InvalidOptionError, options_of

KEY = "openapi-server-proxy-uri"


@pytest.mark.parametrize(
    "text", ["/api", "example.com", "ftp://a", "http://", "http://a:b", "http://[::1", "http://a:0"]
)
def test_an_invalid_proxy_uri_is_refused(text: str) -> None:
    with pytest.raises(InvalidOptionError, match=KEY):
        options_of({"db-schemas": "api", KEY: text})


@pytest.mark.parametrize("text", ["https://a.example:8443/base", "http://[::1]:3000", "http://a"])
def test_a_valid_proxy_uri_is_accepted(text: str) -> None:
    assert options_of({"db-schemas": "api", KEY: text}).openapi_server_proxy_uri == text
