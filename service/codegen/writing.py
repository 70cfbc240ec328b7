"""Writes the clients that `core.codegen` generates: each file atomically, and only if its content has changed."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import logging
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rowcall.core.codegen.comments import Definitions
from rowcall.core.codegen.dart.files import dart_files, dart_names
from rowcall.core.codegen.files import client_files, client_names
from rowcall.core.codegen.options import ClientCodeOptions, ClientOptions, DartOptions, PythonOptions
from rowcall.core.codegen.python.files import python_files, python_names
from rowcall.core.codegen.selection import NoPlaceError, Output, TypesOf
from rowcall.core.endpoint.endpoint import Endpoint

log = logging.getLogger("rowcall")

Files = Callable[..., Iterator[Output]]
"""Called with endpoints, types_of, definitions and `now`; yields the files of a client."""


@dataclass(frozen=True, slots=True)
class Client:
    """The generator of one language. section: the path of its section of the configuration."""

    language: str
    section: str
    options: ClientOptions
    files: Files
    names: Callable[[Sequence[Endpoint]], Iterator[tuple[Endpoint, str]]]
    """Yields the endpoints that have a function, with its name."""
    comment: str = "//"
    """Begin of a line that is a comment."""


def clients_of(
    options: ClientCodeOptions | None, dart: DartOptions | None, python: PythonOptions | None
) -> Iterator[Client]:
    """Yield the generators of the clients whose section is on. options: of TypeScript or JavaScript. None: the section
    is off.
    """
    if options is not None:
        language = "TypeScript" if options.types else "JavaScript"
        files, names = partial(client_files, options=options), partial(client_names, options=options)
        yield Client(language, "Service:ClientCodeGen", options, files, names)
    if dart is not None:
        files, names = partial(dart_files, options=dart), partial(dart_names, options=dart)
        yield Client("Dart", "Service:DartClientCodeGen", dart, files, names)
    if python is not None:
        files, names = partial(python_files, options=python), partial(python_names, options=python)
        yield Client("Python", "Service:PythonClientCodeGen", python, files, names, "#")


class ClientFiles:
    """The files of one client of a process: written, and removed again when their endpoints have vanished."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._comment = f"{client.comment} No endpoints found.\n"
        self._paths: frozenset[str] = frozenset()
        """Paths of the files that this process has written, or found as it would have written them, without those that
        it must not overwrite, and those beside them."""

    async def write(self, endpoints: Sequence[Endpoint], types_of: TypesOf, definitions: Definitions) -> bool:
        """Write the files that are missing or have changed, and remove those of former endpoints; return whether this
        succeeded. Errors are logged and do not stop the service.
        """
        client = self._client
        log.debug("client code: %s", client.options.path)
        try:
            await asyncio.to_thread(self._write, endpoints, types_of, definitions)
        except NoPlaceError:
            log.error(
                "%s:FilePath: %s has no {0}, and there is a file for each schema or module; nothing is written "
                "(%s:BySchema=false makes it one)",
                *(client.section, client.options.path, client.section),
            )
            return False
        except OSError as error:
            log.error("client code in %s cannot be written: %s", client.language, error)
            return False
        except Exception:
            # A bug in the generator must not stop the service.
            log.exception("client code in %s cannot be made", client.language)
            return False
        return True

    def _write(self, endpoints: Sequence[Endpoint], types_of: TypesOf, definitions: Definitions) -> None:
        """Write the files that are missing or have changed, remove those that no endpoint needs any more, and log the
        numbers. If `FileOverwrite` is false, existing files stay unchanged. Raises `NoPlaceError` if the path of the
        client needs a placeholder, and OSError.
        """
        client = self._client
        now = datetime.datetime.now().astimezone()
        offset = now.strftime("%z")
        result = f"{now:%Y-%m-%dT%H:%M:%S.%f}0{offset[:3]}:{offset[3:]}"
        written, unchanged = 0, 0
        left_alone: set[str] = set()
        owned: set[str] = set()
        outputs = tuple(client.files(endpoints, types_of, definitions, now=result))
        for output in outputs:
            if output.beside in left_alone:
                continue
            path = Path(output.path)
            if not output.overwrite and path.exists():
                left_alone.add(output.path)
                continue
            if output.text is None:
                _remove(path, self._comment)
                continue
            if _is_same(path, output):
                unchanged += 1
            else:
                replace_file(path, output.text)
                written += 1
            if output.overwrite and (output.beside is None or output.beside in owned):
                owned.add(output.path)
        stored = f", {len(left_alone)} left alone as FileOverwrite is false" if left_alone else ""
        log.info("client code in %s: %d files written, %d unchanged%s", client.language, written, unchanged, stored)
        for vanished in sorted(self._paths - {output.path for output in outputs}):
            _remove(Path(vanished), self._comment)
            log.info("%s is removed, as it has no endpoints any more", vanished)
        self._paths = frozenset(owned)


def _is_same(path: Path, output: Output) -> bool:
    """Whether the file has the text of `output`, ignoring the header, which contains the time. False also if the file
    cannot be read.
    """
    try:
        known = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    text = output.text or ""
    return len(known) == len(text) and known[output.header :] == text[output.header :]


def replace_file(path: Path, text: str) -> None:
    """Write a file atomically: readers see either the old or the new content. Missing folders are created. Raises
    OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
        os.chmod(beside, mode)
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise
    log.debug("client code: %s is written", path)


def _remove(path: Path, comment: str) -> None:
    """Delete a file that no endpoint needs any more; if that is not possible, replace its content by the comment.
    Raises OSError if neither is possible."""
    try:
        path.unlink(missing_ok=True)
    except OSError:
        path.write_text(comment, encoding="utf-8")
