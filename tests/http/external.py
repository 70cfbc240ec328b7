"""Sign-in through a provider without a browser: the steps of the page, the browser and the provider."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import httpx

from tests.harness.identity_provider import CLIENT, SECRET, IdentityProvider
from tests.harness.service import NO_TLS, Service

SQL = """
create table external_user (id int generated always as identity, email text, roles text[] default '{member}');
create table external_call (n int generated always as identity, provider text, email text, name text, info json,
    analytics json, claims json);
create function external_login(_provider text, _email text, _name text, _info json, _analytics json,
    _claims json default null)
returns table (status int, scheme text, user_id text, user_name text, user_roles text[], provider text)
language plpgsql as $$
begin
    insert into external_call (provider, email, name, info, analytics, claims)
    values (_provider, _email, _name, _info, _analytics, _claims);
    if _email like 'unknown@%' then return; end if;
    if _email like 'broken@%' then raise exception 'a secret of the database'; end if;
    return query select case when _email like 'locked@%' then 423 else 200 end,
        case when _email like 'token@%' then 'BearerToken' when _email like 'nowhere@%' then 'nowhere' end,
        md5(_email), _name, array['member'], _provider;
end $$;
create function me(_user_id text default null, _user_name text default null, _user_roles text[] default null)
returns table (id text, name text, roles text[]) language sql as $$select _user_id, _user_name, _user_roles$$;
comment on function me(text, text, text[]) is E'HTTP GET\\nauthorize\\nuser_parameters\\nsingle';
create procedure sign_out() language sql as '';
comment on procedure sign_out() is E'HTTP POST\\nlogout\\nallow_anonymous';
"""

LINKING = "select * from external_login($1,$2,$3,$4,$5,$6)"
BROWSER = {"Sec-Fetch-Site": "same-origin"}


def provider_settings(key: str, provider: IdentityProvider, **others: str) -> dict[str, str]:
    """Return the settings of a provider with plain OAuth 2, with the keys of NpgsqlRest."""
    url = provider.url
    query = "response_type=code&client_id={0}&redirect_uri={1}&scope=profile email&state={2}"
    members = {
        "Enabled": "true",
        "ClientId": CLIENT,
        "ClientSecret": SECRET,
        "AuthUrl": f"{url}/authorize?{query}",
        "TokenUrl": f"{url}/token",
        "InfoUrl": f"{url}/userinfo",
        **others,
    }
    return {f"Auth:External:{key}:{name}": value for name, value in members.items()}


def issuer_settings(key: str, provider: IdentityProvider, **others: str) -> dict[str, str]:
    """Return the settings of an issuer with a discovery document."""
    members = {"Enabled": "true", "ClientId": CLIENT, "ClientSecret": SECRET, "Issuer": provider.url, **others}
    return {f"Auth:External:{key}:{name}": value for name, value in members.items()}


class Begun(NamedTuple):
    """A sign-in that has been redirected to the provider."""

    path: str
    url: str
    state: str
    cookie: str

    @property
    def query(self) -> dict[str, str]:
        return {name: values[0] for name, values in parse_qs(urlsplit(self.url).query).items()}


def options_of(page: str) -> dict[str, Any]:
    """Return the options of the script of a page."""
    match = re.search(r"const options = (\{.*\});", page) or re.search(r'id="external-sign-in">(\{.*\})</script>', page)
    assert match is not None, page
    body: dict[str, Any] = json.loads(match[1])
    return body


def begin(service: Service, path: str, headers: dict[str, str] | None = None) -> Begun:
    with fresh(service) as client:
        response = client.get(path, headers=headers or {})
    assert response.status_code == 200, response.text
    text = options_of(response.text)
    cookies = [value for value in response.headers.get_list("set-cookie") if "rowcall.signin." in value]
    assert len(cookies) == 1
    return Begun(path, text["authUrl"], text["state"], cookies[0].partition(";")[0])


def granted(url: str) -> dict[str, str]:
    """Return the query of the redirect with which the provider sends the browser back."""
    response = httpx.get(url, trust_env=False, timeout=60, verify=NO_TLS)
    assert response.status_code == 302, response.text
    query = urlsplit(response.headers["location"]).query
    return {name: values[0] for name, values in parse_qs(query).items()}


def finish(
    service: Service, path: str, sent: Mapping[str, object], cookie: str | None = None, **headers: str
) -> httpx.Response:
    """Send the POST of the page's script, over a new connection, so that any worker may receive it."""
    fields = {**BROWSER, **headers} if "as_program" not in headers else {}
    if cookie is not None:
        fields["Cookie"] = cookie
    with fresh(service) as client:
        return client.post(path, json=sent, headers=fields)


def sign_in(service: Service, path: str) -> httpx.Response:
    """Sign in with all steps."""
    begun = begin(service, path)
    return finish(service, path, dict(granted(begun.url)), begun.cookie)


def fresh(service: Service) -> httpx.Client:
    """Return a client without cookies, which is new to the limiter by X-Caller too."""
    caller = {"X-Caller": uuid.uuid4().hex}
    return service.new_client(headers=caller)


def session_of(response: httpx.Response) -> dict[str, str]:
    """Return the headers of the user whom the response signs in by cookie."""
    cookies = [value.partition(";")[0] for value in response.headers.get_list("set-cookie")]
    values = [cookie for cookie in cookies if not cookie.endswith("=")]
    return {"Cookie": "; ".join(values)}
