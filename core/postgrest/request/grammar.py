"""The grammar of PostgREST's query strings: decoded text → tree.

Source: PostgREST's documentation, URL Grammar.

A parser is a `Cursor` that moves forward; there is no back-tracking further than one token. What follows a complete
value is mostly ignored, as PostgREST does. A parameter that is refused here gets its message from `syntax_errors`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from rowcall.core.postgrest import errors
from rowcall.core.postgrest.request.syntax_errors import syntax_error
from rowcall.core.postgrest.request.tree import (
    Condition,
    Field,
    Group,
    JsonStep,
    LogicNode,
    Operation,
    OrderTerm,
    SelectColumn,
    SelectEmbed,
    SelectItem,
)

QUANTIFIED = frozenset(("eq", "gte", "gt", "lte", "lt", "like", "ilike", "match", "imatch"))
SIMPLE = frozenset(("neq", "cs", "cd", "ov", "sl", "sr", "nxr", "nxl", "adj"))
FULL_TEXT = frozenset(("fts", "plfts", "phfts", "wfts"))
AGGREGATES = ("sum", "avg", "count", "min", "max")
MAX_DEPTH = 100
"""Maximum depth of nested embeds or logic groups."""

_RUN = re.compile(r"[\w $]+(?:-(?!>)[\w $]+)*")
_WORD = re.compile(r"[\w $]+")
_TYPE = re.compile(r" *[^\W\d][\w$]*(?: +[^\W\d][\w$]*)* *")
"""Words that PostgreSQL reads as names or keywords. `$1` would be a parameter, and `$$` would begin a text."""
_KEY = re.compile(r"[^(\-:.,>)]+(?:-(?!>)[^(\-:.,>)]+)*")
_INDEX = re.compile(r"-?[0-9]+(?=->|::|[.,]|\Z)")
_OPERATOR = re.compile(r"[a-z]+")
_SPACES = re.compile(r"[ \t]*")
Parsed = TypeVar("Parsed")


class RefusedError(Exception):
    """A text does not follow the grammar."""


class Cursor:
    """A position in the text of one parameter. Parsers read at the position and move it forward. They raise
    `RefusedError` if the text does not follow the grammar.
    """

    __slots__ = ("depth", "position", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.depth = 0

    @property
    def at_end(self) -> bool:
        return self.position >= len(self.text)

    def sees(self, token: str) -> bool:
        """Return whether the token is next."""
        return self.text.startswith(token, self.position)

    def take(self, token: str) -> bool:
        """Return whether the token is next, and move behind it then."""
        if not self.text.startswith(token, self.position):
            return False
        self.position += len(token)
        return True

    def expect(self, token: str) -> None:
        """Move behind the token. Raises `RefusedError` if it is not next."""
        if not self.take(token):
            raise RefusedError

    def match(self, pattern: re.Pattern[str]) -> str | None:
        """Return the text that matches the pattern here, and move behind it; None: no match, and the position stays."""
        match = pattern.match(self.text, self.position)
        if match is None:
            return None
        self.position = match.end()
        return match.group()

    def skip_spaces(self) -> None:
        self.match(_SPACES)

    def enter(self) -> None:
        """Begin one more level of nesting. Raises `ApiError` (`PGRST100`, no `RefusedError`) if there are too many."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            place = f"(line 1, column {self.position + 1})"
            raise errors.syntax_error("query string", "…", place, f"expecting at most {MAX_DEPTH} levels")

    def leave(self) -> None:
        self.depth -= 1


def _parse_parameter(what: str, text: str, parse: Callable[[Cursor], Parsed]) -> Parsed:
    """Parse the text of a parameter. what: its name in messages. Raises `ApiError`."""
    try:
        return parse(Cursor(text))
    except RefusedError:
        raise syntax_error(what, text) from None


def read_quoted_text(cursor: Cursor) -> str | None:
    """Read a quoted text. None: no quoted text that is closed is next, and the position stays."""
    text, place = cursor.text, cursor.position
    if not text.startswith('"', place):
        return None
    place += 1
    parts: list[str] = []
    while place < len(text):
        character = text[place]
        if character == '"':
            cursor.position = place + 1
            return "".join(parts)
        if character == "\\":
            place += 1
            if place >= len(text):
                break
            character = text[place]
        parts.append(character)
        place += 1
    return None


def name(cursor: Cursor) -> str:
    """Read a quoted or plain name. Raises `RefusedError`, also for a name with a NUL, which would end the SQL text."""
    result = read_quoted_text(cursor)
    if result is not None:
        if "\0" in result:
            raise RefusedError
        return result
    plain = cursor.match(_RUN)
    if plain is None or not plain.strip() or _ends_with_dash(cursor):
        raise RefusedError
    return _strip_name(plain)


