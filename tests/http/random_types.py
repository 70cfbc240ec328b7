"""Random PostgreSQL types, the SQL that makes them, and the texts of random values of them.

Everything comes from one `random.Random`, so a seed gives the same types and values again.
"""

from __future__ import annotations

import json
import string
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from tests.ext.twins.arrays import Nested, print_array
from tests.ext.twins.composites import print_tuple
from tests.ext.twins.values import NUMBER

MAX_DEPTH = 4
SYNTAX = "{}()[],;:=\"\\' \n\t\r\x01\x1f\x7fNULLtf01-/\u2028é你"
PLANES = [
    (0x20, 0x7E),
    (0xA0, 0x2FFF),
    (0x3000, 0xD7FF),
    (0xE000, 0xFFFF),
    *((p << 16, (p << 16) + 0xFFFF) for p in range(1, 17)),
]
NAMES = [
    "id",
    "unit_code",
    "_lead__ing",
    "MyCol",
    "URL_Path",
    'q"q',
    "back\\slash",
    "with blank",
    "größe",
    "from",
    "a,b",
]

Text = str | None


@dataclass(frozen=True)
class Scalar:
    sql: str
    rule: str
    """number, boolean, json, datetime or text: what rendering-25 to rendering-29 says of it."""
    make: Callable[[Random], str] = field(repr=False)
    delimiter: str = ","


@dataclass(frozen=True)
class Domain:
    sql: str
    base: Kind


@dataclass(frozen=True)
class Array:
    element: Kind

    @property
    def sql(self) -> str:
        return f"{self.element.sql}[]"

    @property
    def delimiter(self) -> str:
        """Handed on by domains and by arrays: arrays of a domain over `box[]` have the semicolon of `box` too."""
        element = base_of(self.element)
        return "," if isinstance(element, Composite) else element.delimiter


@dataclass(frozen=True)
class Composite:
    sql: str
    fields: tuple[tuple[str, Kind], ...]


Kind = Scalar | Domain | Array | Composite


def base_of(kind: Kind) -> Scalar | Array | Composite:
    while isinstance(kind, Domain):
        kind = kind.base
    return kind


# ---- texts of scalars


def text(random: Random) -> str:
    shape = random.random()
    if shape < 0.1:
        return ""
    if shape < 0.2:
        return random.choice(["NULL", "null", '"', "\\", '""', "\\\\", " ", "{}", "()", "(,)", '{"a":1}', "t"])
    if shape < 0.6:
        return "".join(random.choices(SYNTAX, k=random.randint(1, 20)))
    return "".join(chr(random.randint(*random.choice(PLANES))) for _ in range(random.randint(1, 20)))


def document(random: Random) -> str:
    return json.dumps(_json_value(random, 2), ensure_ascii=random.random() < 0.5, indent=random.choice([None, 1]))


def _json_value(random: Random, depth: int) -> object:
    choice = random.randint(0, 6 if depth else 4)
    if choice == 5:
        return [_json_value(random, depth - 1) for _ in range(random.randint(0, 3))]
    if choice == 6:
        # Plain keys: jsonb drops repeated ones and sorts.
        return {letter: _json_value(random, depth - 1) for letter in random.sample(string.ascii_letters, 2)}
    return [None, True, random.randint(-99, 99), 1.5, text(random)][choice]


def moment(random: Random) -> str:
    if random.random() < 0.1:
        return random.choice(["infinity", "-infinity"])
    # PostgreSQL's calendar begins in 4713 BC.
    year, era = random.choice([(random.randint(1, 9999), ""), (random.randint(1, 4000), " BC")])
    day = f"{year:04}-{random.randint(1, 12):02}-{random.randint(1, 28):02}"
    return f"{day} {clock(random)}{random.choice(['', '.5', '.123456'])}{era}"


def clock(random: Random) -> str:
    return f"{random.randint(0, 23):02}:{random.randint(0, 59):02}:{random.randint(0, 59):02}"


def number(random: Random) -> str:
    digits = "".join(random.choices(string.digits, k=random.randint(1, 30)))
    return random.choice([digits, f"-{digits}.{digits}0", "NaN", "0.0000000001", "0", "1.50"])


def one_of(*texts: str) -> Callable[[Random], str]:
    return lambda random: random.choice(texts)


