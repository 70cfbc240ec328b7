"""The grammar of PostgREST's query strings: decoded text → tree.

Source: PostgREST's documentation, URL Grammar.

A parser is a `Cursor` that moves forward; there is no back-tracking further than one token. What follows a complete
value is mostly ignored, as PostgREST does.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from rowcall.core.postgrest import errors
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

_NAME_END = "field name (* or [a..z0..9_$])"
_RUN = re.compile(r"[\w $]+(?:-(?!>)[\w $]+)*")
_WORD = re.compile(r"[\w $]+")
_KEY = re.compile(r"[^()\-:.,>]+(?:-(?!>)[^()\-:.,>]+)*")
_INDEX = re.compile(r"-?[0-9]+(?=->|::|[.,)]|$)")
_OPERATOR = re.compile(r"[a-z]+")
_SPACES = re.compile(r" *")


class Cursor:
    """A position in the text of one parameter. Parsers read at the position and move it forward. They raise `ApiError`
    (`PGRST100`) for invalid text.

    what, shown: name and text of the parameter in error messages.
    """

    __slots__ = ("depth", "position", "shown", "text", "what")

    def __init__(self, what: str, text: str, shown: str | None = None) -> None:
        self.what = what
        self.text = text
        self.shown = text if shown is None else shown
        self.position = 0
        self.depth = 0

    def refusal(self, expecting: str, position: int | None = None) -> errors.ApiError:
        """Return the syntax error of the character at `position`; None: at the position of the cursor. expecting:
        what is valid there."""
        place = self.position if position is None else position
        actual = f'"{_shown(self.text[place])}"' if place < len(self.text) else "end of input"
        return errors.syntax_error(self.what, self.shown, place, actual, expecting)

    def surplus(self, expecting: str) -> errors.ApiError:
        """Return the syntax error of a character behind the end of the parameter."""
        return errors.syntax_error(self.what, self.shown, self.position, f"'{self.text[self.position]}'", expecting)

    def mismatch(self, token: str, expecting: str, position: int) -> errors.ApiError:
        """Return the syntax error of a word that begins at a position.

        The unexpected character is the first one that differs from `token`, the first of the valid words.
        """
        word = self.text[position:]
        wrong = next((character for character, right in zip(word, token, strict=False) if character != right), None)
        actual = "end of input" if wrong is None else f'"{_shown(wrong)}"'
        return errors.syntax_error(self.what, self.shown, position, actual, expecting)

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

    def expect(self, token: str, expecting: str | None = None) -> None:
        """Move behind the token. Raises the syntax error if it is not next. expecting: what the error names instead
        of the token."""
        if not self.take(token):
            raise self.refusal(expecting or f'"{token}"')

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
        """Begin one more level of nesting. Raises the syntax error if there are too many."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.refusal(f"at most {MAX_DEPTH} levels")

    def leave(self) -> None:
        self.depth -= 1


def _shown(character: str) -> str:
    return f"\\{character}" if character in '"\\' else character


def quoted(cursor: Cursor) -> str | None:
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


def name(cursor: Cursor, expecting: str = _NAME_END) -> str:
    """Read a quoted or plain name. expecting: what is valid there, for the syntax error."""
    result = quoted(cursor)
    if result is not None:
        return result
    if cursor.sees('"'):
        raise cursor.refusal("a closing quote", len(cursor.text))
    plain = cursor.match(_RUN)
    if plain is None or not plain.strip(" "):
        raise cursor.refusal(expecting)
    return plain.strip(" ")


def json_path(cursor: Cursor) -> tuple[JsonStep, ...]:
    """Read the arrows that follow a name."""
    steps: list[JsonStep] = []
    while cursor.sees("->"):
        text = cursor.take("->>")
        if not text:
            cursor.take("->")
        index = cursor.match(_INDEX)
        if index is not None:
            steps.append(JsonStep(index, index=True, text=text))
            continue
        key = quoted(cursor)
        if key is None:
            key = cursor.match(_KEY)
        if key is None:
            raise cursor.refusal('"-", digit or any non reserved character different from: .,>()')
        steps.append(JsonStep(key, index=False, text=text))
    return tuple(steps)