def _ends_with_dash(cursor: Cursor) -> bool:
    """Return whether a dash follows that is no part of an arrow."""
    return cursor.sees("-") and not cursor.sees("->")


def _strip_name(text: str) -> str:
    """Return a name without the blanks around its parts, which dashes join."""
    return "-".join(part.strip() for part in text.split("-")) if " " in text else text


def json_path(cursor: Cursor) -> tuple[JsonStep, ...]:
    """Read the arrows that follow a name, if any. Raises `RefusedError`."""
    steps: list[JsonStep] = []
    while cursor.sees("->"):
        text = cursor.take("->>")
        if not text:
            cursor.take("->")
        index = cursor.match(_INDEX)
        if index is not None:
            steps.append(JsonStep(index, index=True, text=text))
            continue
        key = read_quoted_text(cursor)
        if key is None:
            key = cursor.match(_KEY)
            if key is None or key.startswith('"') or _ends_with_dash(cursor):
                raise RefusedError
            key = _strip_name(key)
        steps.append(JsonStep(key, index=False, text=text))
    return tuple(steps)


def field(cursor: Cursor) -> Field:
    """Read a column and its JSON path, with blanks around them. Raises `RefusedError`."""
    cursor.skip_spaces()
    column = name(cursor)
    result = Field(column, json_path(cursor))
    cursor.skip_spaces()
    return result


# --- select ---------------------------------------------------------------------------------------------------------


def select(text: str) -> tuple[SelectItem, ...]:
    """Parse the value of `select`. An empty text means all columns. Raises `ApiError` (`PGRST100`)."""
    return _parse_parameter("select parameter", text, _items) or (SelectColumn(Field("*")),)


def _items(cursor: Cursor) -> tuple[SelectItem, ...]:
    """Read the items up to `)` or the end of the text; there may be none."""
    if cursor.sees(")") or cursor.at_end:
        return ()
    items = [_item(cursor)]
    while _comma(cursor):
        items.append(_item(cursor))
    return tuple(items)


def _comma(cursor: Cursor) -> bool:
    """Read a comma with blanks around it. Blanks without a comma are refused."""
    start = cursor.position
    cursor.skip_spaces()
    if not cursor.take(","):
        if cursor.position > start:
            raise RefusedError
        return False
    cursor.skip_spaces()
    return True


def _item(cursor: Cursor) -> SelectItem:
    """Read a column, an aggregate, an embed or a spread."""
    cursor.skip_spaces()
    if cursor.take("..."):
        return _embed(cursor, name(cursor), None, spread=True)
    if cursor.take("*"):
        _end_of_item(cursor)
        return SelectColumn(Field("*"))
    start = cursor.position
    alias: str | None = None
    first = name(cursor)
    if cursor.sees(":") and not cursor.sees("::"):
        cursor.take(":")
        alias, start = first, cursor.position
        first = name(cursor)
    if first == "count" and cursor.text.startswith("count()", start):
        cursor.position = start + len("count()")
        column = SelectColumn(Field(""), alias, None, "count", _cast(cursor))
        _end_of_item(cursor)
        return column
    if (cursor.sees("(") or cursor.sees("!")) and first != "count":
        return _embed(cursor, first, alias, spread=False)
    return _column(cursor, first, alias)


def _column(cursor: Cursor, first: str, alias: str | None) -> SelectColumn:
    """Read what follows the name of a column. first: the name."""
    column = Field(first, json_path(cursor))
    cursor.skip_spaces()
    cast = _cast(cursor)
    aggregate: str | None = None
    if cursor.take("."):
        aggregate = next((word for word in AGGREGATES if cursor.take(word + "()")), None)
        if aggregate is None:
            raise RefusedError
    result_cast = _cast(cursor)
    _end_of_item(cursor)
    return SelectColumn(column, alias, cast, aggregate, None if aggregate is None else result_cast)


def _end_of_item(cursor: Cursor) -> None:
    """Raise `RefusedError` unless the text ends here, or `,` or `)` is next. A blank before these is refused, too."""
    if not (cursor.at_end or cursor.sees(",") or cursor.sees(")")):
        raise RefusedError
    cursor.skip_spaces()


def _cast(cursor: Cursor) -> str | None:
    """Read a cast `::type`; None: none is next."""
    if not cursor.take("::"):
        return None
    cast = cursor.match(_TYPE)
    if cast is None:
        raise RefusedError
    return cast.strip()


