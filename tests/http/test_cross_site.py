"""Pages of other sites cannot act as a user who is signed in by cookie."""

from __future__ import annotations

import pytest

from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.http.conftest import Serve
from tests.http.members import EVERY_SCHEME, bearer, member_sql, tokens, with_cookie

pytestmark = pytest.mark.attack

SQL = """
create table paid (n int);
create function pay(_n int) returns int language sql volatile as $$insert into paid values (_n) returning n$$;
comment on function pay(int) is E'HTTP POST\\nauthorize';
create function look() returns text language sql stable as $$select 'seen'$$;
comment on function look() is E'HTTP GET\\nauthorize';
create function price(_sku text) returns text language sql stable as $$select 'seen'$$;
comment on function price(text) is E'HTTP GET\\nauthorize\\ncached';
create function public_note(_n int) returns int language sql volatile as $$select _n$$;
comment on function public_note(int) is E'HTTP POST\\nallow_anonymous';
create function leave() returns void language sql stable as 'select';
comment on function leave() is E'HTTP GET\\nlogout';
create function enter(_token text) returns table (status int) language sql volatile as 'select 404';
comment on function enter(text) is E'HTTP GET /api/enter/{_token}\\nlogin\\nsensitive';
"""

TAGS = {
    "CacheOptions:Enabled": "true",
    "CacheOptions:TagsPath": "/forget",
    "CacheOptions:InvalidateCacheSuffix": "purge",
}
LISTED = "https://partner.example"
CROSS = [
    {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Sec-Fetch-Site": "same-site", "Origin": "https://other.example"},
]


def own_origin(service: Service) -> str:
    return service.url


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, member_sql() + SQL, {**EVERY_SCHEME, **TAGS, "Auth:TrustedOrigins:0": LISTED})


@pytest.fixture
def cookie(service: Service) -> dict[str, str]:
    service.client.cookies.clear()
    return with_cookie(service)


@pytest.mark.parametrize("headers", CROSS, ids=str)
def test_another_site_cannot_write(
    service: Service, database: Database, cookie: dict[str, str], headers: dict[str, str]
) -> None:
    before = database.value("select count(*) from paid")
    problem(service.post("/api/pay", content=b'{"n":1}', headers={**cookie, **headers}), 403)
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    problem(service.post("/api/pay", content=b"n=1", headers={**cookie, **headers, **form}), 403)
    problem(service.post("/forget?tag=a", headers={**cookie, **headers}), 403)
    assert database.value("select count(*) from paid") == before


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": LISTED, "Sec-Fetch-Site": "cross-site"},
        {"Origin": "HTTPS://PARTNER.EXAMPLE"},
        {"Sec-Fetch-Site": "same-origin", "Origin": "https://the-name-in-front.example"},
    ],
    ids=str,
)
def test_same_origin_pages_can_write(service: Service, cookie: dict[str, str], headers: dict[str, str]) -> None:
    assert service.post("/api/pay", content=b'{"n":1}', headers={**cookie, **headers}).text == "1"
    assert service.post("/forget?tag=a", headers={**cookie, **headers}).status_code == 200


def test_own_origin_is_allowed_and_another_port_refused(service: Service, cookie: dict[str, str]) -> None:
    assert service.post("/api/pay", json={"n": 1}, headers={**cookie, "Origin": own_origin(service)}).text == "1"
    other_port = f"http://127.0.0.1:{service.port + 1}"
    problem(service.post("/api/pay", json={"n": 1}, headers={**cookie, "Origin": other_port}), 403)
    other_scheme = f"https://127.0.0.1:{service.port}"
    problem(service.post("/api/pay", json={"n": 1}, headers={**cookie, "Origin": other_scheme}), 403)


@pytest.mark.parametrize("headers", CROSS, ids=str)
def test_cross_site_reads_are_allowed(service: Service, cookie: dict[str, str], headers: dict[str, str]) -> None:
    assert service.get("/api/look", headers={**cookie, **headers}).text == "seen"


@pytest.mark.parametrize("headers", CROSS, ids=str)
def test_another_site_cannot_invalidate_cached_responses(
    service: Service, cookie: dict[str, str], headers: dict[str, str]
) -> None:
    purge = "/api/price/purge?sku=a"
    service.post(purge, headers=cookie)
    assert service.get("/api/price?sku=a", headers=cookie).text == "seen"
    assert service.get(purge, headers={**cookie, **headers}).status_code == 405
    problem(service.post(purge, headers={**cookie, **headers}), 403)
    assert service.post(purge, headers=cookie).json() == {"invalidated": True}


@pytest.mark.parametrize("headers", CROSS, ids=str)
def test_bearer_token_requests_are_exempt(service: Service, headers: dict[str, str]) -> None:
    token = bearer(tokens(service, "BearerToken")["accessToken"])
    assert service.post("/api/pay", json={"n": 1}, headers={**token, **headers}).text == "1"


@pytest.mark.parametrize("headers", CROSS, ids=str)
def test_public_endpoints_accept_cross_site_requests(service: Service, headers: dict[str, str]) -> None:
    assert service.post("/api/public-note", json={"n": 1}, headers=headers).text == "1"


