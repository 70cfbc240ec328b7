"""A service with a hostile upstream, and clients that check to which request a response belongs."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx

from tests.harness.hostile_upstream import owners
from tests.harness.service import Service

SETTINGS = {
    "Service:ProxyOptions:Enabled": "true",
    "Service:ProxyOptions:DefaultTimeout": "5 seconds",
    "Service:HttpClientOptions:Enabled": "true",
}

PATHS = ("/passed", "/cached", "/transformed", "/typed", "/own")


def schema(url: str) -> str:
    return f"""
create function passed(_n text) returns void language sql as '';
comment on function passed is 'HTTP GET /passed
proxy {url}';
create function cached(_n text) returns void language sql as '';
comment on function cached is 'HTTP GET /cached
proxy {url}
cached';
create function transformed(_n text, _proxy_body text, _proxy_status_code int) returns text language sql as
$$ select coalesce(_proxy_body, 'nothing') $$;
comment on function transformed is 'HTTP GET /transformed
proxy {url}';
create type hostile_reply as (status_code int, body text, error_message text);
comment on type hostile_reply is 'timeout 5s
GET {url}/typed?n={{_n}}';
create function typed(_n text, _r hostile_reply) returns text language sql as $$ select coalesce((_r).body, '') $$;
comment on function typed is 'HTTP GET /typed';
create function own(_n text) returns text language sql stable as $$ select 'own ' || _n $$;
comment on function own is 'HTTP GET /own';
"""


def call(service: Service, client: httpx.Client, path: str, nonce: int) -> None:
    """Send one request: it gets a response, and never that of another request. A body may be cut if the upstream cut
    it."""
    try:
        with client.stream("GET", f"{path}?n={nonce}") as response:
            # The raw bytes: the content coding that a hostile server announces need not be true.
            body = b"".join(response.iter_raw())
    except (httpx.RemoteProtocolError, httpx.ReadError):
        assert path in ("/passed", "/cached"), path
        return
    assert owners(body) <= {str(nonce)}, (path, nonce, body)
    if path == "/own":
        assert (response.status_code, body) == (200, b"own %d" % nonce)
    assert 200 <= response.status_code <= 599


def call_all(service: Service, callers: int, goes_on: Callable[[int], bool]) -> int:
    """Send requests to all paths with several clients while `goes_on(round)`. Return the number of requests."""

    def work(caller: int) -> int:
        number = 0
        with service.new_client(timeout=30) as client:
            while goes_on(number):
                for place, path in enumerate(PATHS):
                    nonce = (caller * 1_000_000 + number) * 10 + place
                    call(service, client, path, nonce)
                    if path == "/cached":
                        call(service, client, path, nonce)
                number += 1
        return number * (len(PATHS) + 1)

    with ThreadPoolExecutor(callers) as pool:
        return sum(pool.map(work, range(1, callers + 1)))
