"""The reader of the manual's examples: what it must not overlook."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import RequestContext, fits, read_page

PAGE = """\
# A page

```json rowcall.json
{ "Service": { "RequiresAuthorization": false, "ExcludeNames": ["a", "b"] } }
```

```json
{ "only": "shown" }
```

```sql
select 1;
```

```http
GET /one

HTTP/1.1 204 No Content

POST /two?x=1
Accept: */*

{"a":1}

HTTP/1.1 200 OK
Content-Type: text/plain

first

third
```
"""


def _page(folder: Path, text: str) -> Path:
    path = folder / "page.md"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_page_is_parsed_into_configuration_sql_and_requests(tmp_path: Path) -> None:
    page = read_page(_page(tmp_path, PAGE))
    assert page.settings == {
        "Service:RequiresAuthorization": "false",
        "Service:ExcludeNames:0": "a",
        "Service:ExcludeNames:1": "b",
    }
    assert page.sql == "select 1;\n"
    assert page.contexts == (
        RequestContext(16, "GET", "/one", (), "", 204, (), ""),
        RequestContext(
            20, "POST", "/two?x=1", (("accept", "*/*"),), '{"a":1}', 200,
            (("content-type", "text/plain"),), "first\n\nthird",
        ),
    )  # fmt: skip
    assert PAGE.splitlines()[19] == "POST /two?x=1"


@pytest.mark.parametrize("response", ["", "HTTP/1.1 200 Fine\n", "HTTP/1.1 204 OK\n"])
def test_a_request_without_a_valid_response_is_refused(tmp_path: Path, response: str) -> None:
    with pytest.raises(ValueError, match="line 2"):
        read_page(_page(tmp_path, f"```http\nGET /one\n\n{response}```\n"))


@pytest.mark.parametrize(
    ("promised", "got", "expected"),
    [
        ("abc", "abc", True),
        ("abc", "abcd", False),
        ("a.c", "abc", False),
        ("[1,…,9]", "[1,2,\n3,9]", True),
        ("[1,…,9]", "[1,2,3,9", False),
        ("", "x", False),
    ],
)
def test_bodies_match_except_for_omitted_parts(promised: str, got: str, expected: bool) -> None:
    assert fits(promised, got) is expected
