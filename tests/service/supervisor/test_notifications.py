"""Payloads of `NOTIFY` on the channel of PostgREST's interface."""

from __future__ import annotations

import pytest

from rowcall.service.supervisor.notifications import postgrest_channel


@pytest.mark.parametrize(
    ("payload", "readings"),
    [
        ("", 1),
        ("reload schema", 1),
        ("reload config", 1),
        ("reload", 0),
        ("RELOAD SCHEMA", 0),
        ("a row has changed", 0),
    ],
)
def test_only_payloads_of_a_reload_read_the_schema_again(payload: str, readings: int) -> None:
    changes: list[None] = []
    channel = postgrest_channel("pgrst", lambda: changes.append(None))
    channel.on_payload(payload)
    assert (channel.name, len(changes)) == ("pgrst", readings)
    channel.on_reconnect()
    assert len(changes) == readings + 1
