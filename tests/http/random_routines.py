"""Random routines with random comments, and random requests for them: good ones, bad ones and malicious ones.

Everything comes from one `random.Random`, so a seed gives the same schema and requests again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from random import Random
from urllib.parse import quote, quote_plus, urlencode

from tests.http.random_types import (
    Array,
    Composite,
    Domain,
    Kind,
    Scalar,
    Types,
    base_of,
    is_number,
    present,
    text,
)

METHODS = ("GET", "POST", "PUT", "DELETE", "QUERY")
NULLS = ("ignore", "empty_string", "null_literal")
GARBAGE = (
    "",
    "null",
    "x",
    "'",
    '"',
    "{}",
    "{",
    "[1",
    "\\",
    "%",
    "1e999",
    "--",
    "$1",
    "\U0001f600",
    "1;2",
    "(,)",
    "NaN",
)
KINDS_OF_BODY = ("application/json", "text/plain", "application/x-www-form-urlencoded", "", "multipart/form-data")


@dataclass(frozen=True)
class Parameter:
    name: str | None
    kind: Kind
    default: bool
    variadic: bool = False

    @property
    def declared(self) -> str:
        default = " default null" if self.default else ""
        return f"{'variadic ' if self.variadic else ''}{self.name or ''} {self.kind.sql}{default}"


@dataclass(frozen=True)
class Routine:
    number: int
    method: str
    path: str
    parameters: tuple[Parameter, ...]
    sql: str

    def key(self, index: int) -> str:
        name = self.parameters[index].name
        return f"${index + 1}" if name is None else name.strip("_")


@dataclass(frozen=True)
class Request:
    method: str
    target: str
    headers: dict[str, str]
    body: bytes


def routines(random: Random, types: Types, count: int) -> list[Routine]:
    made: list[Routine] = []
    for number in range(count):
        earlier = random.choice(made) if made and random.random() < 0.15 else None
        made.append(_routine(random, types, number, earlier))
    return made


def _routine(random: Random, types: Types, number: int, earlier: Routine | None) -> Routine:
    """earlier: the one whose route it shares."""
    parameters = _parameters(random, types)
    method = earlier.method if earlier else random.choice(METHODS)
    path = earlier.path if earlier else f"/r/{number}{_segments(random, parameters)}"
    declared = ", ".join(parameter.declared for parameter in parameters)
    procedure = random.random() < 0.08
    what = "procedure" if procedure else "function"
    returns, body = ("", "select 1") if procedure else _result(random, types, parameters)
    strict = " strict" if not procedure and random.random() < 0.15 else ""
    volatility = "" if procedure else f" {random.choice(['volatile', 'stable', 'immutable', 'stable'])}"
    lines = [f"HTTP {method} {path}", *_lines(random, parameters)]
    comment = "\n".join(lines).replace("'", "''")
    sql = (
        f"create {what} r_{number}({declared}) {returns} language sql{volatility}{strict} as $body$ {body} $body$;\n"
        f"comment on {what} r_{number} is '{comment}'"
    )
    return Routine(number, method, path, parameters, sql)


def _parameters(random: Random, types: Types) -> tuple[Parameter, ...]:
    count = random.choice([0, 1, 1, 2, 2, 3, 4, 6])
    unnamed = random.randint(0, count) if random.random() < 0.2 else 0
    defaults = random.randint(0, count) if random.random() < 0.5 else 0
    made = [
        Parameter(None if index < unnamed else f"_p{index}", types.make(2), index >= count - defaults)
        for index in range(count)
    ]
    if random.random() < 0.12 and not defaults:
        element = types.make(0)
        made.append(Parameter(f"_p{count}", Array(element), default=False, variadic=True))
    return tuple(made)


def _segments(random: Random, parameters: tuple[Parameter, ...]) -> str:
    named = [parameter for parameter in parameters if parameter.name and not isinstance(parameter.kind, Composite)]
    if not named or random.random() < 0.6:
        return ""
    optional = "?" if random.random() < 0.4 else ""
    return f"/{{{random.choice(named).name}{optional}}}"


def _result(random: Random, types: Types, parameters: tuple[Parameter, ...]) -> tuple[str, str]:
    received = ", ".join(f"${index + 1}::text" for index in range(len(parameters))) or "'none'"
    kind = random.choice([parameter.kind for parameter in parameters] or [types.make(1)])
    index = next((index + 1 for index, parameter in enumerate(parameters) if parameter.kind is kind), None)
    value = f"null::{kind.sql}" if index is None else f"${index}"
    return random.choice(
        [
            ("returns text", f"select concat_ws('|', {received})"),
            ("returns text", "select null::text"),
            ("returns int", "select 1"),
            ("returns void", "select 1"),
            (f"returns {kind.sql}", f"select {value}"),
            (f"returns setof {kind.sql}", f"select {value} from generate_series(1, 3)"),
            (f"returns table (n int, v {kind.sql}, t text)", f"select n, {value}, 'x' from generate_series(1, 40) n"),
            ("returns setof text", "select 'a' where false"),
            ("returns json", "select current_setting('request.headers', true)::json"),
        ]
    )


def _lines(random: Random, parameters: tuple[Parameter, ...]) -> list[str]:
    lines = [
        f"request_param_type {random.choice(['query_string', 'body_json'])}",
        f"query_string_null_handling {random.choice(NULLS)}",
        f"request_headers_mode {random.choice(['ignore', 'context', 'parameter'])}",
        "raw",
        "nested",
        "single",
        "timeout 20s",
    ]
    named = [parameter.name for parameter in parameters if parameter.name]
    if named:
        name = random.choice(named)
        lines += [
            f"param {name} is other",
            f"param {name} default {random.choice(['null', '1', 'x', '{}'])}",
            f"param {name} type is {random.choice(['int', 'text', 'date', 'jsonb', 'int[]'])}",
            f"body_parameter_name {name}",
            f"X-Value: {{{name}}}",
            f"request_headers_parameter_name {name}",
        ]
    return random.sample(lines, random.choice([0, 0, 1, 2, 3]))


# ---- requests


def request(random: Random, routine: Routine) -> Request:
    method = routine.method if random.random() < 0.95 else random.choice((*METHODS, "HEAD", "PATCH", "OPTIONS"))
    target = quote(_path(random, routine), safe="/")
    query = _query(random, routine) if random.random() < (0.95 if routine.method == "GET" else 0.3) else ""
    kind = random.choice(KINDS_OF_BODY) if random.random() < 0.15 else "application/json"
    body = b"" if method in ("GET", "HEAD") and random.random() < 0.9 else _body(random, routine, kind)
    headers = {"Content-Type": kind} if kind else {}
    if random.random() < 0.2:
        headers["X-Odd"] = random.choice(["a, b", '"q" \\', "{x}", "'; drop table x; --"])
    return Request(method, f"{target}?{query}" if query else target, headers, body)


def _path(random: Random, routine: Routine) -> str:
    segments = []
    for segment in routine.path.split("/"):
        if not segment.startswith("{"):
            segments.append(segment)
        elif not segment.endswith("?}") or random.random() < 0.6:
            name = segment.strip("{?}")
            kind = next((item.kind for item in routine.parameters if item.name == name), None)
            segments.append((text(random) if kind is None else _text(random, kind)) or "0")
    return "/".join(segments)


def _query(random: Random, routine: Routine) -> str:
    pairs: list[tuple[str, str]] = []
    for index, parameter in enumerate(routine.parameters):
        pairs += _texts(random, routine.key(index), parameter.kind)
    if random.random() < 0.05:
        pairs.append((random.choice(["other", "P0", "", "p0'", text(random)]), text(random)))
    if random.random() < 0.05:
        random.shuffle(pairs)
    encoded = urlencode([(key.encode("utf-8", "replace"), value.encode("utf-8", "replace")) for key, value in pairs])
    return encoded + random.choice(["&%", "&a=%zz", "&=", "&%00=1", "&p0=%ff"]) if random.random() < 0.03 else encoded


def _texts(random: Random, key: str, kind: Kind) -> list[tuple[str, str]]:
    if random.random() < 0.05:
        return []
    base = base_of(kind)
    if isinstance(kind, Composite) and random.random() < 0.8:
        return [(f"{key}{_upper(name)}", _text(random, field)) for name, field in kind.fields]
    if isinstance(kind, Composite):
        return [(key, json.dumps(_object(random, kind)))]
    if isinstance(base, Array):
        return [(key, _text(random, base.element)) for _ in range(random.choice([1, 1, 2, 3]))]
    return [(key, _text(random, kind))] * (2 if random.random() < 0.03 else 1)


def _upper(name: str) -> str:
    return "".join(piece[:1].upper() + piece[1:] for piece in name.split("_"))


def _text(random: Random, kind: Kind) -> str:
    return random.choice(GARBAGE) if random.random() < 0.04 else present(random, kind)


def _body(random: Random, routine: Routine, kind: str) -> bytes:
    if kind == "application/x-www-form-urlencoded":
        return _query(random, routine).encode()
    if random.random() < 0.03:
        return random.choice(
            [b"", b"[1]", b"{", b"null", b'{"p0":1,}', b"\xff", b'{"p0":"\\ud800"}', b'{"p0":"\\u0000"}']
        )
    members: dict[str, object] = {}
    for index, parameter in enumerate(routine.parameters):
        members |= _members(random, routine.key(index), parameter.kind)
    if random.random() < 0.05:
        members[text(random)] = _value(random, Array(routine.parameters[0].kind) if routine.parameters else None)
    return json.dumps(members, ensure_ascii=random.random() < 0.5).encode("utf-8", "replace")


def _members(random: Random, key: str, kind: Kind) -> dict[str, object]:
    if random.random() < 0.05:
        return {}
    if isinstance(kind, Composite) and random.random() < 0.5:
        return {f"{key}{_upper(name)}": _value(random, field) for name, field in kind.fields}
    return {key: _value(random, kind)}


def _value(random: Random, kind: Kind | None) -> object:
    choice = random.random()
    if choice < 0.02 or kind is None:
        return random.choice([None, True, 7, 1.5, "", "x", [], {}, [[]], {"a": 1}, "null", 10**30])
    if choice < 0.06:
        return None
    match kind:
        case Domain(base=base):
            return _value(random, base)
        case Array(element=element):
            return [_value(random, element) for _ in range(random.choice([0, 1, 1, 2, 3]))]
        case Composite():
            return _object(random, kind)
        case Scalar():
            return _scalar(random, kind)


def _object(random: Random, kind: Composite) -> dict[str, object]:
    return {name: _value(random, field) for name, field in kind.fields if random.random() < 0.9}


def _scalar(random: Random, kind: Scalar) -> object:
    made = kind.make(random)
    if kind.rule == "boolean":
        return made == "t"
    if kind.rule == "json":
        # A string is taken as JSON text, so most of them would be none.
        document = json.loads(made)
        return [document] if isinstance(document, str) else document
    if kind.rule == "number" and is_number(made) and len(made) < 15 and random.random() < 0.7:
        return json.loads(made)
    return made


def shown(one: Request) -> str:
    """The request as a command that sends it again."""
    headers = " ".join(f"-H '{name}: {value}'" for name, value in one.headers.items())
    body = quote_plus(one.body)
    return f"{one.method} {one.target} {headers}\nbody (percent-encoded): {body}"
