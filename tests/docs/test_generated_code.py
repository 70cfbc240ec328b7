"""What the manual's examples about generated clients show is what is generated, word for word."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rowcall.core.annotations import GROUPS
from rowcall.core.annotations.manual import examples
from tests.docs.pages import FOLDER
from tests.harness.database import Database
from tests.http.conftest import Serve

EXAMPLES = examples((FOLDER / "examples" / "client_code.md").read_text(encoding="utf-8"))
NAMES = [one.name for one in GROUPS["client_code"]]
P = "Service:ClientCodeGen:"
D = "Service:DartClientCodeGen:"
SETTINGS = {
    P + "Enabled": "true",
    P + "IncludeHost": "false",
    P + "CommentHeader": "None",
    P + "CreateSeparateTypeFile": "false",
    P + "ReactQuery:Enabled": "true",
    D + "Enabled": "true",
    D + "IncludeHost": "false",
    D + "CommentHeader": "None",
}

_SQL = re.compile(r"^```sql\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(
    r"^```(?:ts|dart)(?: (?P<out>left out)| (?P<file>\w+\.\w+))?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
_ANNOTATION = re.compile(r"^(?:ts|dart)client\w* = \w+(?=';$)", re.MULTILINE)


@pytest.mark.slow
def test_the_documented_code_is_generated_because_of_the_annotation(
    database: Database, serve_once: Serve, tmp_path: Path
) -> None:
    """With the annotations there is what ```ts or ```dart shows, and not what is left out; without them the reverse."""
    sql = "".join(text for name in NAMES for text in _SQL.findall(EXAMPLES[name]))
    without, count = _ANNOTATION.subn("", sql)
    assert count == len(NAMES)
    plain = _generated(database, serve_once, without, tmp_path / "plain")
    annotated = _generated(
        database, serve_once, sql.replace("create function", "create or replace function"), tmp_path / "annotated"
    )
    wrong = []
    for name in NAMES:
        shown = list(_CODE.finditer(EXAMPLES[name]))
        assert shown, name
        for block in shown:
            file = block["file"] or ""
            expected, other = (plain, annotated) if block["out"] else (annotated, plain)
            if block["text"] not in _of(expected, file) or block["text"] in _of(other, file):
                wrong.append(name)
    assert wrong == [], f"{plain}\n{annotated}"


def _generated(database: Database, serve_once: Serve, sql: str, folder: Path) -> dict[str, str]:
    files = {
        P + "FilePath": str(folder / "{0}.ts"),
        P + "ReactQuery:FilePath": str(folder / "{0}Hooks.ts"),
        D + "FilePath": str(folder / "{0}.dart"),
    }
    serve_once(database, sql, {**SETTINGS, **files})
    return {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}


def _of(made: dict[str, str], file: str) -> str:
    return made.get(file, "") if file else "\n".join(made.values())
