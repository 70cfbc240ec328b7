"""URLs of outgoing requests: parsing, refusals, and texts for logs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowcall.core.outgoing.address import BadUrlError, names_its_host, read_address, redirect_target, url_for_logs


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("http://Example.com", "http://example.com/"),
        ("HTTPS://example.com:443/a?b=c#d", "https://example.com/a?b=c"),
        ("http://example.com:8080?x", "http://example.com:8080/?x"),
        ("http://example.com/a b/ü?q=ä&p=%41%", "http://example.com/a%20b/%C3%BC?q=%C3%A4&p=%41%25"),
        ("http://[::1]:80/", "http://[::1]/"),
        ("http://[0:0::1]/", "http://[::1]/"),
        ("http://bücher.example/", "http://xn--bcher-kva.example/"),
        ("http://user:p%40ss@host/x", "http://host/x"),
        ("http://a_b.example/", "http://a_b.example/"),
        ('http://h/{"a":1}', "http://h/%7B%22a%22:1%7D"),
    ],
)
def test_a_url_is_parsed_and_normalized(text: str, url: str) -> None:
    assert read_address(text).url == url


@pytest.mark.parametrize(
    "text",
    [
        "", "x", "/path", "ftp://x/", "file:///etc/passwd", "http:///x", "http://", "http://a b/", "http://a@b@c/",
        "http://exa\\mple/", "http://h\\@evil/", "http://h:99999/", "http://h:0/", "http://h:x/", "http://h:٨٠/",
        "http://h/\r\nX: y",
        "http://h/\n", "http://[::1", "http://[1.2.3.4]x/", "http://%31/", "http://[v1.x]/", "http://-/",
    ],
)  # fmt: skip
def test_invalid_urls_are_refused(text: str) -> None:
    with pytest.raises(BadUrlError):
        read_address(text)


def test_user_and_password_are_separated_from_the_url() -> None:
    assert read_address("http://user:p%40ss@host/x").userinfo == "user:p@ss"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://u:secret@h/p?token=secret&page", "http://h/p?token=…&page"),
        ("/p?token=secret", "/p?token=…"),
        ("ftp://u:secret@h/?a=secret", "ftp://h/?a=…"),
    ],
)
def test_secrets_are_not_shown(text: str, shown: str) -> None:
    assert url_for_logs(text) == shown


@pytest.mark.parametrize(
    ("template", "named"),
    [
        ("https://h/x", True),
        ("https://h", True),
        ("https://h/{_a}", True),
        ("https://h?x={_a}", True),
        ("https://h:80/{_a}", True),
        ("https://h{_a}", False),
        ("https://h{_a}/", False),
        ("https://{_a}/", False),
        ("{_a}://h/", False),
        ("{_a}", False),
        ("https://h:{_p}/", False),
        ("https://{_u}@h/", False),
    ],
)
def test_templates_whose_host_no_value_can_change_are_recognised(template: str, named: bool) -> None:
    assert names_its_host(template) is named


@pytest.mark.parametrize(
    ("location", "url"),
    [("/b?c", "http://h:1/b?c"), ("b", "http://h:1/x/b"), ("//o/z", "http://o/z"), ("https://o", "https://o/")],
)
def test_a_relative_redirect_is_resolved(location: str, url: str) -> None:
    assert redirect_target(read_address("http://h:1/x/a?q"), location).url == url


@given(st.text(max_size=40))
def test_a_value_behind_a_literal_host_never_changes_the_host(value: str) -> None:
    try:
        address = read_address(f"https://example.com/{value}")
    except BadUrlError:
        return
    assert address.origin.host == "example.com"
    assert address.target.isascii()
    assert not set(address.target) & set(" \r\n\t")
