"""Annotations of capabilities: the lines of a comment become one typed record (comments-15 to comments-18)."""

from __future__ import annotations

import pytest

from rowcall.core.annotations.declaration import Draft
from rowcall.core.building.comments import read_comment
from rowcall.core.endpoint.capabilities import (
    Audience,
    BasicAuth,
    Caching,
    ClientCode,
    Document,
    Encryption,
    Events,
    Forwarding,
    NoticeLevel,
    Tool,
    Upload,
)
from rowcall.core.endpoint.endpoint import Options


def read(comment: str) -> Draft:
    draft = Draft(
        name="f()", method="GET", tags=frozenset({"function"}), parameters=frozenset({"_user_id", "_text", "metadata"})
    )
    read_comment(comment, draft)
    return draft


def option(comment: str, name: str) -> object:
    return getattr(read(comment).options(Options()), name)


@pytest.mark.parametrize(
    ("comment", "name", "wish"),
    [
        ("cached", "caching", Caching(enabled=True)),
        ("cached _text, _user_id", "caching", Caching(enabled=True, parameters=("_text", "_user_id"))),
        ("cached text", "caching", Caching(enabled=True)),
        ("cached _text\ncached", "caching", Caching(enabled=True)),
        ("cache_expires 5 minutes", "caching", Caching(expires=300.0)),
        ("@cache_expires_in 00:01:00\ncached", "caching", Caching(enabled=True, expires=60.0)),
        ("cache_profile Fast", "caching", Caching(profile="Fast")),
        ("rate_limiter per user", "rate_limiter", "per user"),
        ("rate_limiter_policy = Per, user", "rate_limiter", "Per, user"),
        ("basic_auth Joe se,cret", "basic_auth", BasicAuth(True, (("Joe", "se"),))),
        ("basic_auth Joe pw\nbasic_authentication A b", "basic_auth", BasicAuth(True, (("Joe", "pw"), ("A", "b")))),
        ("basic_auth = x Joe pw", "basic_auth", BasicAuth(True, (("Joe", "pw"),))),
        ("basic_auth = Joe pw", "basic_auth", BasicAuth(True, (("Joe", "pw"),))),
        ("basic_auth", "basic_auth", BasicAuth(True)),
        ("realm Depot North", "basic_auth", BasicAuth(True, realm="Depot")),
        ("realm = Depot North", "basic_auth", BasicAuth(True, realm="Depot North")),
        ("challenge_command select $1, $2", "basic_auth", BasicAuth(True, command="select $1, $2")),
        ("challenge_command = select 1", "basic_auth", BasicAuth(True, command="select 1")),
        ("encrypt", "encryption", Encryption(all_parameters=True)),
        ("protected TEXT, userId unknown", "encryption", Encryption(parameters=("_text", "_user_id"))),
        ("encrypt unknown", "encryption", Encryption()),
        ("encrypt = true", "encryption", Encryption(all_parameters=True)),
        ("encrypt\nencrypted = false", "encryption", Encryption()),
        ("decrypt", "encryption", Encryption(all_columns=True)),
        ("unprotect cardNo, pin", "encryption", Encryption(columns=("cardNo", "pin"))),
        ("decrypt = TRUE", "encryption", Encryption(all_columns=True)),
        ("proxy", "proxy", Forwarding()),
        ("reverse_proxy post https://H.example/X?a=b", "proxy", Forwarding("POST", "https://H.example/X?a=b")),
        ("proxy /other", "proxy", Forwarding(url="/other")),
        ("forward_proxy QUERY", "proxy_out", Forwarding("QUERY")),
        ("upload", "upload", Upload(True)),
        ("upload for csv, Excel", "upload", Upload(True, ("csv", "Excel"))),
        ("upload METADATA as metadata", "upload", Upload(True, metadata="metadata")),
        ("row_command = select $1", "upload", Upload(settings=(("row_command", "select $1"),))),
        ("row_command select $1, $2", "upload", Upload(settings=(("row_command", "select $1, $2"),))),
        ("csv_check_format = True", "upload", Upload(settings=(("csv_check_format", "True"),))),
        ("delimiters = \\t;", "upload", Upload(settings=(("delimiters", "\t;"),))),
        ("file = {_text}.txt\nFile = b", "upload", Upload(settings=(("file", "b"),))),
        ("oid = {_user_id}", "upload", Upload(settings=(("oid", "{_user_id}"),))),
        ("file_system_path /srv/{_text}", "upload", Upload(settings=(("file_system_path", "/srv/{_text}"),))),
        ("check_image = jpg, PNG", "upload", Upload(settings=(("check_image", "jpg, PNG"),))),
        ("sse", "events", Events(True, True)),
        ("sse Progress", "events", Events(True, True, "progress")),
        ("sse_level notice\nsse", "events", Events(True, True, "notice", NoticeLevel.NOTICE)),
        ("sse\nsse_level notice", "events", Events(True, True, None, NoticeLevel.NOTICE)),
        ("sse a/b on Warning", "events", Events(True, True, "a/b", NoticeLevel.WARNING)),
        ("sse on info", "events", Events(True, True, "info", NoticeLevel.INFO)),
        ("sse = Progress", "events", Events(True, True, "Progress")),
        ("sse = true", "events", Events(True, True)),
        ("sse\nsse = false", "events", Events()),
        ("sse_publish on notice", "events", Events(publish=True, level=NoticeLevel.NOTICE)),
        ("sse_publish = true", "events", Events(publish=True)),
        ("sse_events_subscribe tail", "events", Events(subscribe=True, path="tail")),
        ("sse_subscribe = Tail", "events", Events(subscribe=True, path="Tail")),
        ("sse_scope authorize Admin, 42", "events", Events(scope=Audience.AUTHORIZE, names=("Admin", "42"))),
        ("sse_scope = matching", "events", Events(scope=Audience.MATCHING)),
        ("tsclient = off", "client_code", ClientCode(enabled=False)),
        ("tsclient_module = night_shift", "client_code", ClientCode(module="night_shift")),
        ("tsclient_url_only", "client_code", ClientCode(url_only=True)),
        ("@tsclient_export_url = 1\nTSCLIENT_EVENTS = off", "client_code", ClientCode(export_url=True, events=False)),
        ("tsclient_url_only false", "client_code", ClientCode(url_only=False)),
        ("dartclient_status_code = no idea", "dart_client_code", None),
        ("dartclient_parse_url = on", "dart_client_code", ClientCode(parse_url=True)),
        ("mcp", "tool", Tool(True)),
        ("mcp Lists, all notes", "tool", Tool(True, text="Lists, all notes")),
        ("mcp_name bed_notes\nmcp_desc Notes", "tool", Tool(True, "bed_notes", description="Notes")),
        ("for procedure\nmcp", "tool", Tool(True)),
        ("openapi", "document", Document(hidden=True)),
        ("openapi tags Green House, b", "document", Document(tags=("Green", "House", "b"))),
        ("@openapi example _Tags = [\"a, b\"]", "document", Document(examples=(("_tags", '["a, b"]'),))),
    ],
)  # fmt: skip
def test_options_of_a_comment(comment: str, name: str, wish: object) -> None:
    assert option(comment, name) == wish


