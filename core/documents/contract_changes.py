"""Differences between two contracts, each with its severity for existing clients."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rowcall.core.documents.contract import Contract

Value = Mapping[str, Any]

_NUMBERS: dict[tuple[str | None, str | None], int] = {
    ("integer", "int32"): 1,
    ("integer", "int64"): 2,
    ("number", None): 3,
}
"""(type, format) → rank: each type can hold all values of the types with lower ranks. Floating-point types are
missing."""


class Severity(enum.IntEnum):
    """What a change means for existing clients."""

    COMPATIBLE = 0
    DOUBTFUL = 1
    """The change may affect some clients."""
    BREAKING = 2


@dataclass(frozen=True, slots=True)
class Change:
    """One change of an endpoint. endpoint: its method and path, such as `GET /api/films`. text: what has changed."""

    severity: Severity
    endpoint: str
    text: str

    def __str__(self) -> str:
        return f"{self.severity.name.lower()}: {self.endpoint}: {self.text}"


def changes(old: Contract, new: Contract) -> list[Change]:
    """Return the changes from `old` to `new`, the most severe first."""
    before, after = old["endpoints"], new["endpoints"]
    routines = {item["routine"]: name for name, variants in after.items() if name not in before for item in variants}
    result: list[Change] = []
    for name, variants in before.items():
        if name in after:
            result += (Change(severity, name, text) for severity, text in _variants(variants, after[name]))
            continue
        moved = next((routines[item["routine"]] for item in variants if item["routine"] in routines), None)
        result.append(Change(Severity.BREAKING, name, "removed" if moved is None else f"moved to {moved}"))
    result += (Change(Severity.COMPATIBLE, name, "added") for name in after if name not in before)
    return sorted(result, key=lambda item: (-item.severity, item.endpoint, item.text))


Findings = Iterator[tuple[Severity, str]]


def _variants(old: list[Any], new: list[Any]) -> Findings:
    """Compare the endpoints of one method and path. If each contract has one, these are compared whatever their
    parameters are; otherwise those with equal parameter names are compared with each other."""
    if len(old) == len(new) == 1:
        yield from _endpoint(old[0], new[0])
        return
    before, after = _by_names(old), _by_names(new)
    for names in before | after:
        yield from _overloads(names, before.get(names, []), after.get(names, []))


def _by_names(variants: list[Any]) -> dict[tuple[str, ...], list[Any]]:
    """Return the endpoints by their parameter names, which overloads may share: their types or defaults differ."""
    result: dict[tuple[str, ...], list[Any]] = {}
    for item in variants:
        result.setdefault(tuple(sorted(item["request"])), []).append(item)
    return result


def _overloads(names: tuple[str, ...], old: list[Any], new: list[Any]) -> Findings:
    """Compare endpoints of one method and path that have the same parameter names: those of the same routine with each
    other, the remaining ones in their order."""
    pairs, unpaired, rest = [], [], list(new)
    for item in old:
        match = next((other for other in rest if other["routine"] == item["routine"]), None)
        if match is None:
            unpaired.append(item)
        else:
            pairs.append((item, match))
            rest.remove(match)
    pairs += zip(unpaired, rest, strict=False)
    for item, match in pairs:
        yield from _endpoint(item, match)
    for _ in range(len(old) - len(pairs)):
        yield Severity.BREAKING, f"the overload with ({', '.join(names)}) is removed"
    for _ in range(len(new) - len(pairs)):
        yield Severity.COMPATIBLE, f"an overload with ({', '.join(names)}) is added"


def _endpoint(old: Value, new: Value) -> Findings:
    yield from _access(old["access"], new["access"])
    yield from _request(old["request"], new["request"])
    yield from _answer(old, new)
    yield from _functions(old.get("functions", {}), new.get("functions", {}))
    if old.get("upload") != new.get("upload"):
        yield Severity.BREAKING, "files are taken" if new.get("upload") else "files are no longer taken"
    if old.get("stream") != new.get("stream"):
        if old.get("stream") is None:
            yield Severity.COMPATIBLE, f"there is a stream of events at {new['stream']}"
        else:
            yield Severity.BREAKING, f"the stream of events at {old['stream']} is removed"


def _answer(old: Value, new: Value) -> Findings:
    """Compare the successful responses of an endpoint: what they contain (`kind`), and if it is the same, body and
    status. An endpoint without `kind` sends the result of its routine."""
    before, after = (item.get("kind", "result") for item in (old, new))
    if before != after:
        yield Severity.BREAKING, f"the kind of the response is {after}, no longer {before}"
        return
    yield from _response(old["response"], new["response"])
    yield from _status(old, new)


def _status(old: Value, new: Value) -> Findings:
    """Compare the statuses of a successful response that two contracts declare for an endpoint. A contract without one
    stands for the usual status: 200, or 204 without a body."""
    before, after = (str(item.get("status", "the usual one")) for item in (old, new))
    if before != after:
        yield Severity.BREAKING, f"the status of a successful response is {after}, no longer {before}"


def _functions(old: Value, new: Value) -> Findings:
    """Report renamed client functions. A language that only one contract has is ignored."""
    for language, name in old.items():
        if new.get(language, name) != name:
            yield Severity.BREAKING, f"the function {name} of the {language} client is renamed to {new[language]}"


def _access(old: str | list[str], new: str | list[str]) -> Findings:
    if old == new:
        return
    text = f"authorization: {_who(old)} before, {_who(new)} now"
    if new == "anyone" or old == "anyone":
        # Requiring a sign-in breaks anonymous callers; dropping the requirement may be intended.
        yield (Severity.DOUBTFUL if new == "anyone" else Severity.BREAKING), text
    elif isinstance(old, list) and (new == "signed in" or set(new) > set(old)):
        yield Severity.DOUBTFUL, text
    else:
        yield Severity.BREAKING, text


def _who(access: str | list[str]) -> str:
    return access if isinstance(access, str) else f"roles {', '.join(access)}"


def _request(old: Value, new: Value) -> Findings:
    gone = [name for name in old if name not in new]
    fresh = [name for name in new if name not in old]
    for name in gone:
        twin = next((item for item in fresh if new[item] == old[name]), None)
        if twin is None:
            yield Severity.BREAKING, f"parameter {name} is removed"
        else:
            fresh.remove(twin)
            yield Severity.BREAKING, f"parameter {name} is renamed to {twin}"
    for name in fresh:
        if new[name]["required"]:
            yield Severity.BREAKING, f"parameter {name} is added and required"
        else:
            yield Severity.COMPATIBLE, f"parameter {name} is added"
    for name in old:
        if name in new:
            yield from _parameter(name, old[name], new[name])


def _parameter(name: str, old: Value, new: Value) -> Findings:
    if old["in"] != new["in"]:
        yield Severity.BREAKING, f"parameter {name} moves from the {old['in']} to the {new['in']}"
    if new["required"] and not old["required"]:
        yield Severity.BREAKING, f"parameter {name} is now required"
    if old["required"] and not new["required"]:
        yield Severity.COMPATIBLE, f"parameter {name} is no longer required"
    yield from _values(f"parameter {name}", old["schema"], new["schema"], of_request=True)


def _response(old: Value | None, new: Value | None) -> Findings:
    if old is None or new is None:
        if old is not new:
            yield Severity.BREAKING, "it now answers with nothing" if new is None else "it now answers with a body"
        return
    if old["type"] != new["type"]:
        yield Severity.BREAKING, f"the response is {new['type']}, no longer {old['type']}"
        return
    before, after = (item.get("formats", []) for item in (old, new))
    yield from ((Severity.BREAKING, f"the response can no longer be {name}") for name in before if name not in after)
    yield from ((Severity.COMPATIBLE, f"the response can also be {name}") for name in after if name not in before)
    yield from _values("the response", old["schema"] or {}, new["schema"] or {}, of_request=False)


def _values(what: str, old: Value, new: Value, *, of_request: bool) -> Findings:
    """Compare two schemas of one value.

    what: names the value in messages. of_request: True: requests send the value, so that accepting fewer values is
    worse; False: responses contain it, so that returning more values is worse.
    """
    if old == new:
        return
    before, after = _type(old), _type(new)
    if before != after:
        wider = _NUMBERS.get(after, 0) > _NUMBERS.get(before, 9)
        narrower = 0 < _NUMBERS.get(after, 0) < _NUMBERS.get(before, 0)
        text = f"{what} is {_format_type(new)}, was {_format_type(old)}"
        if wider:
            yield (Severity.COMPATIBLE if of_request else Severity.DOUBTFUL), text
        elif narrower and not of_request:
            yield Severity.COMPATIBLE, text
        else:
            yield Severity.BREAKING, text
        return
    yield from _nulls(what, old, new, of_request=of_request)
    yield from _choices(what, old, new, of_request=of_request)
    if "items" in old and "items" in new:
        yield from _values(f"each of {what}", old["items"], new["items"], of_request=of_request)
    yield from _members(what, old.get("properties", {}), new.get("properties", {}), of_request=of_request)


def _members(what: str, old: Value, new: Value, *, of_request: bool) -> Findings:
    for name, schema in old.items():
        if name in new:
            yield from _values(f"{name} of {what}", schema, new[name], of_request=of_request)
        else:
            yield Severity.BREAKING, f"{what} has no {name} any more"
    for name in new:
        if name not in old:
            yield Severity.COMPATIBLE, f"{what} has a new {name}"


def _nulls(what: str, old: Value, new: Value, *, of_request: bool) -> Findings:
    before, after = _may_be_null(old), _may_be_null(new)
    if before != after:
        worse = after != of_request
        text = f"{what} may {'now' if after else 'no longer'} be null"
        yield (Severity.COMPATIBLE if not worse else Severity.BREAKING if of_request else Severity.DOUBTFUL), text


def _choices(what: str, old: Value, new: Value, *, of_request: bool) -> Findings:
    before, after = old.get("enum"), new.get("enum")
    if before == after:
        return
    lost = set(before or ()) - set(after or ()) if after is not None else set()
    fresh = set(after or ()) - set(before or ()) if before is not None else set()
    open_before, open_after = before is None, after is None
    if of_request and (lost or open_before):
        yield Severity.BREAKING, f"{what} takes fewer values: {_format_values(after)} only"
    elif not of_request and (fresh or open_after):
        yield Severity.DOUBTFUL, f"{what} may have more values: {_format_values(after)}"
    else:
        yield Severity.COMPATIBLE, f"{what}: {_format_values(after)}"


def _format_values(values: list[Any] | None) -> str:
    return "any" if values is None else ", ".join(str(item) for item in values if item is not None)


def _type(schema: Value) -> tuple[str | None, str | None]:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((item for item in kind if item != "null"), None)
    return kind, schema.get("format")


def _may_be_null(schema: Value) -> bool:
    kind = schema.get("type")
    return bool(schema.get("nullable")) or (isinstance(kind, list) and "null" in kind)


def _format_type(schema: Value) -> str:
    kind, form = _type(schema)
    return f"{kind or 'any value'}{f' ({form})' if form else ''}"
