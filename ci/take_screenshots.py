"""Writes the screenshots of docs/images with a headless Chromium, from the running demo.

`python ci/take_screenshots.py` needs Chromium (Debian: `apt install chromium`); it starts the demo as `make demo` does.
`python ci/take_screenshots.py console` writes only those of the console, for which the demo has some traffic.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psycopg
from playwright.sync_api import Page, sync_playwright

from rowcall.service.embedded.demo import SETTINGS, install
from rowcall.service.embedded.postgres import EmbeddedServer
from rowcall.service.installation.script import install_sql

IMAGES = Path(__file__).parents[1] / "docs" / "images"
# Without these options, the browser contacts hosts of its vendor at every start.
OPTIONS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-sync"]
COLOURS = ("light", "dark")
CONSOLE_PAGES = {
    "overview": "overview",
    "endpoints": "endpoints",
    "endpoint": "endpoint?method=GET&path=/couriers/{id}",
    "traffic": "traffic",
    "requests": "requests",
    "trace": "trace?id=4bf92f3577b34da6a3ce929d0e0e4736",
    "slow": "slow",
    "database": "database",
    "cache": "cache",
    "queues": "queues",
    "events": "events",
    "sessions": "sessions",
    "configuration": "configuration",
    "diagnosis": "diagnosis",
    "schema": "schema",
    "log": "log",
}
"""Address of each page of the console, by the name in its image."""
PATHS = (
    "/couriers",
    "/couriers/3",
    "/parcels?limit=3",
    "/parcels/7/journey",
    "/dashboard",
    "/streets",
    "/hello?name=you",
)
TRACED = {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
PARCELS = """\
-- HTTP GET /open-parcels
-- allow_anonymous
-- table_format = html
select p.id, size, weight, d.name as district, c.name as courier, ordered, note
from demo.parcel p join demo.district d on d.code = district join demo.courier c on c.id = courier
where delivered is null order by p.id limit 10;
"""
JOBS = """
select rowcall.enqueue('POST /reports', '{}');
select rowcall.enqueue('POST /reports', '{}');
update rowcall.job set state = 'failed', attempts = 3, finished = now(), error = 'the printer is out of paper'
where id = (select id from rowcall.job limit 1);
"""


def main(parts: list[str]) -> None:
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        sys.exit("no Chromium on this machine (Debian: apt install chromium)")
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=program, args=OPTIONS)
        if not parts or "table" in parts:
            (Path(folder) / "open_parcels.sql").write_text(PARCELS, encoding="utf-8")
            options = [
                "--Service:TableFormatOptions:Enabled=true",
                f"--Service:SqlFileSource:FilePattern={folder}/*.sql",
            ]
            with service(folder, ["--demo", *options]) as lines:
                page = browser.new_page(viewport={"width": 920, "height": 310})
                page.goto(f"{address_in(lines)}/open-parcels")
                page.screenshot(path=IMAGES / "html-table.png")
        if not parts or "console" in parts:
            take_console(browser.new_page(viewport={"width": 1000, "height": 580}), folder)
        browser.close()


def take_console(page: Page, folder: str) -> None:
    """Write the images of all pages of the console."""
    with EmbeddedServer(Path(folder) / "database", throw_away=True) as server, collector() as collected:
        install(server.connection())
        with psycopg.connect(server.connection().conninfo(), autocommit=True) as database:
            database.execute(install_sql().encode())
            database.execute(JOBS.encode())
        parameters = server.connection().parameters
        settings = {
            **dict(SETTINGS),
            "ConnectionStrings:Default": ";".join(f"{name}={value}" for name, value in parameters.items()),
            "ApplicationName": "couriers",
            "Console:AllowActions": "true",
            "Console:Url": "http://127.0.0.1:0",
            "Jobs:Enabled": "true",
            "Jobs:Concurrency": "0",
            "Log:SlowRequests:Threshold": "500 ms",
            "Tracing:Enabled": "true",
            "Tracing:SampleRatio": "0.2",
            "Tracing:Endpoint": collected,
        }
        with service(folder, ["--console", *(f"--{key}={value}" for key, value in settings.items())]) as lines:
            address = address_in(lines)
            link = re.search(r"The console is at (\S+)", "".join(lines))
            if link is None:
                sys.exit("the console has no link")
            page.goto(link[1])
            page.wait_for_url("**/console/")
            with traffic(address):
                page.wait_for_timeout(5_000)
                for name, place in CONSOLE_PAGES.items():
                    page.evaluate("name => { location.hash = name }", place)
                    page.locator(f"[data-ready='{place.partition('?')[0]}']").wait_for()
                    page.wait_for_timeout(20_000 if place in ("overview", "events") else 1_200)
                    for colours in COLOURS:
                        page.emulate_media(color_scheme=colours)  # type: ignore[arg-type]
                        page.screenshot(path=IMAGES / f"console-{name}-{colours}.png")


@contextmanager
def service(folder: str, arguments: list[str]) -> Iterator[list[str]]:
    """Run the service until the end of the block, on a free port. Yield the lines of its log until it listens."""
    program = str(Path(sys.executable).with_name("rowcall"))
    command = [program, "--Urls=http://127.0.0.1:0", *arguments]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    try:
        lines = []
        for line in process.stdout:
            lines.append(line)
            if "Started in" in line:
                break
        else:
            sys.exit("the service has not started:\n" + "".join(lines))
        threading.Thread(target=process.stdout.read, daemon=True).start()
        yield lines
    finally:
        process.terminate()
        process.wait()


def address_in(lines: list[str]) -> str:
    """Return the address of the service in the last line of its start."""
    found = re.search(r"http://127\.0\.0\.1:\d+", lines[-1])
    assert found is not None, lines[-1]
    return found[0]


@contextmanager
def collector() -> Iterator[str]:
    """Accept the spans of the service, and yield the address for them."""

    class Accept(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_arguments: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Accept)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@contextmanager
def traffic(address: str) -> Iterator[None]:
    """Send requests until the end of the block, and open an event stream."""
    stop = threading.Event()

    def get(path: str, headers: dict[str, str]) -> None:
        with (
            suppress(OSError),
            urllib.request.urlopen(urllib.request.Request(address + path, headers=headers)) as answer,
        ):
            answer.read()

    def repeat() -> None:
        get("/couriers/3", TRACED)
        get("/forecast", {})
        while not stop.is_set():
            for path in (*PATHS, "/forecast", "/payroll", "/couriers/overview"):
                get(path, {})
                stop.wait(0.05)

    threading.Thread(target=repeat, daemon=True).start()
    stream = urllib.request.urlopen(f"{address}/round/progress")
    yield
    stop.set()
    stream.close()


if __name__ == "__main__":
    main(sys.argv[1:])