@pytest.mark.parametrize("headers", CROSS, ids=str)
def test_another_site_cannot_sign_a_user_in(service: Service, headers: dict[str, str]) -> None:
    """Otherwise, a user could work in the attacker's account without noticing."""
    service.client.cookies.clear()
    body = b"nick=kiri&scheme=Cookies"
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    response = service.post("/api/let-in", content=body, headers={**headers, **form})
    problem(response, 403)
    assert "set-cookie" not in response.headers
    response = service.post("/api/let-in", content=body, headers=form)
    assert response.status_code == 200


@pytest.mark.parametrize("headers", CROSS, ids=str)
def test_another_site_cannot_sign_a_user_out(service: Service, cookie: dict[str, str], headers: dict[str, str]) -> None:
    problem(service.post("/api/sign-out", json={}, headers={**cookie, **headers}), 403)
    problem(service.get("/api/leave", headers={**cookie, **headers}), 403)
    assert "set-cookie" in service.get("/api/leave", headers=cookie).headers


def test_text_plain_body_is_refused_by_json_endpoints(service: Service, cookie: dict[str, str]) -> None:
    """The type that pages may send anywhere without a preflight (Fetch, CORS-safelisted)."""
    text = {"Content-Type": "text/plain;charset=UTF-8"}
    problem(service.post("/api/pay", content=b'{"n":1}', headers={**cookie, **text}), 415)
    body = b'{"nick":"kiri","passphrase":"open sesame","scheme":"Cookies"}'
    service.client.cookies.clear()
    problem(service.post("/api/sign-in", content=body, headers=text), 415)
    token = bearer(tokens(service, "BearerToken")["accessToken"])
    assert service.post("/api/pay", content=b'{"n":1}', headers={**token, **text}).text == "1"


@pytest.mark.parametrize(
    "site_headers", [{"Sec-Fetch-Site": "same-origin"}, {"Origin": LISTED}, {"Origin": "itself"}], ids=str
)
def test_text_plain_body_is_accepted_with_a_same_origin_header(
    service: Service, cookie: dict[str, str], site_headers: dict[str, str]
) -> None:
    """`fetch` of generated clients sends it (browsers-7, clients-27)."""
    text = {"Content-Type": "text/plain;charset=UTF-8"}
    origin = own_origin(service) if site_headers.get("Origin") == "itself" else site_headers.get("Origin")
    headers = {**text, **site_headers, **({"Origin": origin} if origin else {})}
    assert service.post("/api/pay", content=b'{"n":1}', headers={**cookie, **headers}).text == "1"
    service.client.cookies.clear()
    body = b'{"nick":"kiri","passphrase":"open sesame","scheme":"Cookies"}'
    assert service.post("/api/sign-in", content=body, headers=headers).status_code == 200


def test_setting_disables_cross_site_protection(own_database: Database, serve_once: Serve) -> None:
    settings = {**EVERY_SCHEME, "Auth:RefuseCrossSite": "false"}
    service = serve_once(own_database, member_sql() + SQL, settings)
    cookie = with_cookie(service)
    assert service.post("/api/pay", json={"n": 1}, headers={**cookie, **CROSS[0]}).text == "1"
    assert "Auth:RefuseCrossSite" in service.wait_for_log("WRN")


@pytest.mark.parametrize(
    ("method", "path", "headers", "refused", "remedy"),
    [
        (
            *("GET", "/api/leave", {"Sec-Fetch-Site": "cross-site"}),
            *("GET /api/leave, to which a link", "let the link lead to a page of this service that sends a POST"),
        ),
        (
            *("POST", "/api/pay", {"Origin": "null"}),
            *("POST /api/pay from a page with the origin null", "serve the page from an origin of its own"),
        ),
        (
            *("POST", "/api/pay", {"Origin": "https://evil.example"}),
            *("a request from a page of https://evil.example", "add the origin to Auth:TrustedOrigins"),
        ),
    ],
    ids=["link", "null", "origin"],
)
def test_log_names_the_setting_that_allows_the_request(
    service: Service,
    cookie: dict[str, str],
    method: str,
    path: str,
    headers: dict[str, str],
    refused: str,
    remedy: str,
) -> None:
    problem(service.request(method, path, headers={**cookie, **headers}), 403)
    assert remedy in service.wait_for_log(f"refused {refused}")


def test_log_contains_no_path_values(service: Service) -> None:
    for number in range(101):
        path = f"/api/enter/hidden-{number}"
        problem(service.get(path, headers={"Sec-Fetch-Site": "cross-site"}), 403)
        problem(service.get(path, headers={"Origin": "null"}), 403)
    problem(service.get("/api/enter/hidden", headers={"Origin": "https://shop.example"}), 403)
    service.wait_for_log("a page of https://shop.example")
    assert "hidden" not in service.log
    assert service.log.count("refused GET /api/enter/{_token}, to which a link") == 1
    assert service.log.count("refused GET /api/enter/{_token} from a page with the origin null") == 1


def test_origin_is_compared_with_the_forwarded_host(own_database: Database, serve_once: Serve) -> None:
    settings = {**EVERY_SCHEME, "ForwardedHeaders:Enabled": "true"}
    service = serve_once(own_database, member_sql() + SQL, settings)
    cookie = with_cookie(service)
    front = {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "shop.example"}
    own = {**cookie, **front, "Origin": "https://shop.example"}
    assert service.post("/api/pay", json={"n": 1}, headers=own).text == "1"
    problem(service.post("/api/pay", json={"n": 1}, headers={**own, "Origin": "https://evil.example"}), 403)