def field(cursor: Cursor) -> Field:
    column = name(cursor)
    return Field(column, json_path(cursor))


# --- select ---------------------------------------------------------------------------------------------------------


def select(text: str) -> tuple[SelectItem, ...]:
    """Parse the value of `select`. An empty text means all columns."""
    if not text.strip(" "):
        return (SelectColumn(Field("*")),)
    cursor = Cursor("select parameter", text)
    items = _items(cursor)
    if len(items) == 1 and not cursor.at_end and not cursor.sees(")") and not isinstance(items[0], SelectEmbed):
        raise cursor.refusal(
            '"...", field name (* or [a..z0..9_$]), "*" or "count()"'
            if cursor.sees(",")
            else '",", ")" or end of input'
        )
    return items


def _items(cursor: Cursor) -> tuple[SelectItem, ...]:
    cursor.skip_spaces()
    if cursor.sees(")") or cursor.at_end:
        return ()
    items = [_item(cursor)]
    cursor.skip_spaces()
    while cursor.take(","):
        cursor.skip_spaces()
        items.append(_item(cursor))
        cursor.skip_spaces()
    return tuple(items)


def _item(cursor: Cursor) -> SelectItem:
    if cursor.take("..."):
        return _embed(cursor, name(cursor), None, spread=True)
    if cursor.take("*"):
        if cursor.sees("!") or cursor.sees("::") or cursor.sees("("):
            raise cursor.refusal('",", ")" or end of input')
        return SelectColumn(Field("*"))
    start = cursor.position
    alias: str | None = None
    first = name(cursor)
    if cursor.sees(":") and not cursor.sees("::"):
        cursor.take(":")
        alias, start = first, cursor.position
        if cursor.sees("..."):
            raise cursor.refusal(_NAME_END)
        first = name(cursor)
    if first == "count" and cursor.text[start:].startswith("count()"):
        cursor.take("()")
        return SelectColumn(Field(""), alias, None, "count", _cast(cursor))
    if cursor.sees("(") or cursor.sees("!"):
        return _embed(cursor, first, alias, spread=False)
    column = Field(first, json_path(cursor))
    if cursor.sees("(") or cursor.sees("!"):
        raise cursor.refusal('"::", ".", ",", ")" or end of input')
    cast = _cast(cursor)
    if not cursor.take("."):
        return SelectColumn(column, alias, cast)
    for aggregate in AGGREGATES:
        if cursor.take(aggregate + "()"):
            return SelectColumn(column, alias, cast, aggregate, _cast(cursor))
    raise cursor.refusal('"sum()", "avg()", "count()", "max()" or "min()"')


def _cast(cursor: Cursor) -> str | None:
    if not cursor.take("::"):
        return None
    cast = cursor.match(_WORD)
    if cast is None or not cast.strip(" "):
        raise cursor.refusal('letter, digit, "_", " " or "$"')
    return cast.strip(" ")


def _embed(cursor: Cursor, target: str, alias: str | None, *, spread: bool) -> SelectEmbed:
    hint: str | None = None
    inner: bool | None = None
    for _ in range(2):
        if not cursor.take("!"):
            break
        start = cursor.position
        modifier = name(cursor)
        plain = cursor.text[start] != '"'
        if plain and modifier in ("inner", "left") and inner is None:
            inner = modifier == "inner"
        elif hint is None:
            hint = modifier
        else:
            raise cursor.refusal('"("', start)
    cursor.expect("(")
    cursor.enter()
    items = _items(cursor)
    cursor.expect(")", '",", ")" or field name (* or [a..z0..9_$])')
    cursor.leave()
    return SelectEmbed(target, items, alias, hint, bool(inner), spread)


