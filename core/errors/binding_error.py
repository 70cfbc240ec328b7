"""Errors of binding: which values of a request are invalid and why, for the caller."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_SHOWN = 60

MOST_FAULTS = 20
"""Maximum number of listed faults; a request may contain a million."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a request. message: for the caller; it may contain the value."""

    parameter: str
    """Name of the parameter in requests, or the key that is no parameter."""
    path: str
    """Path of the value: `lines[2].trackId`; the name of the parameter if it is the whole value."""
    message: str
    invalid_value: bool = True
    """Whether a value is invalid. False: a parameter is missing, or a name is unknown."""

    @property
    def redacted(self) -> Fault:
        """The fault with a message without the value, for `sensitive` endpoints."""
        if not self.invalid_value:
            return self
        return Fault(self.parameter, self.path, f"parameter '{self.path}': the value cannot be used")

    @property
    def members(self) -> dict[str, str]:
        """The members of a JSON object that describes the fault."""
        return {"parameter": self.parameter, "path": self.path, "message": self.message}


class BindingError(Exception):
    """The values of a request cannot be bound. Becomes the response to the caller (binding-25, binding-26).

    status: of the response. detail: message for the caller. faults: listed in the response; None: one fault of
    `parameter` with the message `detail`, or none if `parameter` is None too.
    """

    def __init__(
        self, status: int, detail: str, parameter: str | None = None, faults: Sequence[Fault] | None = None
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        if faults is None:
            faults = () if parameter is None else (Fault(parameter, parameter, detail),)
        self.faults = tuple(faults)
        """All faults, for the member `errors` of the response."""

    @classmethod
    def of(cls, status: int, faults: Sequence[Fault], first: Fault) -> BindingError:
        """Return one error for all faults, of which it lists at most `MOST_FAULTS`. first: the one of them that is
        listed first; its message begins the detail, which also gives the number of the others."""
        others = len(faults) - 1
        more = f" (and {others} more, see errors)" if others else ""
        listed = sorted(faults, key=lambda fault: fault is not first)[:MOST_FAULTS]
        return cls(status, f"{first.message}{more}", faults=listed)

    def without_values(self) -> BindingError:
        """Return a new error of the same faults whose messages do not contain values of the request. The detail of an
        error without faults is unchanged."""
        faults = [fault.redacted for fault in self.faults]
        same = len(faults) == 0 or faults[0].message == self.faults[0].message
        return BindingError(self.status, self.detail if same else faults[0].message, faults=faults)


def type_word(cast: str) -> str:
    """Return a type in its usual spelling: `mood` for `"public"."mood"`. cast: the name of the type as SQL text."""
    return re.sub(r'"([a-z_][a-z0-9_]*)"', r"\1", cast).removeprefix("public.")


def quote_value(value: str | bytes) -> str:
    """Return a value for a message: in single quotes, cut to 60 characters, and with U+FFFD for each unprintable
    character and for bytes that are not UTF-8."""
    text = value[: 4 * _SHOWN].decode(errors="replace") if isinstance(value, bytes) else value
    cut = text[:_SHOWN] + "…" if len(text) > _SHOWN else text
    printable = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in cut)
    return f"'{printable}'"
