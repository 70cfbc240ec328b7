"""Content-Disposition and passive media types."""

from __future__ import annotations

from email.message import Message
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowcall.core.downloads.disposition import content_disposition, is_passive, safe_name


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("", "attachment"),
        ("a.txt", 'attachment; filename="a.txt"'),
        ("two words.txt", 'attachment; filename="two words.txt"'),
        ("Übung €.pdf", "attachment; filename=\"Ubung _.pdf\"; filename*=UTF-8''%C3%9Cbung%20%E2%82%AC.pdf"),
        ('a"b%.txt', "attachment; filename=\"a_b_.txt\"; filename*=UTF-8''a%22b%25.txt"),
        ("../../etc/passwd", 'attachment; filename="passwd"'),
        ("C:\\boot.ini", 'attachment; filename="boot.ini"'),
        ("a\r\nSet-Cookie: x", 'attachment; filename="aSet-Cookie: x"'),
        ("..", "attachment"),
        ("a／b", "attachment; filename=\"a_b\"; filename*=UTF-8''a%EF%BC%8Fb"),
        ("a" * 254 + " b", f'attachment; filename="{"a" * 254}"'),
        ("a.\ud800", 'attachment; filename="a"'),
        ("日本", "attachment; filename=\"__\"; filename*=UTF-8''%E6%97%A5%E6%9C%AC"),
    ],
)
def test_file_names_are_written_into_content_disposition(name: str, header: str) -> None:
    assert content_disposition("attachment", name) == header


@given(st.text(max_size=300))
def test_any_name_makes_a_header_that_parsers_read_back(name: str) -> None:
    header = content_disposition("inline", name)
    header.encode("ascii")
    assert "\r" not in header
    assert "\n" not in header
    message = Message()
    message["content-disposition"] = header
    assert message.get_content_disposition() == "inline"
    _, _, extended = header.partition("filename*=UTF-8''")
    assert (unquote(extended, errors="strict") or message.get_filename() or "") == safe_name(name)


@pytest.mark.parametrize(
    ("kind", "passive"),
    [
        ("image/png", True),
        ("IMAGE/JPEG", True),
        ("application/pdf", True),
        ("text/plain; charset=utf-8", True),
        ("video/mp4", True),
        ("image/svg+xml", False),
        ("text/html", False),
        ("text/html; x=image/png", False),
        ("application/xhtml+xml", False),
        ("text/xml", False),
        ("text/javascript", False),
        ("application/x-shockwave-flash", False),
        ("anything", False),
    ],
)
def test_media_types_that_cannot_run_scripts_are_recognised(kind: str, passive: bool) -> None:
    assert is_passive(kind) is passive
