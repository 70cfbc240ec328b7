"""Writes the screenshots of docs/images with a headless Chromium, from the running demo.

`python ci/take_screenshots.py` needs Chromium (Debian: `apt install chromium`); it starts the demo as `make demo` does.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

IMAGES = Path(__file__).parents[1] / "docs" / "images"
# Without these options, the browser contacts hosts of its vendor at every start.
OPTIONS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-sync"]
PARCELS = """\
-- HTTP GET /open-parcels
-- allow_anonymous
-- table_format = html
select p.id, size, weight, d.name as district, c.name as courier, ordered, note
from demo.parcel p join demo.district d on d.code = district join demo.courier c on c.id = courier
where delivered is null order by p.id limit 10;
"""


def main() -> None:
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        sys.exit("no Chromium on this machine (Debian: apt install chromium)")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "open_parcels.sql").write_text(PARCELS, encoding="utf-8")
        address = f"http://127.0.0.1:{_free_port()}"
        command = [
            *(str(Path(sys.executable).with_name("rowcall")), "--demo", f"--Urls={address}"),
            *("--Service:TableFormatOptions:Enabled=true", f"--Service:SqlFileSource:FilePattern={folder}/*.sql"),
        ]
        service = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert service.stdout is not None
        try:
            if not any("Started in" in line for line in service.stdout):
                sys.exit("the demo has not started")
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=program, args=OPTIONS)
                page = browser.new_page(viewport={"width": 920, "height": 310})
                page.goto(f"{address}/open-parcels")
                page.screenshot(path=IMAGES / "html-table.png")
                browser.close()
        finally:
            service.terminate()
            service.wait()


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


if __name__ == "__main__":
    main()
