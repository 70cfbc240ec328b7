"""Reports of a run for programs: JUnit XML, and the Test Anything Protocol."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from xml.etree import ElementTree

from rowcall.core.testing.outcome import Assertion, FileResult, Verdict

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NO_ASSERTIONS = "(no assertions)"


def junit(results: Sequence[FileResult], name: str, seconds: float) -> str:
    """Return a JUnit document (XML): one suite with a case for each assertion, and a skipped case for a file without
    assertions (testing-11). name: of the suite. seconds: duration of the whole run."""
    cases = [case for result in results for case in _cases(result)]
    suite = ElementTree.Element(
        "testsuite",
        {
            "name": name,
            "tests": str(len(cases)),
            "failures": str(sum(case.find("failure") is not None for case in cases)),
            "errors": str(sum(case.find("error") is not None for case in cases)),
            "skipped": str(sum(case.find("skipped") is not None for case in cases)),
            "time": f"{seconds:.3f}",
        },
    )
    suite.extend(cases)
    ElementTree.indent(suite)
    text = ElementTree.tostring(suite, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _cases(result: FileResult) -> Iterator[ElementTree.Element]:
    each = result.seconds / max(1, len(result.assertions))
    for assertion in result.assertions:
        case = _case(assertion.name, result.path, each)
        if assertion.verdict is not Verdict.PASS:
            kind = "failure" if assertion.verdict is Verdict.FAIL else "error"
            element = ElementTree.SubElement(case, kind, {"message": _text(assertion.message or assertion.name)})
            element.text = _text(assertion.place)
            if result.notices:
                notices = (f"{notice.severity.lower()}: {notice.message}" for notice in result.notices)
                ElementTree.SubElement(case, "system-out").text = _text("\n".join(notices))
        yield case
    if not result.assertions:
        case = _case(_NO_ASSERTIONS, result.path, each)
        ElementTree.SubElement(case, "skipped")
        yield case


def _case(name: str, path: str, seconds: float) -> ElementTree.Element:
    return ElementTree.Element("testcase", {"name": _text(name), "classname": _text(path), "time": f"{seconds:.3f}"})


def _text(text: str) -> str:
    """Return the text with U+FFFD in place of characters that XML cannot contain."""
    return _NOT_XML.sub("\ufffd", text)


def tap(results: Sequence[FileResult]) -> str:
    """Return a report of TAP version 14: a point for each assertion, with a YAML block for failures, and a skipped
    point for a file without assertions."""
    lines = ["TAP version 14"]
    number = 0
    for result in results:
        if not result.assertions:
            number += 1
            lines.append(f"ok {number} - {_point(result.path)} # SKIP no assertions")
        for assertion in result.assertions:
            number += 1
            lines += _tap_lines(number, result.path, assertion)
    return "\n".join((lines[0], f"1..{number}", *lines[1:], ""))


def _tap_lines(number: int, path: str, assertion: Assertion) -> Iterator[str]:
    passed = assertion.verdict is Verdict.PASS
    yield f"{'ok' if passed else 'not ok'} {number} - {_point(f'{path}: {assertion.name}')}"
    if passed:
        return
    yield "  ---"
    yield "  message: |"
    yield from (f"    {line}" for line in (assertion.message or assertion.name).splitlines())
    yield f"  severity: {'fail' if assertion.verdict is Verdict.FAIL else 'error'}"
    place = " ".join(assertion.place.split()).replace("'", "''")
    yield f"  at: '{place}'"
    yield "  ..."


def _point(text: str) -> str:
    return " ".join(text.split()).replace("\\", "\\\\").replace("#", "\\#")
