"""`python -m bench.first_paint`: time until the console shows something and until its first report, in Chromium on this
machine. Each turn has a browser context of its own, so nothing is cached. Needs Chromium and the extra of the tests.

The target of the console is a first paint within one second. No test asserts on it, because a busy machine changes it;
tests/http/test_console_page.py shows what it depends on.
"""

import argparse
import shutil
import statistics
import sys

from playwright.sync_api import Browser, sync_playwright

from bench.one_worker import SMALL, OneWorker
from bench.postgres import temporary_server
from bench.services import free_port

TOKEN = "an operator's token of the bench"
# Without these options, the browser contacts hosts of its vendor at every start.
OPTIONS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-sync"]
PAINTS = (
    """() => Object.fromEntries(performance.getEntriesByType("paint").map(entry => [entry.name, entry.startTime]))"""
)
LOADED = """() => performance.getEntriesByType("resource").reduce((sum, entry) => sum + entry.transferSize,
    performance.getEntriesByType("navigation")[0].transferSize)"""


def turn(browser: Browser, address: str) -> tuple[float, float, float, int]:
    """Return milliseconds until the first paint, the first content and the first report, and the bytes received."""
    with browser.new_context(viewport={"width": 1280, "height": 800}) as context:
        context.request.post(f"{address}/console/api/session", headers={"authorization": f"Bearer {TOKEN}"})
        page = context.new_page()
        page.goto(f"{address}/console/")
        page.locator("[role=region][aria-label=Processes]").wait_for()
        report = page.evaluate("performance.now()")
        paints = page.evaluate(PAINTS)
        return paints["first-paint"], paints["first-contentful-paint"], report, page.evaluate(LOADED)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=10)
    turns = parser.parse_args().turns
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        sys.exit("no Chromium on this machine (Debian: apt install chromium)")
    with temporary_server("auto") as server, sync_playwright() as playwright:
        server.psql("-c", "create database bench", database="postgres")
        server.psql(stdin=SMALL)
        port = free_port()
        settings = ("Console:Enabled=true", f"Admin:BearerToken={TOKEN}", f"Console:Url=http://127.0.0.1:{port}")
        service = OneWorker(server, free_port(), *settings)
        browser = playwright.chromium.launch(executable_path=program, args=OPTIONS)
        turn(browser, f"http://127.0.0.1:{port}")  # a warm-up
        results = [turn(browser, f"http://127.0.0.1:{port}") for _ in range(turns)]
        browser.close()
        service.stop()
    for name, values in zip(("first paint", "first content", "first report"), zip(*results, strict=True), strict=False):
        print(f"{name:14} {statistics.median(values):7.0f} ms   {min(values):.0f} to {max(values):.0f} ms")
    print(f"{'received':14} {results[-1][3] / 1000:7.0f} kB")


if __name__ == "__main__":
    main()
