"""The language of comments over HTTP: lines, blocks, modes, custom parameters (comments-1 to comments-29).

Methods, paths and tags in their plain forms: test_endpoints.
"""

from __future__ import annotations

import pytest

from tests.harness.database import Database
from tests.harness.expect import JSON, TEXT, answer, problem
from tests.harness.service import Service
from tests.http.conftest import Serve

COMMENTS = {
    "plain": "HTTP GET /plain",
    "carriage_returns": "First line\r\rHTTP GET /cr\r\nX-One: a\r\n\r\n   X-Two: b   ",
    "tabs": "\t HTTP GET /tabs \t\n\tX-One: a\tb",
    "tab_is_no_blank": "HTTP GET /tab-word\nsingle\tcustomer",
    "any_case": "hTTp gEt /Any/CASE\nsInGlE\n@X-One: a",
    "at_signs": "@HTTP GET /at\n@X-One: a\n@single = true\n@raw = false",
    "prose_acts": "HTTP\nPath to the file\nSingle customer view\nNote: see the wiki",
    "prose": "Adds what HTTP is not.\nThe next one is.\nHTTP GET /prose\n- list\n# heading\n{x}\n= 5\n: x",
    "later_wins": "HTTP GET /first\nHTTP GET /second\nsingle\nsingle=false\nContent-Type: text/a\ncontent_type: text/b",
    "headers": "HTTP GET /headers\nX-One: a\nX-Two: c=d:e\nx-one: b\nCache-Control: max-age=60, public",
    "custom": "HTTP GET /custom\ncolour = blue: green\n@shape=round\nX-One: {colour}",
    "lists": "HTTP GET /lists\nencrypt _a,_b\nencrypt _a , _b\nauthorize\nallow_anonymous",
    "muted": "for procedure, volatile\nHTTP GET /muted\nX-One: muted\nfor stable\nHTTP GET /unmuted\nX-Two: b",
    "muted_values": "HTTP GET /muted-values\nfor nothing\nX-One: a\nsingle\nraw = true\ndisabled\nfor\nvoid",
    "both_tags": "HTTP\nfor function\nHTTP GET /both-tags\nfor stable, procedure\nX-One: stable",
    "tags_words": "HTTP GET /tag-words\ntags volatile\ndisabled\ntag Function\nX-One: a",
    "disabled_by_tag": "HTTP GET /disabled-by-tag\ndisabled stable",
    "disabled_elsewhere": "HTTP GET /disabled-elsewhere\ndisabled procedure, volatile",
    "enabled_by_tag": "HTTP GET /enabled-by-tag\ndisabled\nenabled procedure\nenabled function",
    "still_disabled": "HTTP GET /still-disabled\ndisabled\nenabled procedure",
    "hidden": "HTTP GET /hidden\ninternal_only",
    "path_line": "PATH New/Place/\nHTTP POST",
    "unknown_words": "HTTP GET /unknown-words\nnot_an_annotation at all\ntimeout\nbuffer_rows",
}


def _sql() -> str:
    made = []
    for name, comment in COMMENTS.items():
        quoted = comment.replace("'", "''")
        made.append(
            f"create function {name}(_a int default 1, _b int default 2) returns setof int language sql stable as"
        )
        made.append(f"'select * from (values (_a), (_b)) as pair';comment on function {name}(int, int) is '{quoted}';")
    return "\n".join(made)


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, _sql())


SET = (200, JSON, "[1,2]")
ONE = (200, JSON, "1")


