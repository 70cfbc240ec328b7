"""Addresses of Redis: connection strings as .NET clients of Redis use them, and URLs (caching-28 to caching-30)."""

from __future__ import annotations

import pytest

from rowcall.core.cache.redis_address import BadAddressError, RedisAddress, parse_redis


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("localhost", RedisAddress((("localhost", 6379),))),
        ("localhost:6380", RedisAddress((("localhost", 6380),))),
        ("cache,ssl=true", RedisAddress((("cache", 6380),), tls=True)),
        ("one:1, two:2 ,three", RedisAddress((("one", 1), ("two", 2), ("three", 6379)))),
        ("[::1]:7,password=a=b", RedisAddress((("::1", 7),), password="a=b")),
        (
            "localhost:6379,abortConnect=false,ssl=false,connectTimeout=10000,syncTimeout=5000,connectRetry=3",
            RedisAddress((("localhost", 6379),), connect_timeout=10.0),
        ),
        (
            "h,User=u,PASSWORD=p,defaultDatabase=2,name=me,keepAlive=5,serviceName=main,sslHost=x,tieBreaker=,proxy=None",
            RedisAddress((("h", 6379),), False, "x", "u", "p", 2, "me", "main", keep_alive=5),
        ),
        ("redis://h", RedisAddress((("h", 6379),))),
        (
            "rediss://u:p%40@h:7/3?connectTimeout=100",
            RedisAddress((("h", 7),), True, None, "u", "p@", 3, connect_timeout=0.1),
        ),
    ],
)  # fmt: skip
def test_addresses(text: str, address: RedisAddress) -> None:
    assert parse_redis(text) == address


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ssl=true",
        "h,wrong=1",
        "h:port",
        "h,ssl=perhaps",
        "http://h",
        "redis://h:x",
        "h:0",
        "redis://h:0",
        "h:65536",
        "h:" + "9" * 5000,
        "redis://h/" + "9" * 5000,
    ],
)
def test_invalid_addresses_are_reported_without_the_password(text: str) -> None:
    with pytest.raises(BadAddressError) as error:
        parse_redis(f"{text},password=much-secret" if "://" not in text else text)
    assert "much-secret" not in str(error.value)
    assert "much-secret" not in repr(str(parse_redis("h,password=much-secret")))
