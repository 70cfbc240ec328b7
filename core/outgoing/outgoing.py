"""Which outgoing requests an endpoint makes, and which of its parameters receive what comes back."""

from __future__ import annotations

from dataclasses import dataclass

from rowcall.core.data.record import Record
from rowcall.core.outgoing.request_definition import RequestDefinition


@dataclass(frozen=True, slots=True)
class TypeCall(Record):
    """One request of a composite type; all parameters of that type share it (outbound-9)."""

    name: str
    """Of the type, for messages."""
    definition: RequestDefinition
    fields: tuple[tuple[int, str], ...] = ()
    """Index of a parameter that is a field of the type, and the part of the answer that it receives."""
    rows: tuple[tuple[int, tuple[str | None, ...]], ...] = ()
    """Index of a parameter that receives the whole type, and the part for each attribute; None: NULL."""
    members: tuple[int, ...] = ()
    """Indexes of all parameters that are fields of the type, those the request fills too."""


@dataclass(frozen=True, slots=True)
class Outgoing(Record):
    calls: tuple[TypeCall, ...] = ()
    replies: tuple[tuple[int, str], ...] = ()
    """Parameters that receive the answer of the service behind a proxy (proxies-10)."""

    @property
    def filled(self) -> frozenset[int]:
        """Parameters that no request has to send."""
        fields = {index for call in self.calls for index, _ in call.fields}
        return self.rows | fields | {index for index, _ in self.replies}

    @property
    def rows(self) -> frozenset[int]:
        """Parameters of files that are such an answer as a whole."""
        return frozenset(index for call in self.calls for index, _ in call.rows)

    @property
    def members(self) -> frozenset[int]:
        """Fields of composites: a NULL among them does not make the composite one."""
        return frozenset(index for call in self.calls for index in call.members)


NOTHING_SENT = Outgoing()
