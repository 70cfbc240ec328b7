"""The wording of syntax errors: parameters that `grammar` refuses are parsed again as PostgREST parses them.

Source: PostgREST's documentation, URL Grammar; Errors.
"""

from __future__ import annotations

from collections.abc import Mapping

from rowcall.core.postgrest import errors
from rowcall.core.postgrest.request.combinators import (
    Outcome,
    Parser,
    attempt,
    character,
    character_of,
    characters,
    either,
    empty,
    end,
    format_error,
    in_any_case,
    label,
    look_ahead,
    many,
    not_ahead,
    optional,
    separated_by,
    sequence,
    string,
)

SIMPLE = ("neq", "cs", "cd", "ov", "sl", "sr", "nxr", "nxl", "adj")
QUANTIFIED = ("eq", "gte", "gt", "lte", "lt", "like", "ilike", "match", "imatch")
FULL_TEXT = ("fts", "plfts", "phfts", "wfts")

_blanks = characters("[ \t]*", required=False)
_digits = characters("[0-9]+", "digit")
_identifier = characters(r"[\w $]+", "letter", "digit")
_type = characters(r" *[^\W\d][\w$]*(?: +[^\W\d][\w$]*)* *", "letter", "digit")
_anything = characters(".*", required=False)
_dash = attempt(sequence(character("-"), not_ahead(">")))
_delimiter = label(character("."), "delimiter (.)")


def _in_quotes(plain: str, escaped: str) -> Parser:
    """Return the parser of a quoted text. plain, escaped: character classes, without and behind a backslash."""
    return sequence(
        character('"'),
        many(either(character_of(plain), sequence(character("\\"), character_of(escaped)))),
        character('"'),
    )


_quoted = _in_quotes(r'[^\\"]', ".")
_quoted_name = _in_quotes(r'[^\\"\0]', r"[^\0]")
_element = either(attempt(sequence(_quoted, not_ahead("[^,)]"))), characters("[^,)]*", required=False))


def _lexeme(parser: Parser) -> Parser:
    """Return the parser with blanks around it."""
    return sequence(_blanks, parser, _blanks)


def _in_parentheses(parser: Parser) -> Parser:
    return sequence(character("("), parser, character(")"))


_name = label(either(_quoted_name, separated_by(_identifier, _dash)), "field name (* or [a..z0..9_$])")
_key = label(
    either(_quoted, separated_by(characters(r"[^(\-:.,>)]+"), _dash)),
    "any non reserved character different from: .,>()",
)
_index_end = either(*(attempt(look_ahead(string(token))) for token in ("->", "::", ".", ",")), attempt(end))
_index = sequence(optional(character("-")), _digits, _index_end)
_json_path = many(
    sequence(either(attempt(string("->>")), attempt(string("->"))), either(attempt(_index), attempt(_key)))
)
_field = _lexeme(sequence(_name, _json_path))
_tree_path = sequence(separated_by(_name, _delimiter), optional(_json_path))
_names = separated_by(_name, _lexeme(character(",")))

# --- select ---------------------------------------------------------------------------------------------------------

_alias = optional(attempt(sequence(_name, character(":"), not_ahead(":"))))
_hint = optional(
    sequence(character("!"), either(attempt(string("left")), attempt(string("inner")), attempt(_name))),
)
_embed_end = sequence(_hint, _hint, attempt(look_ahead(string("("))))
_cast = optional(sequence(string("::"), _type))
_item_end = either(attempt(look_ahead(string(")"))), attempt(look_ahead(string(","))), attempt(end))
_aggregate = either(string("sum"), string("avg"), string("count"), attempt(string("max")), attempt(string("min")))


def _target(text: str, place: int) -> Outcome:
    """Read the name of an embed, which must not be `count`, the name of an aggregate."""
    result = _name(text, place)
    if result.end is not None and text[place : result.end].strip(" ") in ("count", '"count"'):
        return result._replace(end=None)
    return result


_embed = _lexeme(sequence(_alias, _target, _embed_end))
_spread = _lexeme(sequence(string("..."), _name, _embed_end))
_column = _lexeme(
    either(
        attempt(sequence(string("*"), _item_end)),
        attempt(sequence(_alias, string("count()"), _cast, _item_end)),
        sequence(
            _alias,
            _field,
            _cast,
            optional(attempt(sequence(character("."), _aggregate, string("()")))),
            _cast,
            _item_end,
        ),
    )
)


