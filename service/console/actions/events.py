"""End event streams."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rowcall.core.errors.problems import Problem
from rowcall.service.console.actions.action import Action, Result, Values
from rowcall.service.console.sources import Sources

_ID = re.compile(r"([0-9]{1,10})-([0-9]{1,15})")


def event_actions(sources: Sources) -> Iterator[Action]:
    """Yield the action that ends an event stream."""

    def end(values: Values) -> Result:
        return _end_stream(sources, values["id"])

    yield Action("end-stream", "Ends an event stream; browsers open it again after some seconds.", end, ("id",))


def _end_stream(sources: Sources, name: str) -> Result:
    found = _ID.fullmatch(name)
    if found is None:
        raise Problem(400, f"id: {name[:50]!r} is no id of a stream, such as 4711-12")
    answer = sources.run(sources.end_stream(int(found[1]), int(found[2])))
    if answer is None or not answer.found:
        raise Problem(404, "there is no such stream (any more)")
    return {"ended": name}
