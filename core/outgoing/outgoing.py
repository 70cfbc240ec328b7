"""The outgoing requests of an endpoint, and the parameters that receive their responses."""

from __future__ import annotations

from dataclasses import dataclass

from rowcall.core.data.record import Record
from rowcall.core.outgoing.request_definition import RequestDefinition


@dataclass(frozen=True, slots=True)
class TypeCall(Record):
    """One request that the comment of a composite type describes, and the parameters that receive its response. All
    parameters of the type share the request (outbound-9)."""

    name: str
    """Name of the type, for messages."""
    definition: RequestDefinition
    fields: tuple[tuple[int, str], ...] = ()
    """Indexes of parameters that are fields of the type, each with the part of the response that it receives."""
    rows: tuple[tuple[int, tuple[str | None, ...]], ...] = ()
    """Indexes of parameters that receive the whole type, each with the part for each attribute; None: NULL."""
    members: tuple[int, ...] = ()
    """Indexes of all parameters that are fields of the type, including those that the response fills."""


@dataclass(frozen=True, slots=True)
class Outgoing(Record):
    """The requests that a call of an endpoint makes."""

    calls: tuple[TypeCall, ...] = ()
    replies: tuple[tuple[int, str], ...] = ()
    """Parameters that receive the response of the service behind a proxy, each with the part that it receives
    (proxies-10)."""

    @property
    def filled(self) -> frozenset[int]:
        """Indexes of the parameters that responses fill, so that no request has to send them."""
        fields = {index for call in self.calls for index, _ in call.fields}
        return self.rows | fields | {index for index, _ in self.replies}

    @property
    def rows(self) -> frozenset[int]:
        """Indexes of the parameters that receive a whole response as one composite. Only SQL files have such
        parameters."""
        return frozenset(index for call in self.calls for index, _ in call.rows)

    @property
    def members(self) -> frozenset[int]:
        """Indexes of the parameters that are fields of an HTTP type. Such a composite is not NULL, even if all its
        fields are."""
        return frozenset(index for call in self.calls for index in call.members)

    @property
    def pending(self) -> frozenset[int]:
        """Indexes of the parameters whose NULL has no meaning before the responses are there."""
        return self.members | self.filled


NOTHING_SENT = Outgoing()
"""The value of endpoints without outgoing requests."""