def _items(text: str, place: int) -> Outcome:
    """Read the items of `select`."""
    item = either(
        sequence(attempt(_spread), _in_parentheses(_items)), sequence(attempt(_embed), _in_parentheses(_items)), _column
    )
    return optional(separated_by(item, _lexeme(character(","))))(text, place)


# --- filters and logic trees ----------------------------------------------------------------------------------------


def _words(words: tuple[str, ...]) -> Parser:
    """Return the parser of one of the words."""
    return either(*(attempt(string(word)) for word in words))


def _operation(value: Parser) -> Parser:
    """Return the parser of `[not.]operator.value`. value: parser of the operand."""
    within = sequence(attempt(sequence(string("in"), _delimiter)), _lexeme(character("(")))
    elements = sequence(separated_by(_element, character(",")), _lexeme(character(")")))
    words = (in_any_case(word) for word in ("null", "not_null", "true", "false", "unknown"))
    state = label(either(*map(attempt, words)), "isVal: (null, not_null, true, false, unknown)")
    quantifier = either(attempt(string("any")), string("all"))
    operation = either(
        sequence(within, elements),
        sequence(attempt(sequence(string("is"), _delimiter)), state),
        sequence(attempt(sequence(string("isdistinct"), _delimiter)), value),
        attempt(
            sequence(_words(FULL_TEXT), optional(attempt(_in_parentheses(_identifier))), _delimiter, value),
        ),
        attempt(sequence(_words(SIMPLE), _delimiter, value)),
        attempt(
            sequence(_words(QUANTIFIED), optional(attempt(_in_parentheses(quantifier))), _delimiter, value),
        ),
    )
    negation = either(attempt(sequence(string("not"), _delimiter)), empty)
    return sequence(negation, label(operation, "operator (eq, gt, ...)"))


_filter = _operation(_anything)
_array = sequence(string("{"), characters("[^{}]*", required=False), string("}"))
_tree_value = either(
    attempt(sequence(_quoted, not_ahead("[^,)]"))), attempt(_array), characters("[^,)]*", required=False)
)
_condition = sequence(_field, _delimiter, _operation(_tree_value))
_negation = label(either(attempt(sequence(string("not"), _delimiter)), empty), "negation operator (not)")
_operator = label(either(attempt(string("and")), string("or")), "logic operator (and, or)")


def _tree(text: str, place: int) -> Outcome:
    """Read a condition or a group of a logic tree."""
    members = separated_by(_tree, _lexeme(character(",")))
    group = sequence(_negation, _operator, _lexeme(character("(")), members, _lexeme(character(")")))
    return either(attempt(_condition), group)(text, place)


# --- order ----------------------------------------------------------------------------------------------------------

_term_end = either(attempt(look_ahead(character(","))), attempt(end))
_direction = either(*(attempt(sequence(_delimiter, string(word))) for word in ("asc", "desc")))
_nulls = either(*(attempt(sequence(_delimiter, string(word))) for word in ("nullsfirst", "nullslast")))
_rest = sequence(optional(_direction), either(sequence(optional(_nulls), _term_end), _term_end))
_terms = separated_by(
    _lexeme(either(attempt(sequence(_name, _in_parentheses(_field), _rest)), sequence(_field, _rest))), character(",")
)

PARSERS: Mapping[str, Parser] = {
    "select parameter": _items,
    "columns parameter": _names,
    "on_conflict parameter": _names,
    "filter": _filter,
    "tree path": _tree_path,
    "logic path": separated_by(_name, _delimiter),
    "logic tree": _tree,
    "order": _terms,
}
"""Parsers by the name of a parameter in messages."""


def syntax_error(what: str, text: str, prefix: str = "") -> errors.ApiError:
    """Return the error of a parameter that the grammar has refused. what: a key of `PARSERS`. text: of the parameter.
    prefix: what the grammar reads before the text, and messages do not show."""
    whole = prefix + text
    try:
        error = PARSERS[what](whole, 0).error
    except RecursionError:
        return errors.syntax_error(what, text, "(line 1, column 1)", "too many levels")
    return errors.syntax_error(what, text, _position(whole, error.place), format_error(error))


def _position(text: str, place: int) -> str:
    """Return line and column of a place, both from 1, in parentheses. A tab takes up to eight columns."""
    line, column = 1, 1
    for item in text[:place]:
        if item == "\n":
            line, column = line + 1, 1
        else:
            column += 8 - (column - 1) % 8 if item == "\t" else 1
    return f"(line {line}, column {column})"