@pytest.mark.parametrize(
    "comment",
    [
        "cached unknown",
        "cache_expires soon",
        "cache_profile",
        "cache_profile a b",
        "basic_auth",
        "basic_auth joe",
        "proxy HEAD",
        "proxy ftp://x",
        "upload for",
        "upload csv",
        "upload unknown as metadata",
        "check_text = maybe",
        "buffer_size = -1",
        "check_image = heic",
        "sse on loud",
        "sse_level = loud",
        "sse_scope unknown",
        "sse_scope =",
        "tsclient_events = maybe",
        "tsclient_module =",
        "tsclient_module = ../yard",
        "dartclient_module = /etc/yard",
        "mcp_name a b",
        "mcp_description",
        "openapi show",
        "openapi tag",
        "openapi example",
        "openapi example depot north",
        "openapi example depot =",
    ],
)
def test_bad_values_are_reported(comment: str) -> None:
    (diagnostic,) = read(comment).diagnostics
    assert diagnostic.message
    assert diagnostic.object == "f()"


def test_a_setting_for_all_handlers_has_precedence_over_one_for_a_single_handler() -> None:
    upload = option("csv_row_command = select 1\nrow_command = select 2\nexcel_check_format = true", "upload")
    assert isinstance(upload, Upload)
    assert (upload.setting("csv", "row_command"), upload.setting("excel", "check_format")) == ("select 2", "true")
    assert upload.setting("csv", "check_format") is None


@pytest.mark.parametrize("line", ["basic_auth joe s3cret", "@basic_auth = joe s3cret", "basic_auth s3cret"])
def test_no_shown_text_contains_a_password(line: str) -> None:
    draft = read(line)
    assert "s3cret" not in repr((draft.applied, draft.prose, draft.used, draft.diagnostics))
