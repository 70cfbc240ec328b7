"""URLs of outgoing requests: parsed once, strictly, and shown without secrets.

An ambiguous URL is refused, not guessed at: which host is called must not depend on the parser of the text (RFC 3986,
section 7).
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote, unquote

from rowcall.core.data.record import Record

DEFAULT_PORTS = {"http": 80, "https": 443}

_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<rest>[^#]*)(?:#.*)?", re.DOTALL)
_AUTHORITY = re.compile(
    r"(?:(?P<userinfo>[^@]*)@)?(?P<host>\[[0-9A-Fa-f:.]+\]|[^:@\[\]]+)(?::(?P<port>[0-9]{0,5}))?", re.DOTALL
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_HOST = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?\.?")
_NAMED = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#{}]+[/?#]")
_SAFE = "!$%&'()*+,-./:;=?@_~"
_SEPARATOR = re.compile(r"[/\\]")
_LONE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")


class BadUrlError(ValueError):
    """The URL is invalid. The message says why, without secrets."""


class Origin(NamedTuple):
    """Scheme, host and port of a server."""

    scheme: str
    host: str
    """Lower case, ASCII; an IPv6 address without its brackets."""
    port: int

    @property
    def authority(self) -> str:
        """Host and port as in the header Host."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Address(Record):
    """An absolute URL."""

    origin: Origin
    target: str
    """Path and query as they are sent: ASCII, beginning with `/`."""
    userinfo: str | None = None
    """User and password, decoded."""

    @property
    def url(self) -> str:
        """The URL as text, without userinfo."""
        return f"{self.origin.scheme}://{self.origin.authority}{self.target}"

    @property
    def shown(self) -> str:
        """The URL for logs and messages: without userinfo, and without the values of the query."""
        return f"{self.origin.scheme}://{self.origin.authority}{without_values(self.target)}"


def read_address(text: str) -> Address:
    """Parse an absolute http or https URL. Blanks around it and its fragment are ignored.

    Raises:
        BadUrlError: the URL is invalid or has another scheme.
    """
    text = text.strip(" ")
    if _CONTROL.search(text):
        raise BadUrlError("the URL holds a line end or another control character")
    match = _URL.fullmatch(text)
    if match is None:
        raise BadUrlError(
            "the URL is not absolute: it has to begin with http:// or https://, or with / for an endpoint"
        )
    scheme = match["scheme"].lower()
    if scheme not in DEFAULT_PORTS:
        raise BadUrlError(f"the scheme {scheme} is neither http nor https")
    authority = _AUTHORITY.fullmatch(match["authority"])
    if authority is None or "\\" in match["authority"]:
        raise BadUrlError("the URL has no usable host")
    port = int(authority["port"]) if authority["port"] else DEFAULT_PORTS[scheme]
    if not 0 < port < 65_536:
        raise BadUrlError(f"{port} is no port")
    origin = Origin(scheme, _host(authority["host"]), port)
    userinfo = authority["userinfo"]
    return Address(origin, request_target(match["rest"]), None if userinfo is None else unquote(userinfo))


def request_target(text: str) -> str:
    """Return path and query as they are sent: percent-encoded where necessary, with a slash at the beginning. Existing
    percent-encoding stays; a `%` that begins none is encoded."""
    if not text.startswith("/"):
        text = f"/{text}"
    return quote(_LONE_PERCENT.sub("%25", text), safe=_SAFE)


def has_dot_segment(path: str) -> bool:
    """Return whether a server may read a segment of an encoded path as `.` or `..` (RFC 3986, section 5.2.4).

    Such a segment may be percent-encoded, stand between backslashes, or have parameters behind a semicolon: servers
    differ in which of these they resolve.
    """
    if "." not in path and "%" not in path:
        return False
    return any(segment.partition(";")[0].strip() in (".", "..") for segment in _SEPARATOR.split(unquote(path)))


def without_values(target: str) -> str:
    """Return the target without the values of its query: `/v1?key=…&page=…`. A parameter without `=` stays as it is."""
    path, mark, query = target.partition("?")
    if not mark:
        return path
    names = (pair.partition("=") for pair in query.split("&"))
    return f"{path}?{'&'.join(name + ('=…' if sign else '') for name, sign, _ in names)}"


def url_for_logs(text: str) -> str:
    """Return a URL, valid or not, for logs: without userinfo and without the values of its query."""
    try:
        return read_address(text).shown
    except BadUrlError:
        return without_values(re.sub(r"//[^/?#]*@", "//", _CONTROL.sub("", text)))


def redirect_target(base: Address, location: str) -> Address:
    """Return the target of a redirect (RFC 3986, section 5.2). base: the URL whose response is the redirect. location:
    value of its header Location, which may be relative.

    Raises:
        BadUrlError: the target is invalid.
    """
    from urllib.parse import urljoin

    if _CONTROL.search(location):
        raise BadUrlError("the redirect holds a control character")
    try:
        text = urljoin(base.url, location)
    except ValueError:
        raise BadUrlError("the redirect leads to a URL without a usable host") from None
    return read_address(text)


def names_its_host(template: str) -> bool:
    """Return whether scheme, host and port of a URL template are literal, so that placeholders such as `{name}` cannot
    change them."""
    return "{" not in template or _NAMED.match(template) is not None


def literal_ip(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the address if the host is an IP address without brackets, else None."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _host(text: str) -> str:
    if text.startswith("["):
        address = literal_ip(text[1:-1])
        if address is None:
            raise BadUrlError("the URL has no usable host")
        return str(address)
    host = text.lower()
    if not host.isascii():
        try:
            host = host.encode("idna").decode()
        except UnicodeError:
            raise BadUrlError("the host is no domain name") from None
    if not _HOST.fullmatch(host):
        raise BadUrlError("the URL has no usable host")
    return host
