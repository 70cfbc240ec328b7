"""Lines that resemble annotations and are none."""

from __future__ import annotations

import pytest

from rowcall.core.annotations import BY_WORD
from rowcall.core.annotations.declaration import Draft
from rowcall.core.building.comments import read_comment


def read(comment: str) -> Draft:
    draft = Draft("shop.f()", "POST", tags=frozenset({"function"}), parameters=frozenset({"_n"}))
    read_comment(comment, draft)
    return draft


def warnings(comment: str) -> list[str]:
    return [diagnostic.message for diagnostic in read(comment).diagnostics]


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("authorise boss", "authorize"),
        ("allow_anonymus", "allow_anonymous"),
        ("HTPP GET /x", "http"),
        ("htttp", "http"),
        ("timout 5s", "timeout"),
        ("cache_expire 5s", "cache_expires"),
        ("@singel", "single"),
        ("@parm _n is number", "param"),
        ("@parm _n number int default 5", "param"),
        ("@parm :_n default 5", "param"),
        ("parm :_n is number default 5", "param"),
        ("paramter $1 number type is int", "parameter"),
    ],
)
def test_a_near_miss_is_reported_with_a_suggestion(line: str, meant: str) -> None:
    [message] = warnings(line)
    assert f"did you mean {meant!r}" in message


@pytest.mark.parametrize(
    ("line", "refused", "meant_http"),
    [
        ("authorize\tboss", True, False),
        ("@authorize\u00a0boss", True, False),
        ("authorize\u200b boss", True, False),
        ("* authorize boss", True, False),
        ("encrypt\t_n", True, False),
        ("validate\t_n using required", True, False),
        ("HTTP\tGET /x", False, True),
        ("* HTTP GET /x", False, True),
        ("timeout\t5s", False, False),
    ],
)
def test_words_without_blanks_between_them_are_reported(line: str, refused: bool, meant_http: bool) -> None:
    draft = read(line)
    assert ["with blanks between its words" in item.message for item in draft.diagnostics] == [True]
    assert (draft.refused, draft.meant_http, draft.exposed) == (refused, meant_http, False)
    assert draft.prose == []


@pytest.mark.parametrize("line", ["* authorize the callers of it", "- path of the file", "* single"])
def test_sentences_and_lists_with_other_blanks_are_prose(line: str) -> None:
    draft = read(line)
    assert (draft.diagnostics, draft.refused) == ([], False)


def test_secrets_behind_a_tab_are_hidden() -> None:
    [diagnostic] = read("basic_auth\tbo\tswordfish").diagnostics
    assert "swordfish" not in f"{diagnostic.line}{diagnostic.message}"


@pytest.mark.parametrize(
    "line",
    [
        "authorise boss",
        "authoriz",
        "@authrize clerk, boss",
        "intrnal",
        "disabeld",
        "user_parametrs",
        "basic_auht bo secret",
        "encrpt _n",
        "encrpt pin",
        "Encrypet _n",
        "@decyrpt pin, card_no",
        "paramter_hash _n",
        "rate_limter fast",
        "role_from_clam",
        "user_contxt",
        "sensitve",
        "validte _n using required",
        "parm _h is hash of _n",
        "rate_limter = fast",
        "paramter_hash = _n",
        "user_parameter = true",
    ],
)
def test_a_near_miss_of_a_protective_annotation_leaves_the_endpoint_out(line: str) -> None:
    draft = read(f"HTTP\nallow_anonymous\n{line}")
    assert draft.refused
    assert "did you mean" in draft.diagnostics[0].message


@pytest.mark.parametrize(
    "line",
    [
        "allow_anonymus",  # closed without it
        "Authorises a clerk",
        "authorise a payment",
        "Disables users",
        "disables one user",
        "Interval in days",
        "interval",
        "external id",
        "Authored by Kim",
        "timout 5s",
        "project list",
        "product codes",
        "Project n",
        "Encrypts values",
        "encrypts the values",
        "Validates _n",
        "validated input",
        "Sensible defaults",
        "parm _n is number",
        "colour = blue",
        "project = north",
        "core = 4",
        "cores = 4",
        "fs_check_image = false",
    ],
)
def test_other_lines_do_not_leave_an_endpoint_out(line: str) -> None:
    assert not read(f"HTTP\n{line}").refused


@pytest.mark.parametrize(
    "line",
    [
        "The orders of a customer",
        "File of the day",
        "Paths of all the files in there",
        "See the wiki",
        "Total of all",
        "ok",
        "7",
    ],
)
def test_prose_is_not_reported_as_near_miss(line: str) -> None:
    draft = read(line)
    assert (draft.prose, draft.diagnostics) == ([line], [])


@pytest.mark.parametrize(
    "line",
    [
        "validate _n required",
        "validate _n required please",
        "@validate n",
        "parameter_hash",
        "password_rules",
        "password_rules _n never",
        "rate_limiter",
        "cors maybe",
        "encrypt = _n",
        "decrypt = maybe",
        "user_parameters = yes",
        "role_from_claim = role",
        "sse_scope unknown",
        "check_text = maybe",
        "encrypt: _n",
        "encrypted: yes",
        "rate_limiter: fast",
        "authorize = boss",
        "sensitive = true",
        "validate = _n",
    ],
)
def test_a_bad_value_of_a_protective_annotation_leaves_the_endpoint_out(line: str) -> None:
    draft = read(f"HTTP\n{line}")
    assert draft.refused
    assert draft.diagnostics[0].line == line


