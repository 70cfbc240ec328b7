"""A schema with users, who sign in, read their identity, and are admitted or refused."""

from __future__ import annotations

import httpx

from tests.harness.service import Service

SECRET = "thirty-two characters are needed, and more for the longer digests"
KIRI, MO = "open sesame", "swordfish"
KIRI_STORED = "QdviuWR2U0gheaPtWDozzptc8EuaxU5zLDO1aAADKY+uxMaVhTI6uMcQVaotxC1R"
MO_STORED = "tmXmjBtZKF+/U2GEBBuhW4YWuk8kaz3Fi/OtRwQyMLwAsj8DbySCSkn/1zpkPeqE"
"""As `--hash` of the command prints them: computing one takes a fifth of a second of a processor."""

EVERY_SCHEME = {
    "Auth:CookieAuth": "true",
    "Auth:BearerTokenAuth": "true",
    "Auth:JwtAuth": "true",
    "Auth:JwtSecret": SECRET,
}


def member_sql() -> str:
    return _SQL.replace("<kiri>", KIRI_STORED).replace("<mo>", MO_STORED)


_SQL = """
create table member (id int, nick text, secret text, duties text[], depot text, locked boolean default false);
insert into member values
    (41, 'kiri', '<kiri>', array['boss', 'gate'], 'north'),
    (42, 'mo', '<mo>', array['gate'], null),
    (43, 'open', null, '{}', ''),
    (44, 'broken', 'not a hash', '{}', null);

create function sign_in(_nick text, _passphrase text default null, _scheme text default null)
returns table (hash text, scheme text, user_id int, user_name text, user_roles text[], depot text)
language sql stable as $$select secret, _scheme, id, nick, duties, depot from member where nick = _nick$$;
comment on function sign_in(text, text, text) is E'HTTP POST\\nlogin\\nsensitive';

create function let_in(_nick text, _scheme text default null)
returns table (scheme text, user_id int, user_name text, user_roles text[], depot text)
language sql stable as $$select _scheme, id, nick, duties, depot from member where nick = _nick$$;
comment on function let_in(text, text) is E'HTTP POST\\nlogin';

create function sign_out(_schemes text[] default null) returns setof text language sql
as $$select unnest(_schemes)$$;
comment on function sign_out(text[]) is E'HTTP POST\\nlogout';

create function who(_user_id text default null, _user_name text default null, _user_roles text[] default null,
    _user_claims json default null, _ip_address text default null)
returns table (user_id text, user_name text, user_roles text[], claims json, address text) language sql stable
as $$select _user_id, _user_name, _user_roles, _user_claims, _ip_address$$;
comment on function who(text, text, text[], json, text) is E'HTTP GET\\nauthorize\\nuser_parameters\\nsingle';

create function closed() returns text language sql stable as $$select 'in'$$;
comment on function closed() is E'HTTP GET\\nauthorize';
create function for_bosses() returns text language sql stable as $$select 'in'$$;
comment on function for_bosses() is E'HTTP GET\\nauthorize boss';
create function opened() returns text language sql stable as $$select 'open'$$;
comment on function opened() is E'HTTP GET\\nallow_anonymous';
"""


def sign_in(
    service: Service, nick: str = "kiri", passphrase: str | None = KIRI, scheme: str | None = None
) -> httpx.Response:
    body = {"nick": nick, "passphrase": passphrase, "scheme": scheme}
    return service.post("/api/sign-in", json=body)


def cookie_of(response: httpx.Response) -> str:
    """Return `name=value` of the first cookie that a response sets."""
    return response.headers["set-cookie"].partition(";")[0]


def with_cookie(service: Service, nick: str = "kiri", scheme: str = "Cookies") -> dict[str, str]:
    """Return the headers of a user signed in by cookie; the client itself stores no cookie."""
    response = let_in(service, nick, scheme)
    service.client.cookies.clear()
    return {"Cookie": cookie_of(response)}


def tokens(service: Service, scheme: str, nick: str = "kiri") -> dict[str, object]:
    body: dict[str, object] = let_in(service, nick, scheme).json()
    return body


def let_in(service: Service, nick: str, scheme: str | None) -> httpx.Response:
    """Sign in without a passphrase, whose check takes a fifth of a second of a processor."""
    response = service.post("/api/let-in", json={"nick": nick, "scheme": scheme})
    assert response.status_code == 200, response.text
    return response


def bearer(token: object) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}