SCALARS = (
    Scalar("text", "text", text),
    Scalar("text", "text", text),
    Scalar("varchar", "text", text),
    Scalar("mood", "text", one_of("red", "amber glow", 'say "hi"', "a,b", "")),
    Scalar("integer", "number", lambda random: str(random.randint(-(2**31), 2**31 - 1))),
    Scalar("bigint", "number", lambda random: str(random.randint(-(2**63), 2**63 - 1))),
    Scalar("numeric", "number", number),
    Scalar("float8", "number", lambda random: random.choice([repr(random.gauss(0, 1e30)), "NaN", "-0", "1e-7"])),
    Scalar("real", "number", lambda random: random.choice([f"{random.random():.6f}", "Infinity", "1e30"])),
    Scalar("money", "text", one_of("12.34", "-1234.5")),
    Scalar("boolean", "boolean", one_of("t", "f")),
    Scalar("json", "json", document),
    Scalar("jsonb", "json", document),
    Scalar("timestamp", "datetime", moment),
    Scalar("timestamptz", "datetime", moment),
    Scalar("date", "text", one_of("0044-03-15 BC", "2024-02-29", "infinity")),
    Scalar("time", "text", clock),
    Scalar("interval", "text", one_of("1 day 10:30:01", "-1 mons +2 days -00:00:05.25")),
    Scalar("bytea", "text", lambda random: "\\x" + random.randbytes(random.randint(0, 9)).hex()),
    Scalar("uuid", "text", lambda random: f"{random.getrandbits(128):032x}"),
    Scalar("inet", "text", one_of("10.0.0.1/8", "2001:db8::1")),
    Scalar("tsrange", "text", one_of("[2024-01-01 00:00,2024-01-02 00:00)", "empty", "(,)")),
    Scalar("int4range", "text", one_of("[1,5)", "(,7]")),
    Scalar("box", "text", one_of("(2,2),(0,0)"), ";"),
    Scalar("oid", "text", one_of("0", "4294967295")),
    Scalar('"char"', "text", one_of("q", "", '"', "\\")),
    Scalar("varbit", "text", one_of("", "101")),
)  # fmt: skip


# ---- types


class Types:
    """Makes types; `sql` are the statements that create them."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.sql = ["create type mood as enum ('red', 'amber glow', 'say \"hi\"', 'a,b', '')"]

    def make(self, depth: int = MAX_DEPTH) -> Kind:
        """Composites may stand `depth` levels deep."""
        choice = self.random.random()
        if depth == 0 or choice < 0.3:
            return self._scalar()
        if choice < 0.65:
            return self.composite(depth)
        if choice < 0.9:
            return self._array(depth)
        return self._domain(self.composite(depth) if choice < 0.95 else self._array(depth))

    def composite(self, depth: int) -> Composite:
        names = self.random.sample(NAMES, self.random.choice([1, 2, 3, 3, 4, 6]))
        fields = tuple((name, self.make(depth - 1)) for name in names)
        declared = ", ".join('"{}" {}'.format(name.replace('"', '""'), kind.sql) for name, kind in fields)
        made = Composite(f"composite_{len(self.sql)}", fields)
        self.sql.append(f"create type {made.sql} as ({declared})")
        return made

    def _array(self, depth: int) -> Array:
        # An array of arrays is what PostgreSQL calls an array of more dimensions; a domain in between keeps them apart.
        element = self.make(depth)
        while isinstance(element, Array):
            element = self._domain(element) if self.random.random() < 0.3 else self.make(depth)
        return Array(element)

    def _scalar(self) -> Kind:
        scalar = self.random.choice(SCALARS)
        return self._domain(scalar) if self.random.random() < 0.1 else scalar

    def _domain(self, base: Kind) -> Domain:
        made = Domain(f"domain_{len(self.sql)}", base)
        self.sql.append(f"create domain {made.sql} as {base.sql}")
        return made


# ---- values


def value(random: Random, kind: Kind) -> Text:
    """PostgreSQL's input text of a value, None for NULL."""
    return None if random.random() < 0.12 else present(random, kind)


def present(random: Random, kind: Kind) -> str:
    match kind:
        case Scalar():
            return kind.make(random)
        case Domain():
            return present(random, kind.base)
        case Composite():
            return print_tuple([value(random, field) for _, field in kind.fields])
        case Array():
            return _array_text(random, kind)


def _array_text(random: Random, kind: Array) -> str:
    def row(length: int) -> Nested:
        return [value(random, kind.element) for _ in range(length)]

    # Where elements are arrays themselves (a domain in between), JSON would not show which brackets are dimensions.
    if random.random() < 0.15 and not isinstance(base_of(kind.element), Array):
        items: Nested = [row(2) for _ in range(random.randint(1, 2))]
        return print_array(items, kind.delimiter)
    items = row(random.choice([0, 1, 1, 2, 3]))
    bounds = f"[-1:{len(items) - 2}]=" if items and random.random() < 0.1 else ""
    return bounds + print_array(items, kind.delimiter)


def is_number(text: str) -> bool:
    return NUMBER.fullmatch(text) is not None
