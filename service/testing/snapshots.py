"""Response snapshots of an earlier run, with which responses are compared: a file beside each test file.

`# @snapshot` in a request enables it, `rowcall --test --update` writes the file.
"""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import orjson

from rowcall.core.testing.matching import are_same, diff
from rowcall.core.testing.request import HttpBlock
from rowcall.core.text import exact_json
from rowcall.core.text.lines import lines_of
from rowcall.service.testing.calls import Reply

_HEADING = re.compile("^=== ", re.MULTILINE)
"""Begins the line with the name of a snapshot."""


class Snapshots:
    """The response snapshots of one test file. test: its path. update: write snapshots instead of comparing."""

    def __init__(self, test: str, *, update: bool) -> None:
        self._path = Path(f"{test}.snapshots")
        self._update = update
        self._counted: dict[str, int] = {}
        """Number of requests so far, by method and target."""
        self._known: dict[str, str] | None = None
        """Snapshots by name; None: the file has not been read yet."""

    def differences(self, block: HttpBlock, reply: Reply) -> list[str]:
        """Return the differences between a response and its snapshot; a missing snapshot is one. In update mode, write
        the snapshot if it differs, and return none. Raises `OSError` if the file of snapshots cannot be read or
        written, and `UnicodeDecodeError` if it is not UTF-8.

        Call it once for each request, in the order of the file: equal requests are numbered by their calls.
        """
        name = f"{block.method} {block.target}"
        self._counted[name] = self._counted.get(name, 0) + 1
        if self._counted[name] > 1:
            name = f"{name} ({self._counted[name]})"
        answer = _format_reply(reply)
        snapshots = self._read()
        if self._update:
            if snapshots.get(name) != answer:
                snapshots[name] = answer
                self._write(snapshots)
            return []
        if name not in snapshots:
            return ["there is no snapshot yet; rowcall --test --update writes one"]
        snapshot = snapshots[name]
        (head, _, body), (actual_head, _, actual_body) = snapshot.partition("\n"), answer.partition("\n")
        if head == actual_head and are_same(body, actual_body):
            return []
        return diff(lines_of(snapshot), lines_of(answer))

    def _read(self) -> dict[str, str]:
        """Return the snapshots by name, read from the file at the first call. Empty without a file."""
        if self._known is None:
            text = self._path.read_text(encoding="utf-8") if self._path.exists() else ""
            self._known = {}
            for part in _HEADING.split(text)[1:]:
                name, _, answer = part.partition("\n")
                self._known[name] = answer.rstrip("\n")
        return self._known

    def _write(self, snapshots: dict[str, str]) -> None:
        text = "".join(f"=== {name}\n{answer}\n\n" for name, answer in sorted(snapshots.items()))
        self._path.write_text(text, encoding="utf-8")


def _format_reply(reply: Reply) -> str:
    """Return status, content type and body of a response as text, without a line break at the end. JSON is indented, so
    that a difference shows its place."""
    body = reply.body or ""
    with contextlib.suppress(ValueError):
        body = orjson.dumps(exact_json.parse(body.encode()), option=orjson.OPT_INDENT_2).decode()
    # A line of the body must not look like the heading of the next snapshot.
    body = "\n".join(f" {line}" if line.startswith("=== ") else line for line in lines_of(body))
    head = f"{reply.status} {reply.header('content-type') or ''}".rstrip()
    # Empty lines at the end separate the snapshots in their file.
    return f"{head}\n{body}".rstrip("\n")
