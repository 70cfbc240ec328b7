"""`--docs`: serve the manual as a site on this machine (command-10)."""

from __future__ import annotations

import re
import sys
from zipfile import BadZipFile

from rowcall.service.command.switches import Arguments
from rowcall.service.manual import archive
from rowcall.service.manual.server import ManualServer

HOST = "127.0.0.1"
PORT = 8765
_ADDRESS = re.compile(
    r"(?P<alone>[0-9]{1,9})|(?:\[(?P<ipv6>[^]]+)\]|(?P<host>(?![0-9]+\Z)[^][:]*))(?::(?P<port>[0-9]{0,9}))?"
)


def serve(arguments: Arguments) -> int:
    """Serve the manual at the given address until the process is interrupted. Returns the exit code: 1 if the site is
    missing or the address cannot be used, 2 if the text is not an address.
    """
    text = "".join(arguments.given["--docs"])
    address = _address(text)
    if address is None:
        print(f"rowcall: '{text}' is not a port, HOST:PORT or [IPV6]:PORT", file=sys.stderr)
        return 2
    try:
        site = archive.Site(archive.ARCHIVE)
    except FileNotFoundError:
        print(
            "rowcall: this installation does not contain the manual. In a checkout, `make site` builds it; "
            "wheels made by `make dist` contain it.",
            file=sys.stderr,
        )
        return 1
    except (OSError, BadZipFile) as error:
        print(f"rowcall: {archive.ARCHIVE} cannot be read: {error}", file=sys.stderr)
        return 1
    host, port = address
    try:
        server = ManualServer(host, port, site)
    except OSError as error:
        reason = error.strerror or error
        print(f"rowcall: cannot listen on {host}, port {port}: {reason}. Try: rowcall --docs 0", file=sys.stderr)
        return 1
    with server:
        print(f"The manual is served at {server.url}; Ctrl+C ends it.", flush=True)
        server.serve_forever()
    return 0


def _address(text: str) -> tuple[str, int] | None:
    """Return host and port of `PORT`, `HOST`, `HOST:PORT`, `[IPV6]` or `[IPV6]:PORT`; None for anything else. A missing
    host is `HOST`, a missing port is `PORT`; an empty text gives both."""
    match = _ADDRESS.fullmatch(text)
    if match is None:
        return None
    port = int(match["alone"] or match["port"] or PORT)
    return (match["ipv6"] or match["host"] or HOST, port) if port < 65536 else None
