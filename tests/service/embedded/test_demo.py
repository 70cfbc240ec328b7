"""`rowcall --demo` as a newcomer runs it: every request it suggests is sent, Ctrl-C stops everything."""

from __future__ import annotations

import argparse
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from rowcall.service.embedded.demo import EXAMPLES
from tests.harness.service import NO_TLS


class Demo:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-m", "rowcall.service.cli", "--demo", "--Urls=http://127.0.0.1:0"],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.commands = [shlex.split(line) for line in self._lines_until("Ctrl-C") if line.lstrip().startswith("curl ")]

    def _lines_until(self, last: str) -> Iterator[str]:
        assert self.process.stdout is not None
        message = []
        for line in self.process.stdout:
            message.append(line)
            yield line
            if last in line:
                return
        raise AssertionError(f"the demo ended before it listened:\n{''.join(message)}")

    def send(self, number: int) -> httpx.Response:
        curl = argparse.ArgumentParser()
        curl.add_argument("url")
        curl.add_argument("-i", action="store_true")
        curl.add_argument("-X", dest="method")
        curl.add_argument("--json")
        command = curl.parse_args(self.commands[number][1:])
        method = command.method or ("GET" if command.json is None else "POST")
        headers = {} if command.json is None else {"Content-Type": "application/json"}
        return httpx.request(
            method, command.url, content=command.json, headers=headers, trust_env=False, verify=NO_TLS, timeout=60
        )

    def stop(self) -> int:
        self.process.send_signal(signal.SIGINT)
        assert self.process.stdout is not None
        self.process.stdout.read()
        return self.process.wait(30)


@pytest.fixture(scope="module")
def demo() -> Iterator[Demo]:
    folder = Path(tempfile.mkdtemp(prefix="rowcall-demo-"))
    running = Demo(folder)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.stop()
        assert running.process.stdout is not None
        running.process.stdout.close()
        shutil.rmtree(folder)


STATUS = {"RAISE EXCEPTION becomes a 400": 400, "only for dispatchers who have signed in: 401": 401}


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(EXAMPLES)), ids=[what for _, what in EXAMPLES])
def test_a_suggested_request_returns_the_documented_status(demo: Demo, number: int) -> None:
    response = demo.send(number)
    assert response.status_code == STATUS.get(EXAMPLES[number][1], 200)
    assert len(response.content) > 0 or "set-cookie" in response.headers


def test_records_arrays_and_json_are_rendered_completely(demo: Demo) -> None:
    assert demo.send(0).json()[2] == {
        "id": 3,
        "name": "Chidi",
        "bicycle": "electric",
        "districts": ["ORC", "STA", "UNI"],
        "since": "2019-12-17",
        "skills": {"fragile": True, "languages": ["en", "pl"]},
    }


def test_interrupting_stops_the_service_and_its_database(demo: Demo) -> None:
    assert demo.stop() == 0
    assert not (demo.folder / ".demo" / "data" / "postmaster.pid").exists()
