"""Find secrets in generated documents and client code, as findings of the audit. Findings never contain the values."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from urllib.parse import urlsplit

from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.operations.audit import Finding, Severity

SHORTEST = 6
"""Minimum length of a secret in characters; a shorter value occurs in texts by chance."""

Secret = tuple[str, str]
"""A secret: its name in findings, and its value."""


_SERVICE_ONLY = ("path", "command")
"""Suffixes of upload settings whose values are folders or SQL; other values may occur in any text."""


def comment_secrets(endpoint: Endpoint, names_a_secret: Callable[[str], bool]) -> Iterator[Secret]:
    """Yield the parts of an endpoint's annotations that only the service may see: passwords, SQL, passwords in URLs,
    folders.

    names_a_secret: returns whether a header or setting with this name has a value that must not be published.
    """
    options = endpoint.options
    about = f"the comment of {endpoint.name}"
    if options.basic_auth is not None:
        yield from ((f"a password of basic_auth in {about}", password) for _, password in options.basic_auth.users)
        if options.basic_auth.command:
            yield f"basic_auth_command in {about}", options.basic_auth.command
    yield from ((f"the expression of {name} in {about}", text) for name, text in options.expressions)
    settings = () if options.upload is None else options.upload.settings
    for name, text in (*options.headers, *options.custom, *settings):
        if names_a_secret(name) or name.endswith(_SERVICE_ONLY):
            yield f"{name} in {about}", text
    for forwarding in (options.proxy, options.proxy_out):
        if forwarding is not None and forwarding.url is not None:
            yield from ((f"the address of a proxy in {about}", part) for part in _credentials(forwarding.url))


def _credentials(url: str) -> Iterator[str]:
    try:
        password = urlsplit(url).password
    except ValueError:
        return
    if password:
        yield password


def published_secrets(documents: Iterable[tuple[str, str]], secrets: Iterable[Secret]) -> Iterator[Finding]:
    """Yield one finding for each document and each secret that it contains, as it is or as in a JSON string. Secrets of
    less than `SHORTEST` characters are ignored.

    documents: names and texts.
    """
    long_secrets = [(what, value) for what, value in dict.fromkeys(secrets) if len(value) >= SHORTEST]
    for name, text in documents:
        for what, value in long_secrets:
            if value in text or json.dumps(value, ensure_ascii=False)[1:-1] in text:
                yield Finding(
                    Severity.HIGH,
                    "published-secret",
                    name,
                    f"the document contains {what}",
                    "remove it from comments, parameter defaults and sources of routines, and change the secret",
                )
