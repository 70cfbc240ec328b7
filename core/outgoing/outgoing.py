"""The outgoing requests of an endpoint, and the parameters that receive their responses."""

from __future__ import annotations

from dataclasses import dataclass

from rowcall.core.data.record import Record
from rowcall.core.outgoing.request_definition import RequestDefinition


@dataclass(frozen=True, slots=True)
class TypeCall(Record):
    """One request of a composite type, which all parameters of that type share (outbound-9)."""

    name: str
    """Name of the type, for messages."""
    definition: RequestDefinition
    fields: tuple[tuple[int, str], ...] = ()
    """Index of a parameter that is a field of the type, and the part of the response that it receives."""
    rows: tuple[tuple[int, tuple[str | None, ...]], ...] = ()
    """Index of a parameter that receives the whole type, and the part for each attribute; None: NULL."""
    members: tuple[int, ...] = ()
    """Indexes of all parameters that are fields of the type, including those that the response fills."""


@dataclass(frozen=True, slots=True)
class Outgoing(Record):
    calls: tuple[TypeCall, ...] = ()
    replies: tuple[tuple[int, str], ...] = ()
    """Parameters that receive the response of the service behind a proxy (proxies-10)."""

    @property
    def filled(self) -> frozenset[int]:
        """Parameters that no request has to send."""
        fields = {index for call in self.calls for index, _ in call.fields}
        return self.rows | fields | {index for index, _ in self.replies}

    @property
    def rows(self) -> frozenset[int]:
        """Parameters of files that receive such a response as a whole."""
        return frozenset(index for call in self.calls for index, _ in call.rows)

    @property
    def members(self) -> frozenset[int]:
        """Fields of composites: if one is NULL, the composite is not."""
        return frozenset(index for call in self.calls for index in call.members)


NOTHING_SENT = Outgoing()
