"""Links and sessions of operators expire, and a link is valid once."""

from __future__ import annotations

from rowcall.service.console.sessions import Sessions


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_sign_in_link_is_valid_once() -> None:
    sessions = Sessions(60, 600)
    link = sessions.new_link()
    session = sessions.sign_in(link)
    assert session is not None
    assert sessions.find(session) is not None
    assert sessions.sign_in(link) is None
    assert sessions.find(link) is None


def test_links_and_sessions_have_256_bits_and_differ() -> None:
    sessions = Sessions(60, 600)
    secrets = {sessions.new_link() for _ in range(20)} | {sessions.new_session("ana") for _ in range(20)}
    assert len(secrets) == 40
    assert {len(secret) for secret in secrets} == {43}  # 32 bytes in base64url


def test_links_and_sessions_expire() -> None:
    clock = Clock()
    sessions = Sessions(60, 600, clock)
    early, late = sessions.new_link(), sessions.new_link()
    clock.now = 59
    session = sessions.sign_in(early)
    assert session is not None
    clock.now = 60
    assert sessions.sign_in(late) is None
    clock.now = 658
    assert sessions.find(session) is not None
    clock.now = 659
    assert sessions.find(session) is None


def test_ending_a_session_does_not_end_others() -> None:
    sessions = Sessions(60, 600)
    first, second = sessions.new_session("ana"), sessions.new_session("ana")
    sessions.end(first)
    sessions.end("unknown")
    assert sessions.find(first) is None
    assert sessions.find(second) is not None


def test_the_number_of_sessions_is_limited() -> None:
    sessions = Sessions(60, 600)
    begun = [sessions.new_session("ana") for _ in range(101)]
    assert [sessions.find(session) is None for session in begun[:2]] == [True, False]


def test_sessions_are_listed_and_ended_by_a_non_secret_name() -> None:
    sessions = Sessions(60, 600)
    secrets = [sessions.new_session(name, "127.0.0.1") for name in ("ana", "bo")]
    listed = sessions.list_sessions()
    assert [(item.operator, item.address) for item in listed] == [("ana", "127.0.0.1"), ("bo", "127.0.0.1")]
    assert sessions.find(listed[0].id) is None
    assert sessions.end_named(listed[0].id)
    assert not sessions.end_named(listed[0].id)
    assert [sessions.find(secret) is None for secret in secrets] == [True, False]