# --- filters --------------------------------------------------------------------------------------------------------


def key_path(text: str, what: str = "tree path") -> tuple[tuple[str, ...], Field]:
    """Parse the key of a filter: names of embeds, then a field. what: name of the key in errors."""
    cursor = Cursor(what, text)
    names = [name(cursor)]
    while cursor.take("."):
        names.append(name(cursor))
    return tuple(names[:-1]), Field(names[-1], json_path(cursor))


def operation(text: str) -> Operation:
    """Parse the value of a filter."""
    cursor = Cursor("filter", text)
    return _operation(cursor, _rest)


def _rest(cursor: Cursor) -> str:
    start, cursor.position = cursor.position, len(cursor.text)
    return cursor.text[start:]


def _operation(cursor: Cursor, value: Callable[[Cursor], str]) -> Operation:
    """Read `[not.]operator.value`. value: reads an operand."""
    negated = cursor.take("not.")
    start = cursor.position
    operator = cursor.match(_OPERATOR) or ""
    expected = "operator (eq, gt, ...)" if negated else '"not" or operator (eq, gt, ...)'
    if operator in SIMPLE or operator == "isdistinct":
        cursor.expect(".", '"."')
        return Operation(operator, value(cursor), negated)
    if operator in QUANTIFIED:
        quantifier = None
        if cursor.take("("):
            quantifier = "any" if cursor.take("any") else "all" if cursor.take("all") else None
            if quantifier is None:
                raise cursor.refusal('"any" or "all"')
            cursor.expect(")")
        cursor.expect(".", '"(" or "."' if quantifier is None else '"."')
        return Operation(operator, value(cursor), negated, quantifier)
    if operator in FULL_TEXT:
        configuration = None
        if cursor.take("("):
            configuration = cursor.match(_WORD)
            if configuration is None:
                raise cursor.refusal('letter, digit, "_", " " or "$"')
            cursor.expect(")")
        cursor.expect(".", '"."')
        return Operation(operator, value(cursor), negated, None, configuration)
    if operator == "in":
        cursor.expect(".", '"."')
        return Operation("in", _list(cursor), negated)
    if operator == "is":
        cursor.expect(".", '"."')
        return Operation("is", _is_value(cursor), negated)
    raise cursor.refusal(expected, start)


def _is_value(cursor: Cursor) -> str:
    rest = cursor.text[cursor.position :].lower()
    for candidate in ("not_null", "null", "true", "false", "unknown"):
        if rest.startswith(candidate):
            cursor.position += len(candidate)
            return candidate
    raise cursor.refusal("isVal: (null, not_null, true, false, unknown)")


def _list(cursor: Cursor) -> tuple[str, ...]:
    """Read the elements of `in`. `()` and `( )` have no elements."""
    cursor.expect("(")
    cursor.skip_spaces()
    elements = [_element(cursor)]
    while cursor.take(","):
        elements.append(_element(cursor))
    cursor.expect(")", '",", ")" or any character')
    return () if elements == [""] else tuple(elements)


def _element(cursor: Cursor) -> str:
    """Read an element of a list, or a value of a logic tree. Quotes are only quotes if `,` or `)` follows the closing
    one."""
    start = cursor.position
    result = quoted(cursor)
    if result is not None and cursor.text[cursor.position : cursor.position + 1] in (",", ")"):
        return result
    cursor.position = start
    end = start
    while end < len(cursor.text) and cursor.text[end] not in ",)":
        end += 1
    cursor.position = end
    return cursor.text[start:end]


# --- logic trees ----------------------------------------------------------------------------------------------------


