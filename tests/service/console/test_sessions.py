"""Links and sessions of operators expire, and a link is valid once."""

from __future__ import annotations

from rowcall.service.console.sessions import Sessions


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_link_signs_in_once() -> None:
    sessions = Sessions(60, 600)
    link = sessions.new_link()
    session = sessions.sign_in(link)
    assert session is not None
    assert sessions.is_valid(session)
    assert sessions.sign_in(link) is None
    assert not sessions.is_valid(link)


def test_links_and_sessions_have_256_bits_and_differ() -> None:
    sessions = Sessions(60, 600)
    secrets = {sessions.new_link() for _ in range(20)} | {sessions.new_session() for _ in range(20)}
    assert len(secrets) == 40
    assert {len(secret) for secret in secrets} == {43}  # 32 bytes in base64url


def test_they_expire() -> None:
    clock = Clock()
    sessions = Sessions(60, 600, clock)
    early, late = sessions.new_link(), sessions.new_link()
    clock.now = 59
    session = sessions.sign_in(early)
    assert session is not None
    clock.now = 60
    assert sessions.sign_in(late) is None
    clock.now = 658
    assert sessions.is_valid(session)
    clock.now = 659
    assert not sessions.is_valid(session)


def test_a_session_ends_alone() -> None:
    sessions = Sessions(60, 600)
    first, second = sessions.new_session(), sessions.new_session()
    sessions.end(first)
    sessions.end("unknown")
    assert (sessions.is_valid(first), sessions.is_valid(second)) == (False, True)


def test_the_number_of_sessions_is_limited() -> None:
    sessions = Sessions(60, 600)
    begun = [sessions.new_session() for _ in range(101)]
    assert [sessions.is_valid(session) for session in begun[:2]] == [False, True]