def _embed(cursor: Cursor, target: str, alias: str | None, *, spread: bool) -> SelectEmbed:
    """Read what follows the name of an embed: hint, kind of join, and items in parentheses."""
    hint: str | None = None
    inner: bool | None = None
    for _ in range(2):
        if not cursor.take("!"):
            break
        word = next((word for word in ("left", "inner") if cursor.take(word)), None)
        if word is None:
            modifier = name(cursor)
            hint = modifier if hint is None else hint
        elif inner is None:
            inner = word == "inner"
    cursor.expect("(")
    cursor.enter()
    items = _items(cursor)
    cursor.expect(")")
    cursor.leave()
    return SelectEmbed(target, items, alias, hint, bool(inner), spread)


# --- filters --------------------------------------------------------------------------------------------------------


def key_path(text: str) -> tuple[tuple[str, ...], Field]:
    """Parse the key of a filter: names of embeds, then a field. Returns both. Raises `ApiError` (`PGRST100`)."""
    return _parse_parameter("tree path", text, _key_path)


def _key_path(cursor: Cursor) -> tuple[tuple[str, ...], Field]:
    names = _path(cursor)
    return tuple(names[:-1]), Field(names[-1], json_path(cursor))


def _path(cursor: Cursor) -> list[str]:
    """Read names that dots separate."""
    names = [name(cursor)]
    while cursor.take("."):
        names.append(name(cursor))
    return names


def operation(text: str) -> Operation:
    """Parse the value of a filter, such as `not.eq.5`. Raises `ApiError` (`PGRST100`)."""
    return _parse_parameter("filter", text, lambda cursor: _operation(cursor, _rest))


def is_operation(text: str) -> bool:
    """Return whether a text is the value of a filter."""
    try:
        _operation(Cursor(text), _rest)
    except RefusedError:
        return False
    return True


def _rest(cursor: Cursor) -> str:
    """Read the rest of the text."""
    start, cursor.position = cursor.position, len(cursor.text)
    return cursor.text[start:]


def _operation(cursor: Cursor, value: Callable[[Cursor], str]) -> Operation:
    """Read `[not.]operator.value`. value: reads an operand, except those of `in` and `is`."""
    negated = cursor.take("not.")
    operator = cursor.match(_OPERATOR) or ""
    if operator in SIMPLE or operator == "isdistinct":
        cursor.expect(".")
        return Operation(operator, value(cursor), negated)
    if operator in QUANTIFIED:
        quantifier = next((word for word in ("any", "all") if cursor.take(f"({word})")), None)
        cursor.expect(".")
        return Operation(operator, value(cursor), negated, quantifier)
    if operator in FULL_TEXT:
        configuration = None
        if cursor.take("("):
            configuration = cursor.match(_WORD)
            cursor.expect(")")
            if configuration is None:
                raise RefusedError
            configuration = configuration.strip()
        cursor.expect(".")
        return Operation(operator, value(cursor), negated, None, configuration)
    if operator == "in":
        cursor.expect(".")
        return Operation("in", _list(cursor), negated)
    if operator == "is":
        cursor.expect(".")
        return Operation("is", _is_value(cursor), negated)
    raise RefusedError


def _is_value(cursor: Cursor) -> str:
    """Read an operand of `is`, in any case; return it in lower case. What follows it is not read."""
    rest = cursor.text[cursor.position :].lower()
    for candidate in ("not_null", "null", "true", "false", "unknown"):
        if rest.startswith(candidate):
            cursor.position += len(candidate)
            return candidate
    raise RefusedError


def _list(cursor: Cursor) -> tuple[str, ...]:
    """Read the elements of `in`. `()`, `( )` and `("")` have no elements."""
    cursor.skip_spaces()
    cursor.expect("(")
    cursor.skip_spaces()
    elements = [_element(cursor)]
    while cursor.take(","):
        elements.append(_element(cursor))
    cursor.expect(")")
    cursor.skip_spaces()
    return () if elements == [""] else tuple(elements)


def _element(cursor: Cursor) -> str:
    """Read an element of a list, or a value of a logic tree. Quotes are only quotes if `,` or `)` follows the closing
    one."""
    start = cursor.position
    result = read_quoted_text(cursor)
    if result is not None and cursor.text[cursor.position : cursor.position + 1] in (",", ")"):
        return result
    cursor.position = start
    end = start
    while end < len(cursor.text) and cursor.text[end] not in ",)":
        end += 1
    cursor.position = end
    return cursor.text[start:end]


# --- logic trees ----------------------------------------------------------------------------------------------------


