"""Endpoint coverage for programs: lcov's tracefile and Cobertura's XML.

Both formats count lines of source files. Here, the source file is a listing with one testable endpoint in each line. It
is written beside the report so that readers such as `genhtml` find it.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from rowcall.core.testing.coverage import Coverage, EndpointCalls

_DOCTYPE = '<!DOCTYPE coverage SYSTEM "http://cobertura.sourceforge.net/xml/coverage-04.dtd">'


def listing(coverage: Coverage) -> str:
    """Return a text with one line for each testable endpoint: method and path, then the routine. The line numbers are
    those in the reports."""
    width = max((len(endpoint.name) for endpoint in coverage.endpoints), default=0)
    return "".join(f"{endpoint.name:<{width}}  {endpoint.routine}\n" for endpoint in coverage.endpoints)


def lcov(coverage: Coverage, source: str) -> str:
    """Return a tracefile as in geninfo(1): each endpoint is a function and a line. source: path of the file with the
    listing."""
    numbered = list(enumerate(coverage.endpoints, 1))
    lines = ["TN:rowcall", f"SF:{source}"]
    lines += (f"FN:{number},{endpoint.name}" for number, endpoint in numbered)
    lines += (f"FNDA:{endpoint.calls},{endpoint.name}" for _, endpoint in numbered)
    lines += (f"FNF:{len(numbered)}", f"FNH:{coverage.covered}")
    lines += (f"DA:{number},{endpoint.calls}" for number, endpoint in numbered)
    lines += (f"LF:{len(numbered)}", f"LH:{coverage.covered}", "end_of_record", "")
    return "\n".join(lines)


def cobertura(coverage: Coverage, folder: str, source: str, milliseconds: int) -> str:
    """Return a document of coverage-04.dtd: one class, in which each endpoint is a method and a line.

    folder: path of the folder with the listing. source: file name of the listing in it. milliseconds: Unix time of the
    report.
    """
    rates = {"line-rate": _rate(coverage.endpoints), "branch-rate": "0", "complexity": "0"}
    root = ElementTree.Element("coverage", {
        **rates, "lines-covered": str(coverage.covered), "lines-valid": str(len(coverage.endpoints)),
        "branches-covered": "0", "branches-valid": "0", "version": "rowcall", "timestamp": str(milliseconds),
    })  # fmt: skip
    sources = ElementTree.SubElement(root, "sources")
    ElementTree.SubElement(sources, "source").text = folder
    packages = ElementTree.SubElement(root, "packages")
    package = ElementTree.SubElement(packages, "package", {"name": "endpoints", **rates})
    classes = ElementTree.SubElement(package, "classes")
    unit = ElementTree.SubElement(classes, "class", {"name": "endpoints", "filename": source, **rates})
    methods = ElementTree.SubElement(unit, "methods")
    lines = ElementTree.SubElement(unit, "lines")
    for number, endpoint in enumerate(coverage.endpoints, 1):
        own = {"name": endpoint.name, "signature": endpoint.routine, "line-rate": _rate([endpoint]), "branch-rate": "0"}
        method = ElementTree.SubElement(methods, "method", {**own, "complexity": "0"})
        line = {"number": str(number), "hits": str(endpoint.calls), "branch": "false"}
        ElementTree.SubElement(ElementTree.SubElement(method, "lines"), "line", line)
        ElementTree.SubElement(lines, "line", line)
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{_DOCTYPE}\n{text}\n'


def _rate(endpoints: Sequence[EndpointCalls]) -> str:
    """Return the share of called endpoints, between 0 and 1; 1 if there are none."""
    share = sum(endpoint.calls > 0 for endpoint in endpoints) / len(endpoints) if endpoints else 1.0
    return f"{share:.4g}"