def logic_key(text: str) -> tuple[tuple[str, ...], bool, str] | None:
    """Return path, negation and operator in the key of a logic tree; None: the key is not that of a logic tree.

    `not.or`, `vessel.and` and `vessel.not.and` are keys of logic trees. If the last part is in quotes, it is a column.
    """
    if not (text in ("and", "or") or text.endswith((".and", ".or"))):
        return None
    cursor = Cursor("logic path", text)
    names = [name(cursor)]
    while cursor.take("."):
        names.append(name(cursor))
    operator = names.pop()
    negated = bool(names) and names[-1] == "not"
    if negated:
        names.pop()
    if names and names[0] == "not" and not negated:
        negated = True
        names.pop(0)
    return tuple(names), negated, operator


def logic(operator: str, negated: bool, text: str) -> Group:
    """Parse the value of a logic parameter: a group in parentheses. operator: `and` or `or`. negated: `not.`
    precedes it."""
    prefix = f"not.{operator}" if negated else operator
    cursor = Cursor("logic tree", prefix + text, text)
    cursor.position = len(prefix)
    return Group(operator, _members(cursor), negated)


def _members(cursor: Cursor) -> tuple[LogicNode, ...]:
    cursor.enter()
    cursor.skip_spaces()
    cursor.expect("(")
    members = [_member(cursor)]
    while cursor.take(","):
        members.append(_member(cursor))
    cursor.expect(")", '",", ")" or any character')
    cursor.skip_spaces()
    cursor.leave()
    return tuple(members)


_OPERATION = re.compile(
    rf"(?:not|in|is|isdistinct|{'|'.join((*QUANTIFIED, *SIMPLE))}|(?:{'|'.join(FULL_TEXT)}))(?:\.|\()"
)
_GROUP = re.compile(r"(not\.)?(and|or) *(?=\()")


def _member(cursor: Cursor) -> LogicNode:
    cursor.skip_spaces()
    group = _GROUP.match(cursor.text, cursor.position)
    if group is not None:
        cursor.position = group.end()
        return Group(group.group(2), _members(cursor), group.group(1) is not None)
    target = Field(name(cursor, "field name (* or [a..z0..9_$]), negation operator (not) or logic operator (and, or)"))
    target = Field(target.name, json_path(cursor))
    cursor.skip_spaces()
    cursor.expect(".")
    if target.name == "not" and not _OPERATION.match(cursor.text, cursor.position):
        raise cursor.refusal("logic operator (and, or)")
    result = Condition(target, _operation(cursor, _tree_value))
    cursor.skip_spaces()
    return result


def _tree_value(cursor: Cursor) -> str:
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
    """Parse the value of `order`."""
    cursor = Cursor("order", text)
    terms = [_order_term(cursor)]
    while cursor.take(","):
        terms.append(_order_term(cursor))
    return tuple(terms)


_NULLS = {"nullsfirst": "NULLS FIRST", "nullslast": "NULLS LAST"}


def _order_suffix(cursor: Cursor, direction: str | None, nulls: str | None) -> errors.ApiError:
    """Return the syntax error of what follows a term of `order`. direction, nulls: what was read of the term; None:
    nothing."""
    if nulls is not None:
        return cursor.surplus('"," or end of input')
    if not cursor.sees("."):
        return cursor.surplus('delimiter (.), "," or end of input')
    if direction is not None:
        return cursor.mismatch("nullsfirst", '"nullsfirst" or "nullslast"', cursor.position + 1)
    return cursor.mismatch("asc", '"asc", "desc", "nullsfirst" or "nullslast"', cursor.position + 1)


def _order_term(cursor: Cursor) -> OrderTerm:
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
        raise _order_suffix(cursor, direction, nulls)
    return OrderTerm(target, relation, direction.upper() if direction else None, nulls)


def names(what: str, text: str) -> tuple[str, ...]:
    """Parse the value of `columns` or `on_conflict`."""
    cursor = Cursor(what, text)
    cursor.skip_spaces()
    result = [name(cursor)]
    cursor.skip_spaces()
    while cursor.take(","):
        cursor.skip_spaces()
        result.append(name(cursor))
        cursor.skip_spaces()
    return tuple(dict.fromkeys(result))