def is_logic_key(text: str) -> bool:
    """Return whether the key of a parameter is that of a logic tree. If its last part is in quotes, it is a column."""
    return text in ("and", "or") or text.endswith((".and", ".or"))


def logic_key(text: str) -> tuple[tuple[str, ...], bool, str]:
    """Return path, negation and operator of the key of a logic tree, such as `not.or` or `vessel.not.and`. Raises
    `ApiError` (`PGRST100`).

    The last name that can be read is the operator, and text behind it is ignored. It can be any name, which `logic`
    reads together with the value.
    """
    *path, operator = _parse_parameter("logic path", text, _path)
    names = tuple(part for part in path if part != "not")
    return names, len(names) < len(path), operator


def logic(operator: str, negated: bool, text: str) -> LogicNode:
    """Parse the value of a logic parameter behind its operator, as PostgREST does. operator: the last part of the key.
    negated: `not.` precedes it.

    The result is a group, or a condition if the value has no parentheses: `or=id.eq.1` compares a column `orid`. Raises
    `ApiError` (`PGRST100`), also for a group with an operator other than `and` and `or`.
    """
    prefix = f"not.{operator}" if negated else operator
    try:
        return _member(Cursor(prefix + text))
    except RefusedError:
        raise syntax_error("logic tree", text, prefix) from None


def _members(cursor: Cursor) -> tuple[LogicNode, ...]:
    """Read the members of a group in parentheses."""
    cursor.enter()
    cursor.skip_spaces()
    cursor.expect("(")
    members = [_member(cursor)]
    while cursor.take(","):
        members.append(_member(cursor))
    cursor.expect(")")
    cursor.skip_spaces()
    cursor.leave()
    return tuple(members)


_GROUP = re.compile(r"(not\.)?(and|or)(?=[ \t]*\()")


def _member(cursor: Cursor) -> LogicNode:
    """Read a condition or a group."""
    cursor.skip_spaces()
    group = _GROUP.match(cursor.text, cursor.position)
    if group is not None:
        cursor.position = group.end()
        return Group(group.group(2), _members(cursor), group.group(1) is not None)
    target = field(cursor)
    cursor.expect(".")
    result = Condition(target, _operation(cursor, _tree_value))
    cursor.skip_spaces()
    return result


def _tree_value(cursor: Cursor) -> str:
    """Read the operand of a condition in a logic tree: an array literal without nested braces, or an element."""
    if cursor.sees("{"):
        end = cursor.position + 1
        while end < len(cursor.text) and cursor.text[end] not in "{}":
            end += 1
        if cursor.text[end : end + 1] == "}":
            start, cursor.position = cursor.position, end + 1
            return cursor.text[start : cursor.position]
    return _element(cursor)


# --- order, columns -------------------------------------------------------------------------------------------------


def order(text: str) -> tuple[OrderTerm, ...]:
    """Parse the value of `order`. Raises `ApiError` (`PGRST100`)."""
    return _parse_parameter("order", text, _order_terms)


def _order_terms(cursor: Cursor) -> tuple[OrderTerm, ...]:
    terms = [_order_term(cursor)]
    while cursor.take(","):
        terms.append(_order_term(cursor))
    return tuple(terms)


_NULLS = {"nullsfirst": "NULLS FIRST", "nullslast": "NULLS LAST"}


def _order_term(cursor: Cursor) -> OrderTerm:
    """Read a column, or a column of an embed, with direction and place of nulls."""
    cursor.skip_spaces()
    first = name(cursor)
    relation: str | None = None
    if cursor.take("("):
        relation = first
        target = field(cursor)
        cursor.expect(")")
    else:
        target = Field(first, json_path(cursor))
        cursor.skip_spaces()
    direction = next((word for word in ("asc", "desc") if cursor.take(f".{word}")), None)
    nulls = next((words for word, words in _NULLS.items() if cursor.take(f".{word}")), None)
    if not cursor.at_end and not cursor.sees(","):
        raise RefusedError
    return OrderTerm(target, relation, direction.upper() if direction else None, nulls)


def names(what: str, text: str) -> tuple[str, ...]:
    """Parse the value of `columns` or `on_conflict`; repeated names count once. what: name of the parameter in
    messages, a key of `syntax_errors.PARSERS`. Raises `ApiError` (`PGRST100`)."""
    return _parse_parameter(what, text, _names)


def _names(cursor: Cursor) -> tuple[str, ...]:
    result = [name(cursor)]
    while _comma(cursor):
        result.append(name(cursor))
    return tuple(dict.fromkeys(result))
