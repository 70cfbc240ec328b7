"""Effects of comment lines (comments-1 to comments-6, comments-9 to comments-29)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowcall.core.annotations import BY_WORD, CATALOGUE
from rowcall.core.annotations.declaration import Draft
from rowcall.core.annotations.rows.exposure import TAGS
from rowcall.core.building.comments import read_comment
from rowcall.core.catalogue.source import Transport
from rowcall.core.endpoint.capabilities import Caching
from rowcall.core.endpoint.endpoint import NullText, Options, QueryNull

QUERY = Options(transport=Transport.QUERY)


def read(comment: str, tags: frozenset[str] = frozenset({"function", "volatile"})) -> Draft:
    draft = Draft(name="f()", method="GET", tags=tags, parameters=frozenset({"_token"}))
    read_comment(comment, draft)
    return draft


def options(comment: str) -> Options:
    return read(comment).options(QUERY)


def messages(comment: str) -> list[str]:
    return [diagnostic.message for diagnostic in read(comment).diagnostics]


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("HTTP", ("GET", None)),
        ("http post", ("POST", None)),
        ("HTTP orders/open", ("GET", "/orders/open")),
        ("HTTP PUT /Orders/{Id}", ("PUT", "/orders/{id}")),
        ("HTTP QUERY /x", ("QUERY", "/x")),
        ("HTTP foo /bar", ("GET", "/bar")),
        ("HTTP PATCH", ("PATCH", None)),
        ("HTTP POST /a b", ("GET", None)),
        ("HTTP GET /a/{b?}", ("GET", "/a/{b?}")),
        ("@HTTP GET /a=b", ("GET", "/a=b")),
        ("HTTP /x/", ("GET", "/x/")),
    ],
)
def test_http_exposes_and_sets_method_and_path(comment: str, expected: tuple[str, str | None]) -> None:
    draft = read(comment)
    assert draft.exposed
    assert (draft.method, draft.path) == expected


@pytest.mark.parametrize(
    ("comment", "transport"),
    [
        ("HTTP GET", Transport.QUERY),
        ("HTTP DELETE", Transport.BODY),
        ("HTTP QUERY", Transport.BODY),
        ("HTTP", Transport.QUERY),
        ("HTTP POST\nrequest_param_type query_string", Transport.QUERY),
        ("param_type body\nHTTP GET", Transport.QUERY),
        ("@param_type BODY_JSON", Transport.BODY),
    ],
)
def test_a_method_resets_the_transport_and_the_last_line_applies(comment: str, transport: Transport) -> None:
    assert options(comment).transport is transport


@pytest.mark.parametrize(
    "path", ["http://example.com/x", "/a?b=1", "/a#b", "/{a}-{b}", "/{a?}/b", "/{a", "/a}b", "/a\\b"]
)
def test_a_path_that_cannot_be_routed_is_refused_and_the_rest_of_the_line_applies(path: str) -> None:
    draft = read(f"HTTP POST {path}")
    assert (draft.exposed, draft.method, draft.path) == (True, "POST", None)
    assert len(draft.diagnostics) == 1


def test_a_path_without_http_does_not_expose() -> None:
    draft = read("path /Some/Where")
    assert (draft.exposed, draft.path) == (False, "/some/where")


@pytest.mark.parametrize(
    ("comment", "field", "value"),
    [
        ("allow_anonymous", "requires_authorization", False),
        ("@anon", "requires_authorization", False),
        ("anonymous\nauthorize", "requires_authorization", True),
        ("authorize Admin, ops  boss", "roles", ("Admin", "ops", "boss")),
        ("authorize admin\nauthorize", "roles", ("admin",)),
        ("authorize admin\nallow_anonymous", "roles", ()),
        ("authorize admin\nallow_anonymous", "requires_authorization", False),
        ("authorize within 5 minutes\nallow_anonymous", "fresh", None),
        ("authorize admin\nallow_anonymous\nauthorize ops", "roles", ("ops",)),
        ("timeout 5 minutes", "timeout", 300.0),
        ("timeout 00:00:01", "timeout", 1.0),
        ("timeout = 5 minutes", "timeout", 300.0),
        ("@command_timeout 2min", "timeout", 120.0),
        ("timeout 5s\ntimeout soon", "timeout", None),
        ("timeout 5s\ntimeout = soon", "timeout", 5.0),
        ("buffer_rows 1", "buffer_rows", 1),
        ("@buffer = 100", "buffer_rows", 100),
        ("buffer 7\nbuffer -1", "buffer_rows", 7),
        ("query_string_null_handling null_literal", "query_null", QueryNull.NULL_LITERAL),
        ("query_null EMPTY", "query_null", QueryNull.EMPTY_STRING),
        ("text_response_null_handling no_content", "null_text", NullText.NO_CONTENT),
        ("response_null 204", "null_text", NullText.NO_CONTENT),
        ("response_null_handling null", "null_text", NullText.NULL_LITERAL),
        ("@text_response_null_handling = Null_Literal", "null_text", NullText.NULL_LITERAL),
        ("parameter_hash secret", "hashes", (("secret", "secret"),)),
        ("@parameter_hash = secret", "hashes", (("secret", "secret"),)),
        ("parameter_hash =", "hashes", ()),
        ("password_rules secret", "password_rules", (("secret", "on"),)),
        ("password_rules secret OFF", "password_rules", (("secret", "off"),)),
        ("single", "single", True),
        ("@single_record = true", "single", True),
        ("single\nsingle = false", "single", False),
        ("void = TRUE", "void", True),
        ("void = maybe", "void", False),
        ("nested_composite", "nested", True),
        ("internal_only", "internal", True),
        ("Single customer view", "single", True),
        ("raw", "raw", True),
        ("@raw_mode = true", "raw", True),
        ("raw_results\nraw = FALSE", "raw", False),
        ("separator ,", "separator", ","),
        ("@raw_separator   ,", "separator", "  ,"),
        (r"separator \t\x20\u00e9\\", "separator", "\t é\\"),
        (r"separator \q", "separator", "\\q"),
        ("separator , ; 1", "separator", ", ; 1"),
        ("separator = :", "separator", ":"),
        ("separator = =", "separator", "="),
        ("separator =", "separator", ""),
        ("separator ,\nseparator", "separator", ","),
        ("separator :", "separator", None),
        (r"new_line \r\n", "new_line", "\r\n"),
        (r"@raw_new_line = \n", "new_line", "\n"),
        ("columns", "column_names", True),
        ("names = true", "column_names", True),
        ("column_names\ncolumns = false", "column_names", False),
    ],
)
def test_annotations_change_their_option(comment: str, field: str, value: object) -> None:
    assert getattr(options(comment), field) == value


@pytest.mark.parametrize(
    ("comment", "headers"),
    [
        ("X-A: 1\nX-A: 2", (("X-A", "1"), ("X-A", "2"))),
        ("Cache-Control: max-age=60", (("Cache-Control", "max-age=60"),)),
        ("@X-A: 1", (("X-A", "1"),)),
        ("Größe: see wiki", ()),
        (": x", ()),
        ("two words: x", ()),
    ],
)
def test_header_lines_are_parsed(comment: str, headers: tuple[tuple[str, str], ...]) -> None:
    assert options(comment).headers == headers


@pytest.mark.parametrize("name", ["Content-Type", "content_type", "CONTENT-TYPE"])
def test_the_last_content_type_applies_and_is_not_a_header_line(name: str) -> None:
    result = options(f"{name}: text/csv\n{name}: text/html")
    assert (result.content_type, result.headers) == ("text/html", ())


@pytest.mark.parametrize("name", ["Content-Length", "transfer-encoding", "Connection", "Upgrade"])
def test_a_header_line_cannot_change_how_messages_are_framed(name: str) -> None:
    assert options(f"{name}: 99").headers == ()
    assert messages(f"{name}: 99") == [f"the header {name} is set by the service itself"]


def test_a_header_value_cannot_smuggle_control_characters() -> None:
    assert options("X-A: a\x00b").headers == ()
    assert messages("X-A: a\x00b") == ["a header value cannot contain control characters"]


@pytest.mark.parametrize(
    ("comment", "custom"),
    [
        ("house_style = html", (("house_style", "html"),)),
        ("@house_style = html", (("house_style", "html"),)),
        ("a = 1\nb = 2\na = 3", (("a", "3"), ("b", "2"))),
        ("X = a: b", (("X", "a: b"),)),
        ("nested = true", (("nested", "true"),)),
        (r"sep = \t\u0041\\", (("sep", "\tA\\"),)),
        (r"folder = C:\dir", (("folder", r"C:\dir"),)),
        ("= 5", ()),
        ("@ = 5", ()),
        ("param x = 5", ()),
    ],
)
def test_custom_parameters_are_parsed(comment: str, custom: tuple[tuple[str, str], ...]) -> None:
    assert dict(options(comment).custom) == dict(custom)


def test_an_unknown_escape_is_reported() -> None:
    assert messages(r"folder = C:\dir") == [r"'\d' is not an escape sequence; the value stays as written"]


@pytest.mark.parametrize("comment", [r"_token = select '\d' || {a}", r"@_token = select '\d' || {a}"])
def test_an_annotation_with_a_parameter_as_key_is_an_expression(comment: str) -> None:
    assert options(comment).expressions == (("_token", r"select '\d' || {a}"),)


@pytest.mark.parametrize(
    "comment",
    ["for procedure\nHTTP\nsingle", "tag stable, immutable\nHTTP\nsingle", "for\nHTTP\nsingle"],
)
def test_a_block_about_other_objects_is_muted(comment: str) -> None:
    draft = read(comment)
    assert not draft.exposed
    assert draft.prose == []


def test_a_block_ends_at_the_next_one() -> None:
    draft = read("HTTP\nfor procedure\nsingle\nFOR Function\nvoid")
    result = draft.options(QUERY)
    assert (draft.exposed, result.single, result.void) == (True, False, True)


def test_for_lines_are_prose_for_objects_without_tags() -> None:
    draft = read("for procedure\nHTTP", tags=frozenset())
    assert (draft.exposed, draft.prose) == (True, ["for procedure"])


@pytest.mark.parametrize(
    ("comment", "enabled"),
    [
        ("disabled", False),
        ("disabled\nenabled", True),
        ("disabled function", False),
        ("disabled procedure", True),
        ("disabled\nenabled procedure", False),
        ("disabled\n@enabled volatile, x", True),
    ],
)
def test_the_final_state_of_disabled_and_enabled_counts(comment: str, enabled: bool) -> None:
    assert read(comment).enabled is enabled


@pytest.mark.parametrize(
    "comment",
    ["path", "param_type nowhere", "query_null maybe", "query_null", "response_null", "response_null x", "timeout x",
     "buffer_rows many"],
)  # fmt: skip
def test_bad_values_are_reported_with_their_line(comment: str) -> None:
    (diagnostic,) = read(comment).diagnostics
    assert (diagnostic.object, diagnostic.line) == ("f()", comment)


@pytest.mark.parametrize("comment", ["Single\tbeds are listed first.", "* path of the bed", "Adds a label.", ""])
def test_other_lines_are_prose_without_a_warning(comment: str) -> None:
    draft = read(comment)
    assert draft.prose == ([comment] if comment else [])
    assert (draft.applied, draft.diagnostics) == ([], [])


@pytest.mark.parametrize(
    "comment",
    [
        "@parm depot text",
        "@",
        "proxi http://kim:swordfish@127.0.0.1",
        "basic_auht bo swordfish",
        "basic_auth: bo swordfish",
        "tsclient_module one two three four",
        "for procedure\nX-Key: swordfish\nproxy http://kim:swordfish@127.0.0.1\nkey = swordfish",
    ],
)
def test_lines_that_resemble_annotations_are_not_part_of_the_prose(comment: str) -> None:
    draft = read(f"{comment}\nfor function\nAdds one.")
    assert draft.prose == ["Adds one."]


def test_prose_and_annotations_keep_their_order() -> None:
    draft = read("  First. \r\n\r\n@single\rThen\nHTTP\nlast")
    assert draft.prose == ["First.", "Then", "last"]
    assert draft.applied == ["@single", "HTTP"]


SHOWN = [word for word, annotation in BY_WORD.items() if not annotation.secret]
WORDS = st.sampled_from([*SHOWN, *(word.upper() for word in SHOWN), "GET", "/a/{b}", "=", ":", "@", "5s", "{", "\\"])


@pytest.mark.parametrize(
    "comment",
    [
        "job retries \u00b2",
        "job priority \u00b2",
        "job retries " + "9" * 5000,
        "job concurrency " + "9" * 5000 + " per _token",
        "schedule */" + "9" * 5000 + " * * * *",
    ],
)
def test_a_number_that_cannot_be_read_is_a_warning(comment: str) -> None:
    assert len(messages(comment)) == 1


@given(st.one_of(st.text(), st.lists(st.one_of(WORDS, st.text(max_size=6))).map(" ".join)))
def test_any_text_is_parsed(comment: str) -> None:
    draft = read(comment)
    draft.options(QUERY)
    lines = [line.strip() for line in comment.replace("\r", "\n").split("\n") if line.strip()]
    accounted = {*draft.applied, *draft.prose, *draft.withheld, *(diagnostic.line for diagnostic in draft.diagnostics)}
    # A `for` block may apply to other objects; what follows is then no part of this one. All lines before it are.
    words = [(line.lstrip("@").split() or [""])[0].casefold() for line in lines]
    first = next((place for place, word in enumerate(words) if word in TAGS.aliases), len(lines))
    assert set(lines[:first]) <= accounted <= set(lines)


def test_every_annotation_is_declared_completely() -> None:
    for annotation in CATALOGUE:
        assert annotation.name
        assert annotation.syntax
        assert annotation.description.endswith(".")
        assert all(alias == alias.lower() for alias in annotation.aliases)
    assert len(BY_WORD) == sum(len(annotation.aliases) for annotation in CATALOGUE)
    assert len({annotation.name for annotation in CATALOGUE}) == len(CATALOGUE)


def test_every_changed_option_exists() -> None:
    known = {field.name for field in fields(Options)}
    draft = read("\n".join(f"{word} x" for word in BY_WORD))
    assert draft.changes.keys() <= known


@pytest.mark.parametrize("comment", ["table_format = {format}", "@table_format = {format}", "table_format {format}"])
def test_a_table_format_is_not_a_custom_parameter(comment: str) -> None:
    assert options(comment).table_format == "{format}"
    assert options(comment).custom == ()


def test_names_of_a_spreadsheet_may_contain_blanks() -> None:
    chosen = options("excel_file_name Open orders, {year}\nexcel_sheet = Page 1")
    assert (chosen.excel_file_name, chosen.excel_sheet) == ("Open orders, {year}", "Page 1")


def test_prose_about_table_formats_has_no_effect() -> None:
    assert options("table_format is for people").table_format is None


@pytest.mark.parametrize(
    ("line", "found", "wanted"),
    [
        ("cached _token", lambda options: options.caching and options.caching.parameters, ("code",)),
        ("encrypt _token", lambda options: options.encryption and options.encryption.parameters, ("code",)),
        ("upload _token as metadata", lambda options: options.upload and options.upload.metadata, "code"),
        ("body_parameter_name _token", lambda options: options.body_parameter, "code"),
        ("param _token is hash of _token", lambda options: options.hashes, (("code", "code"),)),
        ("validate _token using required", lambda options: options.validations, (("code", ("required",)),)),
        (
            "validate_message _token required Say it.",
            lambda options: options.validation_messages,
            (("code", "required", "Say it."),),
        ),
        ("_token = select 1", lambda options: options.expressions, (("code", "select 1"),)),
        ("param _token is merge patch", lambda options: options.patch_parameter, "code"),
        ("request_headers_parameter_name _token", lambda options: options.headers_parameter, "code"),
        (
            "consume_token reset from _token",
            lambda options: options.consumed_token and options.consumed_token.parameter,
            "code",
        ),
        ("job unique by _token", lambda options: options.job and options.job.unique_by, ("code",)),
        ("job serial by _token", lambda options: options.job and options.job.serial_by, ("code",)),
        (
            "openapi example _token = 5",
            lambda options: options.document and options.document.examples,
            (("code", "5"),),
        ),
        ("password_rules _token", lambda options: options.password_rules, (("code", "on"),)),
    ],
)
def test_a_line_may_name_a_parameter_that_is_renamed_below(
    line: str, found: Callable[[Options], object], wanted: object
) -> None:
    assert found(options(f"{line}\nparam _token code")) == wanted
    renamed = re.sub(r"\b_token", "code", line)
    assert found(options(f"param _token code\n{renamed}")) == wanted


@pytest.mark.parametrize("name", ["token", "TOKEN", "_Token"])
def test_a_line_may_name_a_renamed_parameter_in_any_case_or_as_in_requests(name: str) -> None:
    said = options(f"param_hash {name}\npassword_rules {name}\nbody_parameter_name {name}\nparam _token code")
    assert (said.hashes, said.password_rules, said.body_parameter) == ((("code", "code"),), (("code", "on"),), "code")


@pytest.mark.parametrize(
    "line",
    [
        "validate_message _token,required Bad, bad address",
        "validate_message _token , required Bad, bad address",
        "validate_message,_token required Bad, bad address",
        "@validate_message _token required  Bad, bad address",
    ],
)
def test_the_message_of_a_rule_is_the_text_behind_parameter_and_rule(line: str) -> None:
    assert options(line).validation_messages == (("_token", "required", "Bad, bad address"),)


@pytest.mark.parametrize(
    "line",
    [
        "job unique by _token",
        "job serial by _token",
        "job concurrency 3 per _token",
        "queryable page by id",
        "download inline link 10 minutes",
        "idempotent required for 24 hours",
        "verify_webhook stripe within 10 minutes",
    ],
)
def test_joining_words_may_be_in_any_case(line: str) -> None:
    joined = re.sub(r"\b(by|per|link|for|within)\b", lambda match: match[0].upper(), line)
    assert joined != line
    assert options(joined) == options(line)
    assert messages(joined) == messages(line) == []


@pytest.mark.parametrize(
    ("earlier", "later"), [("authorize admin", "allow_anonymous"), ("@anon", "requires_authorization admin")]
)
def test_conflicting_access_annotations_are_reported_with_both_lines(earlier: str, later: str) -> None:
    (diagnostic,) = read(f"HTTP\n{earlier}\n{later}").diagnostics
    assert diagnostic.line == later
    assert f"`{later}` cancels the earlier line `{earlier}`" in diagnostic.message


def test_lifetime_and_profile_of_a_cache_may_be_assigned() -> None:
    draft = Draft("f()", "GET")
    read_comment("HTTP\ncached\ncache_expires = 5 minutes\ncache_profile = hot", draft)
    assert (draft.get("caching", Caching()).expires, draft.get("caching", Caching()).profile) == (300, "hot")
    assert (draft.diagnostics, draft.custom) == ([], {})


@pytest.mark.parametrize("later", ["cache_profile cold", "cache_profile = cold"])
def test_of_two_cache_profiles_the_later_applies_with_a_warning(later: str) -> None:
    draft = Draft("f()", "GET")
    read_comment(f"HTTP\ncache_profile hot\ncached\n{later}", draft)
    assert draft.get("caching", Caching()).profile == "cold"
    (warning,) = draft.diagnostics
    assert warning.line == later
    assert "earlier line `cache_profile hot`" in warning.message