@pytest.mark.parametrize(
    "line",
    [
        "Validate the input against the schema.",
        "Validate input first",
        "validation of input",
        "validate: see the wiki",
        "Encrypted: yes",
        "Protected: by the firewall",
        "internal = false",
        "authorize = off",
        "encrypt = false",
        "check_text = {_n}",
    ],
)
def test_sentences_and_disabled_switches_do_not_leave_an_endpoint_out(line: str) -> None:
    assert not read(f"HTTP\n{line}").refused


@pytest.mark.parametrize("line", ["authorize: boss", "Allow_Anonymous: true", "login: yes", "internal: true"])
def test_a_header_named_like_an_access_annotation_leaves_the_endpoint_out(line: str) -> None:
    draft = read(f"HTTP\n{line}")
    assert draft.headers == []
    assert draft.refused
    assert "did you mean" in draft.diagnostics[0].message


def test_a_header_named_like_another_annotation_is_dropped_and_reported() -> None:
    draft = read("HTTP\ntimeout: 1s\nX-Real: yes")
    assert (draft.headers, draft.refused) == ([("X-Real", "yes")], False)
    assert "did you mean `timeout 1s`?" in draft.diagnostics[0].message
    assert "did you mean `tsclient = false`?" in warnings("tsclient: false")[0]


@pytest.mark.parametrize(
    "line", ["tsclient", "@tsclient false", "tsclient_module yard", "excel_sheet_name Parts of it"]
)
def test_an_annotation_without_its_equals_sign_is_reported(line: str) -> None:
    [message] = warnings(line)
    assert message.startswith(
        f"this is no annotation: it is written `{line.split()[0].strip('@').removeprefix('excel_')} ="
    )


@pytest.mark.parametrize("name", ["Cache-Control", "Content-Disposition", "ETag", "Location", "Link", "Vary", "Server"])
def test_headers_of_http_are_not_annotations(name: str) -> None:
    assert (read(f"HTTP\n{name}: x").headers, name.lower() in BY_WORD) == ([(name, "x")], name in ("ETag", "Vary"))


@pytest.mark.parametrize(
    ("line", "refused"),
    [
        ("HTTP GET /x allow_anonymous", True),
        ("HTTP GET allow_anonymous", True),
        ("HTTP GET /x cached", False),
        ("HTTP FETCH /x", False),
        ("HTTP FETCH", False),
        ("allow_anonymous for guests", True),
        ("single customer view", False),
        ("param _n defualt 3", False),
        ("validate _n required", True),
        ("timeout 5s or more", False),
        ("timeout", False),
    ],
)
def test_unexpected_words_of_an_annotation_are_reported(line: str, refused: bool) -> None:
    draft = read(line)
    assert len(draft.diagnostics) == 1
    assert draft.refused is refused


@pytest.mark.parametrize(
    "line",
    ["HTTP", "HTTP PATCH /x", "HTTP QUERY", "HTTP /x", "HTTP x", "HTTP GET /x", "single", "single = true", "raw",
     "authorize boss, clerk", "validate _n using required, email", "param _n default 3", "timeout 2 minutes"],
)  # fmt: skip
def test_valid_annotations_are_not_reported(line: str) -> None:
    assert warnings(line) == []


def test_a_timeout_in_minutes_is_read() -> None:
    assert read("timeout 2 minutes").changes["timeout"] == 120


@pytest.mark.parametrize(
    ("line", "served"),
    [("HTTP GTE /x", "POST /x"), ("HTTP GET /x please", "POST at the default path"), ("HTTP FETCH", "POST /fetch")],
)
def test_a_mistake_in_an_http_line_is_reported_with_the_served_route(line: str, served: str) -> None:
    draft = read(line)
    assert [item.message.partition("; served is ")[2] for item in draft.diagnostics] == [served]


@pytest.mark.parametrize("line", ["GET /x", "get /x/{id}", "@POST /x", "DELETE /"])
def test_a_route_without_http_is_a_warning(line: str) -> None:
    draft = read(f"{line}\nLists the parcels.")
    assert [item.message for item in draft.diagnostics] == [
        f"without HTTP in front this is prose; write `HTTP {line.removeprefix('@')}`"
    ]
    assert draft.meant_http


@pytest.mark.parametrize(
    "comment",
    ["Get the user", "get /etc/passwd from disk", "GET", "/x", "FETCH /x", "Lists it.\nGET /x", "GET /x\nHTTP GET /y",
     "@author Kim of the yard office", "@return the parcels of one customer"],
)  # fmt: skip
def test_prose_and_exposed_routines_are_not_reported_as_route_without_http(comment: str) -> None:
    draft = read(comment)
    assert (draft.diagnostics, draft.meant_http) == ([], False)


def test_comments_of_extensions_are_not_reported_as_route_without_http() -> None:
    draft = Draft("shop.f()", "POST", tags=frozenset({"function"}), of_extension=True)
    read_comment("GET /x", draft)
    assert (draft.diagnostics, draft.meant_http) == ([], False)
