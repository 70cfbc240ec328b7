"""Audiences of an event (events-11 to events-13)."""

from __future__ import annotations

import pytest

from rowcall.core.auth.claims import IdentityClaims, User
from rowcall.core.endpoint.capabilities import Audience
from rowcall.core.events.event import Event, HintError, Publication, Viewer

KIRI = User(
    (("user_id", "41"), ("user_name", "Kiri"), ("user_roles", "Boss"), ("depot", "north")), IdentityClaims(), "x"
)
MO = User((("user_id", "42"), ("user_name", "mo"), ("user_roles", "gate")), IdentityClaims(), "x")


def seen_by(event: Event) -> str:
    viewers = {"anonymous": None, "kiri": KIRI, "mo": MO}
    return " ".join(name for name, user in viewers.items() if Viewer("", user).may_see(event))


@pytest.mark.parametrize(
    ("publication", "hint", "received"),
    [
        (Publication(Audience.ALL, (), True, ("boss",)), None, "anonymous kiri mo"),
        (Publication(Audience.ALL, (), True, ("Boss",)), "matching", "kiri"),
        (Publication(Audience.ALL, (), True, ()), "matching", "kiri mo"),
        (Publication(Audience.ALL, (), False, ()), "matching", "anonymous kiri mo"),
        (Publication(Audience.MATCHING, (), True, ("gate",)), None, "mo"),
        (Publication(Audience.MATCHING, (), True, ("gate",)), "all", "anonymous kiri mo"),
        (Publication(Audience.AUTHORIZE, (), False, ()), None, "kiri mo"),
        (Publication(Audience.AUTHORIZE, ("Boss",), False, ()), None, "kiri"),
        (Publication(Audience.AUTHORIZE, ("mo", "42", "Kiri"), False, ()), None, ""),
        (Publication(Audience.AUTHORIZE, ("user:42", "name:Kiri"), False, ()), None, "kiri mo"),
        (Publication(Audience.AUTHORIZE, ("Boss",), False, ()), "authorize user:42", "kiri mo"),
        (Publication(Audience.AUTHORIZE, ("Boss",), False, ()), "  ,", "kiri"),
        (Publication(Audience.ALL, (), False, ()), "AUTHORIZE Boss", "kiri"),
        (Publication(Audience.ALL, (), False, ()), "authorize name:Kiri", "kiri"),
        (Publication(Audience.ALL, (), False, ()), "authorize user:Kiri name:41 Kiri 41", ""),
        (Publication(Audience.ALL, (), False, ()), "authorize north", ""),
    ],
)
def test_events_are_visible_to_their_audience(publication: Publication, hint: str | None, received: str) -> None:
    assert seen_by(publication.event("m", hint, "")) == received


def test_plain_words_match_user_ids_and_names_if_configured() -> None:
    event = Publication(Audience.AUTHORIZE, ("42",), False, ()).event("m", None, "")
    assert Viewer("", MO, roles_match_users=True).may_see(event)
    assert not Viewer("", KIRI, roles_match_users=True).may_see(event)


def test_a_hint_does_not_widen_later_events() -> None:
    publication = Publication(Audience.AUTHORIZE, ("Boss",), False, ())
    publication.event("m", "authorize name:mo", "")
    assert seen_by(publication.event("m", None, "")) == "kiri"


@pytest.mark.parametrize("hint", ["retry", "everyone all", "authorise boss"])
def test_an_invalid_hint_is_an_error(hint: str) -> None:
    with pytest.raises(HintError, match="none of all, matching, authorize"):
        Publication(Audience.ALL, (), False, ()).event("m", hint, "")


@pytest.mark.parametrize(
    ("payload", "fits"),
    [
        ('{"depot":"north"}', True),
        ('{"depot":"north","x":[1]}', True),
        ('{"depot":"North"}', False),
        ('{"depot":null}', False),
        ("{}", False),
        ('["depot","north"]', False),
        ('{"depot":' + 600 * "[" + 600 * "]" + "}", False),
        ("north", False),
        ("", False),
    ],
)
def test_events_are_filtered_by_claims_in_their_payload(payload: str, fits: bool) -> None:
    viewer = Viewer("ignored", KIRI, "news", (("depot", "depot"),))
    assert viewer.may_see(Event(payload, channel="news")) is fits
    assert not Viewer("", None, "news", (("depot", "depot"),)).may_see(Event(payload, channel="news"))
    assert not viewer.may_see(Event(payload))


@pytest.mark.parametrize("claim", ["True", "true"])
def test_a_boolean_payload_matches_claims_of_login_rows_and_tokens(claim: str) -> None:
    admin = User((("is_admin", claim),), IdentityClaims(), "x")
    viewer = Viewer("", admin, "news", (("is_admin", "is_admin"),))
    payloads = ('{"is_admin":true}', f'{{"is_admin":"{claim}"}}', '{"is_admin":false}', '{"is_admin":1}')
    assert [viewer.may_see(Event(payload, channel="news")) for payload in payloads] == [True, True, False, False]


def test_events_of_a_tenant_are_visible_to_its_viewers_only() -> None:
    event = Publication(Audience.AUTHORIZE, (), False, ()).event("m", None, "")
    of_red = event._replace(tenant="red")
    red, blue, none = (Viewer("", MO, tenant=tenant) for tenant in ("red", "blue", ""))
    assert [viewer.may_see(of_red) for viewer in (red, blue, none)] == [True, False, False]
    assert all(viewer.may_see(event) for viewer in (red, blue, none))
    assert not Viewer("", None, tenant="red").may_see(of_red)
    assert len({viewer.key for viewer in (red, blue, none)}) == 3
