"""Events of tenants: a stream gets those of its own tenant, and those without one (events-16)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack

import pytest

from tests.harness.database import Database
from tests.harness.events import EventStream
from tests.harness.expect import problem
from tests.harness.redis_server import RedisServer
from tests.harness.service import Service
from tests.http.conftest import Serve

SQL = """
create function say(_text text) returns void language plpgsql as $$ begin raise info '%', _text; end $$;
comment on function say(text) is 'HTTP POST /say
tenant from header X-Tenant
sse news
sse_last_value';
create function say_late(_text text) returns void language plpgsql as $$ begin raise info '%', _text; end $$;
comment on function say_late(text) is 'HTTP POST /say-late
tenant from claim org
sse_publish
sse_after_commit';
create function announce(_text text) returns text language plpgsql as
    $$ begin raise info '%', _text; return _text; end $$;
create function say_ahead(_text text, _announced text default null) returns void language sql as 'select';
comment on function say_ahead(text, text) is 'HTTP POST /say-ahead
tenant from claim org
sse_publish
_announced = select announce({_text})';
create function of_user() returns void language sql as 'select';
comment on function of_user() is 'HTTP GET /of-user
tenant from claim org
sse_subscribe news';
create function say_to_all(_text text) returns void language plpgsql as $$ begin raise info '%', _text; end $$;
comment on function say_to_all(text) is 'HTTP POST /say-to-all
sse news';
create function enter(_name text, _org text default null) returns table (status int, user_id text, org text)
language sql as $$ select 200, _name, _org $$;
comment on function enter(text, text) is 'HTTP POST /enter
login';
"""
SETTINGS = {
    "Auth:BearerTokenAuth": "true",
    "Service:RequiresAuthorization": "false",
    "Service:ServerSentEvents:Replay": "true",
}


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, SQL, SETTINGS, workers=2)


def publish(service: Service, text: str, path: str = "/say", **headers: str) -> None:
    # On one connection, and so by one worker, whose events stay in their order.
    assert service.post(path, json={"text": text}, headers=headers).status_code == 204


def signed_in(service: Service, name: str, org: str | None = None) -> dict[str, str]:
    token = service.post("/enter", json={"name": name, "org": org}).json()["accessToken"]
    return {"authorization": f"Bearer {token}"}


def messages(stream: EventStream) -> list[str]:
    stream.wait(lambda: "end" in stream.messages, "the last event")
    return stream.messages


def test_streams_of_all_workers_get_the_events_of_their_tenant_only(service: Service) -> None:
    ana, ben = signed_in(service, "ana", "red"), signed_in(service, "ben", "blue")
    with ExitStack() as opened:

        def streams(path: str, headers: Mapping[str, str]) -> list[EventStream]:
            return [opened.enter_context(EventStream(service, path, headers)) for _ in range(4)]

        red = streams("/say/news", {"x-tenant": "red"}) + streams("/of-user/news", ana)
        blue = streams("/say/news", {"x-tenant": "blue"}) + streams("/of-user/news", ben)
        of_none = streams("/say-to-all/news", {}) + streams("/say-to-all/news", ana)
        publish(service, "1", **{"x-tenant": "red"})
        publish(service, "2", **{"x-tenant": "blue"})
        publish(service, "3", "/say-late", **ana)
        publish(service, "4", "/say-late", **ben)
        publish(service, "5", "/say-ahead", **ana)
        publish(service, "end", "/say-to-all")
        for expected, group in ((["1", "3", "5", "end"], red), (["2", "4", "end"], blue), (["end"], of_none)):
            assert [messages(stream) for stream in group] == [expected] * len(group)


def test_a_stream_continues_with_the_events_of_its_tenant(service: Service) -> None:
    with EventStream(service, "/say-to-all/news") as stream:
        publish(service, "end", "/say-to-all")
        messages(stream)
        position = [line for line in stream.text.split("\n") if line.startswith("id: ")][-1].removeprefix("id: ")
    publish(service, "5", **{"x-tenant": "red"})
    publish(service, "6", **{"x-tenant": "blue"})
    publish(service, "7", **{"x-tenant": "blue"})
    publish(service, "end", "/say-to-all")
    with EventStream(service, "/say/news", {"x-tenant": "blue", "last-event-id": position}) as stream:
        assert messages(stream) == ["6", "7", "end"]
    publish(service, "8", **{"x-tenant": "red"})
    with EventStream(service, "/say/news", {"x-tenant": "blue"}) as stream:
        assert messages(stream) == ["end"]


def test_a_stream_without_a_required_tenant_is_refused(service: Service) -> None:
    assert "X-Tenant has to name the tenant" in problem(service.get("/say/news"), 400)["detail"]
    problem(service.get("/of-user/news"), 401)
    problem(service.get("/of-user/news", headers=signed_in(service, "cy")), 403)


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["Redis", "Postgres"])
def test_streams_of_another_host_get_the_events_of_their_tenant_only(
    database: Database, redis: RedisServer, serve_once: Serve, transport: str
) -> None:
    settings = {
        **SETTINGS,
        "Service:ServerSentEvents:BetweenHosts": transport,
        "Service:ServerSentEvents:RedisConfiguration": redis.place,
        "Service:ServerSentEvents:Channel": f"events of tenants {transport}",
    }
    database.execute("drop schema public cascade; create schema public;" + SQL)
    first, second = (serve_once(database, settings=settings, workers=2) for _ in range(2))
    with ExitStack() as opened:
        red, blue = (
            [opened.enter_context(EventStream(host, "/say/news", {"x-tenant": name})) for host in (first, second)]
            for name in ("red", "blue")
        )
        of_none = [opened.enter_context(EventStream(host, "/say-to-all/news")) for host in (first, second)]
        publish(first, "1", **{"x-tenant": "red"})
        publish(first, "2", **{"x-tenant": "blue"})
        publish(first, "3", "/say-late", **signed_in(first, "ann", "red"))
        publish(first, "end", "/say-to-all")
        for expected, group in ((["1", "3", "end"], red), (["2", "end"], blue), (["end"], of_none)):
            assert [messages(stream) for stream in group] == [expected] * len(group)
        position = red[1].last_id
    publish(first, "4", **{"x-tenant": "blue"})
    publish(first, "5", **{"x-tenant": "red"})
    publish(first, "end", "/say-to-all")
    with EventStream(second, "/say/news", {"x-tenant": "red", "last-event-id": position}) as stream:
        assert messages(stream) == ["5", "end"]
