"""Options of passkeys, and access to the rows of their commands; plain data (passkeys-1 to passkeys-10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rowcall.core.auth.login import Cell

REQUIRED = "required"

ALGORITHMS = frozenset({-7, -35, -36, -37, -38, -39, -257, -258, -259})
"""COSE algorithms of accepted keys: ECDSA, and RSA with either padding."""
OFFERED = (-7, -257)
"""COSE algorithms that browsers are offered: every authenticator has one of them."""


@dataclass(frozen=True, slots=True)
class PasskeyColumns:
    """Names of the columns of the commands' rows, compared in any case."""

    status: str = "status"
    message: str = "message"
    challenge: str = "challenge"
    challenge_id: str = "challenge_id"
    user_name: str = "user_name"
    display_name: str = "user_display_name"
    user_handle: str = "user_handle"
    exclude: str = "exclude_credentials"
    allow: str = "allow_credentials"
    public_key: str = "public_key"
    algorithm: str = "public_key_algorithm"
    sign_count: str = "sign_count"


@dataclass(frozen=True, slots=True)
class PasskeyPaths:
    """Paths of the endpoints; None: there is no such endpoint."""

    add_options: str | None = None
    add: str | None = None
    register_options: str | None = None
    register: str | None = None
    login_options: str | None = None
    login: str | None = None


@dataclass(frozen=True, slots=True)
class PasskeyCommands:
    """The SQL commands of passkeys."""

    challenge_add: str
    challenge_register: str
    challenge_login: str
    verify: str
    credential: str
    complete_add: str
    complete_register: str
    complete_login: str


@dataclass(frozen=True, slots=True)
class PasskeyOptions:
    paths: PasskeyPaths
    commands: PasskeyCommands
    columns: PasskeyColumns = field(default_factory=PasskeyColumns)
    relying_party: str | None = None
    """Domain; None: the host of the request."""
    relying_party_name: str = ""
    origins: frozenset[str] = frozenset()
    """In lower case. Empty: the origin of the request."""
    timeout: int = 300_000
    """Milliseconds for which a challenge is valid."""
    user_verification: str = REQUIRED
    resident_key: str = REQUIRED
    attestation: str = "none"
    counts: bool = True
    """Whether the signature counter is checked."""
    address_key: str = "ip"
    rate_limiter: str | None = None
    connection: str | None = None
    """None: the main connection."""
    retry: str | None = None
    redis: str | None = None
    """URL of the Redis in which hosts share issued challenges. None: not shared."""
    issued_only: bool = False
    """A challenge is accepted only if this service knows what it was issued for."""


class Row:
    """The first row of a command."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        self._cells: Mapping[str, Cell] = {cell.name.lower(): cell for cell in reversed(cells)}
        self.cells = cells

    def text(self, column: str) -> str | None:
        cell = self._cells.get(column.lower())
        return None if cell is None else cell.text

    def has(self, column: str) -> bool:
        return column.lower() in self._cells

    def status(self, column: str) -> int:
        """Return the status; 200 without such a column. Raises `ValueError` if it is no HTTP status."""
        if not self.has(column):
            return 200
        status = int(self.text(column) or "none")
        if not 200 <= status <= 599:
            raise ValueError(f"{status} is no HTTP status of a response")
        return status


def bytea(text: str | None) -> bytes | None:
    r"""Return the bytes of PostgreSQL's text form, such as `\x0102`. Raises `ValueError`."""
    if text is None:
        return None
    if not text.startswith("\\x"):
        raise ValueError("not the text of a bytea")
    return bytes.fromhex(text[2:])


def bytea_text(content: bytes) -> bytes:
    return b"\\x" + content.hex().encode()
