"""A request that cannot be bound, and how its values are shown to whoever sent it."""

from __future__ import annotations

_SHOWN = 60


class BindingError(Exception):
    """The request cannot be bound. `status` follows reference 01, 7.8; `detail` is for the caller."""

    def __init__(self, status: int, detail: str, parameter: str | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.parameter = parameter
        """API name of the parameter, or the unknown key, where there is one."""


def shown(value: str | bytes) -> str:
    """A value for a message: quoted, cut, and fit to be printed."""
    text = value[: 4 * _SHOWN].decode(errors="replace") if isinstance(value, bytes) else value
    cut = text[:_SHOWN] + "…" if len(text) > _SHOWN else text
    printable = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in cut)
    return f"'{printable}'"
