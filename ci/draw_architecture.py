"""Draws docs/images/architecture.svg: clients, the processes of a host, PostgreSQL, and the path of a request.

`python ci/draw_architecture.py` writes the file; tests/docs/test_readme.py compares it with what this script draws.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path

FILE = Path(__file__).parents[1] / "docs" / "images" / "architecture.svg"
WIDTH, HEIGHT = 920, 470

STYLE = """
  text { font-family: system-ui, "Segoe UI", Helvetica, Arial, sans-serif; font-size: 13px; fill: #1f2937; }
  .title { font-weight: 600; }
  .note { font-size: 11.5px; fill: #4b5563; }
  rect { fill: #ffffff; stroke: #6b7280; stroke-width: 1.2; }
  .group { fill: #f3f4f6; stroke-dasharray: 5 4; }
  .hot { fill: #e0e7ff; stroke: #4338ca; }
  .database { fill: #dcfce7; stroke: #15803d; }
  path { fill: none; stroke: #374151; stroke-width: 1.5; }
"""


@dataclass(frozen=True)
class Box:
    """A labelled rectangle; position and size in pixels."""

    x: int
    y: int
    width: int
    height: int
    title: str
    notes: tuple[str, ...] = ()
    kind: str = ""

    def svg(self) -> str:
        rectangle = f'<rect x="{self.x}" y="{self.y}" width="{self.width}" height="{self.height}" rx="6"'
        lines = [f"{rectangle}{_class(self.kind)}/>", _text(self.x + 10, self.y + 20, self.title, "title")]
        lines += [_text(self.x + 10, self.y + 38 + 16 * index, note, "note") for index, note in enumerate(self.notes)]
        return "\n".join(lines)


BOXES = (
    Box(20, 150, 130, 106, "Clients", ("browsers", "generated clients", "MCP tools", "HTTP/1.1, HTTP/2")),
    Box(190, 20, 500, 430, "rowcall, one host", kind="group"),
    Box(210, 56, 460, 64, "Supervisor", ("listening sockets, configuration, key ring, log",
                                       "reads the catalogue and builds the schema snapshot")),
    Box(210, 146, 460, 222, "Worker 1 … N: one event loop each", kind="group"),
    Box(225, 178, 130, 78, "HTTP server", ("granian", "TLS, compression,", "static files")),
    Box(375, 178, 130, 78, "Handler", ("the compiled steps", "of one endpoint:", "access, cache, …"), "hot"),
    Box(525, 178, 130, 78, "Binding", ("query string or", "JSON body to", "text arguments"), "hot"),
    Box(375, 280, 130, 78, "Rendering", ("rows to JSON, CSV,", "HTML in C, as", "they arrive"), "hot"),
    Box(525, 280, 130, 78, "Driver", ("connection pools,", "pipelining on", "libpq"), "hot"),
    Box(210, 386, 460, 52, "Shared state", ("cached responses, rate limits, message bus between the workers",)),
    Box(730, 150, 170, 106, "PostgreSQL", ("functions, procedures,", "tables, views;", "comments declare",
                                           "the endpoints"), "database"),
    Box(730, 290, 170, 62, "Other services", ("Redis, S3, identity", "providers, HTTP APIs")),
)  # fmt: skip

ARROWS = (
    "M150,203 H219",
    "M355,217 H369",
    "M505,217 H519",
    "M590,256 V274",
    "M655,300 H700 V203 H724",
    "M525,317 H511",
    "M375,317 H290 V262",
    "M815,150 V88 H676",
    "M440,120 V140",
    "M440,368 V380",
    "M655,330 H724",
)


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


def _text(x: int, y: int, text: str, kind: str) -> str:
    return f'<text x="{x}" y="{y}" class="{kind}">{escape(text)}</text>'


def drawing() -> str:
    """Return the SVG document."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'role="img" aria-label="Clients send requests to a worker of rowcall, which calls PostgreSQL">'
    )
    marker = (
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" style="fill:#374151;stroke:none"/></marker></defs>'
    )
    background = f'<rect width="{WIDTH}" height="{HEIGHT}" style="fill:#ffffff;stroke:none"/>'
    arrows = [f'<path d="{line}" marker-end="url(#tip)"/>' for line in ARROWS]
    parts = (head, f"<style>{STYLE}</style>", marker, background, *(box.svg() for box in BOXES), *arrows, "</svg>")
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    FILE.write_text(drawing(), encoding="utf-8")