@pytest.mark.parametrize(
    ("path", "expected", "headers"),
    [
        ("/plain", SET, {"x-one": []}),
        ("/cr", SET, {"x-one": ["a"], "x-two": ["b"]}),
        ("/tabs", SET, {"x-one": ["a\tb"]}),
        ("/tab-word", SET, {}),
        ("/any/case", ONE, {"x-one": ["a"]}),
        ("/at", ONE, {"x-one": ["a"]}),
        ("/to", ONE, {"note": ["see the wiki"]}),
        ("/prose", SET, {}),
        ("/second", (200, "text/b", "[1,2]"), {}),
        ("/headers", SET, {"x-one": ["a", "b"], "x-two": ["c=d:e"], "cache-control": ["max-age=60, public"]}),
        ("/custom", SET, {"x-one": ["{colour}"], "colour": [], "shape": []}),
        ("/lists", SET, {}),
        ("/unmuted", SET, {"x-one": [], "x-two": ["b"]}),
        ("/muted-values", SET, {"x-one": []}),
        ("/both-tags", SET, {"x-one": ["stable"]}),
        ("/tag-words", SET, {"x-one": ["a"]}),
        ("/disabled-elsewhere", SET, {}),
        ("/enabled-by-tag", SET, {}),
        ("/unknown-words", SET, {}),
    ],
)
def test_comment_determines_response_and_headers(
    service: Service, path: str, expected: tuple[int, str, str], headers: dict[str, list[str]]
) -> None:
    response = service.get(path)
    got = response.status_code, response.headers.get("content-type"), response.text
    assert got == expected
    assert {name: response.headers.get_list(name) for name in headers} == headers


def test_path_line_may_precede_the_http_annotation(service: Service) -> None:
    assert answer(service.post("/new/place", json={"a": 3})) == (200, JSON, "[3,2]")
    problem(service.get("/new/place"), 405)


@pytest.mark.parametrize(
    "path", ["/first", "/muted", "/disabled-by-tag", "/still-disabled", "/api/plain", "/api/muted"]
)
def test_paths_of_unexposed_routines_are_not_found(service: Service, path: str) -> None:
    problem(service.get(path), 404)


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS"])
def test_internal_endpoint_is_not_found_by_clients(service: Service, method: str) -> None:
    response = service.request(method, "/hidden")
    assert response.status_code == 404
    assert "allow" not in response.headers


MODES = """
create function annotated(_n int default 1) returns int language sql stable as 'select _n';
comment on function annotated(int) is E'HTTP GET /annotated\\nX-One: a';
create function modified(_n int default 2) returns int language sql stable as 'select _n';
comment on function modified(int) is E'path /modified\\nX-One: b';
create function bare(_n int default 3) returns int language sql stable as 'select _n';
create function switched_off() returns int language sql stable as 'select 4';
comment on function switched_off() is E'HTTP\\ndisabled';
create function muted() returns int language sql stable as 'select 5';
comment on function muted() is E'for procedure\\nHTTP GET /muted';
create function kept_inside() returns int language sql stable as 'select 6';
comment on function kept_inside() is 'internal';
"""


@pytest.mark.parametrize(
    ("mode", "served"),
    [
        ("OnlyAnnotated", {"/annotated": ("1", "a")}),
        (
            "ParseAll",
            {"/annotated": ("1", "a"), "/modified": ("2", "b"), "/api/bare": ("3", None), "/api/muted": ("5", None)},
        ),
        (
            "Ignore",
            {
                "/api/annotated": ("1", None),
                "/api/modified": ("2", None),
                "/api/bare": ("3", None),
                "/api/switched-off": ("4", None),
                "/api/muted": ("5", None),
                "/api/kept-inside": ("6", None),
            },
        ),
    ],
)
def test_comments_mode_selects_the_annotations_in_effect(
    own_database: Database, serve_once: Serve, mode: str, served: dict[str, tuple[str, str | None]]
) -> None:
    service = serve_once(own_database, MODES, {"Service:CommentsMode": mode}, workers=2)
    names = ("annotated", "modified", "bare", "switched-off", "muted", "kept-inside")
    reply = {path: service.get(path) for name in names for path in (f"/{name}", f"/api/{name}")}
    answered = {path: response for path, response in reply.items() if response.status_code != 404}
    assert {path: (item.text, item.headers.get("x-one")) for path, item in answered.items()} == served
    assert all(answer(item)[:2] == (200, TEXT) for item in answered.values())
