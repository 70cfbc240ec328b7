"""Folders that the kernel cannot watch: one without read permission, and too many watched folders."""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import watchfiles.main
from watchfiles._rust_notify import RustNotify, WatchfilesRustInternalError

from rowcall.core.config.sections.sqlfiles import SqlFileOptions
from rowcall.service.discovery.fingerprint import Fingerprint
from rowcall.service.file_changes import file_changes
from rowcall.service.snapshot.catalogue_watch import _watch_files
from rowcall.service.testing.watch import Watch, _files_at
from tests.ext.wire import run, until
from tests.harness.sql_files import save

_ANOTHER_USER = 54321
"""A user without files and processes."""


@contextmanager
def _as_another_user() -> Iterator[None]:
    """Act as another user. Modules cannot be imported meanwhile."""
    if os.getuid() != 0:
        pytest.skip("acting as another user needs root")
    os.seteuid(_ANOTHER_USER)
    try:
        yield
    finally:
        os.seteuid(0)


@contextmanager
def _without_inotify() -> Iterator[None]:
    """Act as another user who has as many instances of inotify as the kernel allows."""
    libc = ctypes.CDLL(None)
    descriptors = []
    with _as_another_user():
        try:
            while (descriptor := libc.inotify_init()) >= 0:
                descriptors.append(descriptor)
            yield
        finally:
            for descriptor in descriptors:
                os.close(descriptor)


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@pytest.mark.slow
def test_a_folder_that_becomes_readable_is_watched(folder: Path) -> None:
    folder.chmod(0o700)
    changes = []

    async def watch() -> None:
        task = asyncio.ensure_future(_watch_files(SqlFileOptions(pattern=f"{folder}/*.sql"), lambda: changes.append(1)))
        with _as_another_user():
            for _ in range(10):
                await asyncio.sleep(0)
        assert not changes
        await until(lambda: changes)
        task.cancel()

    run(watch())


def test_files_are_polled_if_the_kernel_has_no_more_watches(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def watch() -> None:
        changes = file_changes(
            str(folder), fits=lambda _kind, path: path.endswith(".sql"), quiet=10, longest=100, channel="rowcall"
        )
        coming = asyncio.ensure_future(anext(changes))
        with _without_inotify():
            await asyncio.sleep(0)
        save(folder / "a.sql", "select 1")
        assert [path for _kind, path in await coming] == [str(folder / "a.sql")]
        await changes.aclose()

    with caplog.at_level(logging.WARNING, "rowcall"):
        run(watch())
    assert [record.getMessage().partition(",")[0] for record in caplog.records] == [f"files in {folder} are polled"]


class _WithoutMoreWatches:
    """A watcher that polls, or fails at the first wait as if the kernel had no watch for a new subfolder."""

    def __init__(self, paths: list[str], debug: bool, polling: bool | None, *options: Any) -> None:
        self._polling = polling
        self._watcher = RustNotify(paths, debug, bool(polling), *options)

    def __enter__(self) -> _WithoutMoreWatches:
        self._watcher.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._watcher.__exit__(*error)

    def watch(self, *options: Any) -> Any:
        if not self._polling:
            raise WatchfilesRustInternalError("OS file watch limit reached")
        return self._watcher.watch(*options)


def test_files_are_polled_if_the_kernel_runs_out_of_watches_later(
    folder: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchfiles.main, "RustNotify", _WithoutMoreWatches)

    async def watch() -> None:
        changes = file_changes(
            str(folder), fits=lambda _kind, path: path.endswith(".sql"), quiet=10, longest=100, channel="rowcall"
        )
        assert [path for _kind, path in await anext(changes)] == [str(folder)]
        coming = asyncio.ensure_future(anext(changes))
        await asyncio.sleep(0.1)
        save(folder / "a.sql", "select 1")
        assert [path for _kind, path in await coming] == [str(folder / "a.sql")]
        await changes.aclose()

    with caplog.at_level(logging.WARNING, "rowcall"):
        run(watch())
    assert [record.getMessage() for record in caplog.records] == [
        f"files in {folder} are polled, because the kernel cannot watch them: OS file watch limit reached"
    ]


@pytest.mark.parametrize("polling", ["", "true"], ids=["kernel", "polling"])
def test_folders_beside_one_that_must_not_be_read_are_watched(
    folder: Path, polling: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """On both sides of it, in the order of the directory."""
    monkeypatch.setenv("WATCHFILES_FORCE_POLLING", polling)
    for name in ("b", "f", "c", "private", "e", "a", "d"):
        (folder / name).mkdir()
        (folder / name).chmod(0o700 if name == "private" else 0o777)
    files = {str(folder / name / "new.sql") for name in "abcdef"}

    async def watch() -> set[str]:
        changes = file_changes(
            str(folder), fits=lambda _kind, path: path.endswith(".sql"), quiet=10, longest=1000, channel="rowcall"
        )
        coming = asyncio.ensure_future(anext(changes))
        # `awatch` polls only while it waits, so that its error comes after the beginning.
        if polling:
            assert [path for _kind, path in await coming] == [str(folder)]
            coming = asyncio.ensure_future(anext(changes))
        await asyncio.sleep(0)
        for file in files:
            save(Path(file), "select 1")
        found: set[str] = set()
        async with asyncio.timeout(10):
            while True:
                found |= {path for _kind, path in await coming}
                if found == files:
                    break
                coming = asyncio.ensure_future(anext(changes))
        await changes.aclose()
        return found

    with caplog.at_level(logging.WARNING, "rowcall"), _as_another_user():
        assert run(watch()) == files
    assert [record.getMessage().partition(",")[0] for record in caplog.records] == [f"files in {folder} are polled"]


def _watch_of_tests(*folders: Path) -> Watch:
    async def unchanged() -> Fingerprint:
        return Fingerprint({}, "")

    return Watch([str(folder) for folder in folders], unchanged, 0, "rowcall")


def test_a_subfolder_that_must_not_be_read_does_not_end_the_watch_of_tests(folder: Path) -> None:
    (folder / "private").mkdir(0o700)

    async def watch() -> None:
        watch = _watch_of_tests(folder)
        with _as_another_user():
            await watch.__aenter__()
        save(folder / "a.test.sql", "select true")
        assert await watch.next() is not None
        await watch.__aexit__(None, None, None)

    run(watch())


def test_files_in_a_new_folder_that_must_not_be_entered_are_skipped(folder: Path) -> None:
    save(folder / "a.test.sql", "select true")
    private = folder / "private"
    private.mkdir()
    save(private / "b.test.sql", "select true")
    private.chmod(0o744)
    with _as_another_user():
        assert list(_files_at(str(folder))) == [str(folder / "a.test.sql")]


def test_the_error_that_ends_the_watch_of_tests_is_raised(folder: Path) -> None:
    watched = folder / "tests"
    watched.mkdir()

    async def watch() -> None:
        watch = _watch_of_tests(watched)
        watched.rmdir()
        async with watch:
            with pytest.raises(FileNotFoundError):
                await watch.next()

    run(watch())
