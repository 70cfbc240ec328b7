"""Generates lines that match the syntax of an annotation as printed by `--annotations`."""

from __future__ import annotations

import re

from hypothesis import strategies as st

VALUES = {
    "<name>": ("Fast", "night_shift"),
    "<true or false>": ("true", "FALSE", "{_id}"),
    "<number>": ("1", "8192"),
    "<rows>": ("1", "25"),
    "<cron>": ("'*/5 * * * *'", "0 3 * * 1", "@daily"),
    "<abort, skip or collect>": ("skip", "collect 50", "{_mode}"),
    "<names>": ("sku, count", "name"),
    "<purpose>": ("password_reset", "e-mail.change"),
    "<template>": ("welcome", "mails/welcome"),
    "<topic>": ("order.paid", "Invoice-sent"),
    "<zone>": ("Europe/Berlin", "UTC"),
    "<tenant>": ("org_id", "X-Tenant"),
    "<setting>": ("app.tenant", "request.tenant"),
    "<status>": ("200", "201", "204", "299"),
    "<interval>": ("5s", "1.5h", "00:00:01", "250"),
    "<directive>": ("no-cache", "max-age=60"),
    "<header>": ("Accept-Language", "*"),
    "<path>": ("/a/{_id}", "orders", "/a/{_id?}"),
    "<tag>": ("function", "stable"),
    "<role>": ("admin", "42"),
    "<parameter>": ("_id", "_text"),
    "<column>": ("cardNo", "pin"),
    "<URL>": ("https://other.example/x?y=z", "/other"),
    "<handler>": ("csv", "large_object"),
    "<SQL>": ("select $1", "call f($1, $2)"),
    "<text>": (",", r"\t", "two words"),
    "<message>": ("{0} is missing", "who, and when"),
    "<channel>": ("orders", "Orders"),
    "<member>": ("depot", "shelfNo"),
    "<claim>": ("depot_id", "user_id"),
    "<key>": ("colour", "x-y"),
    "<Name>": ("X-One", "Cache-Control"),
    "<value>": ("blue", "max-age=60"),
    "<pattern>": ("image/*", "text/???"),
    "<characters>": (";", r"\t"),
    "<true, false or image types>": ("true", "png, jpeg"),
    "<folder>": ("./in", "/srv/{_text}"),
    "<format>": ("yyyy-MM-dd", "HH:mm"),
    "<encoding>": ("latin-1", "UTF-16"),
    "<segment>": ("progress", "a/b"),
    "<user or role>": ("admin", "42"),
    "<policy>": ("slow", "per user"),
    "<profile>": ("fast",),
    "<user>": ("joe",),
    "<password>": ("s3cret",),
    "<word>": ("Depot",),
    "<description>": ("Lists all notes", "one: two"),
    "<rule>": ("required", "email"),
    "<connection>": ("replica",),
    "<column name>": ("id",),
    "<type>": ("integer", "text"),
    "<new name>": ("_other",),
    "<default>": ("1", "null"),
    "<old name>": ("_id",),
    "<text, with {parameter}s>": ("Orders of {_text}", "plain"),
    "{parameter}": ("{_text}",),
}
"""A strategy for each `<…>`. An annotation with a new one needs a row here."""

_MORE = ", ..."
_TOKEN = re.compile(r"\[|\]| \| |<[^>]*>(?:\|(?:<[^>]*>|[^ \[\]|]+))*|, \.\.\.|[^ \[\]]+| +")


def lines(syntax: str) -> st.SearchStrategy[str]:
    """Generate any line that the syntax allows."""
    strategy, rest = _alternatives(_TOKEN.findall(syntax))
    assert not rest, f"{syntax}: {rest} is left over"
    return strategy.map(lambda text: " ".join(text.split(" ")).strip())


def _alternatives(tokens: list[str]) -> tuple[st.SearchStrategy[str], list[str]]:
    choices = []
    while True:
        choice, tokens = _sequence(tokens)
        choices.append(choice)
        if not tokens or tokens[0] != " | ":
            return st.one_of(choices), tokens
        tokens = tokens[1:]


def _sequence(tokens: list[str]) -> tuple[st.SearchStrategy[str], list[str]]:
    parts: list[st.SearchStrategy[str]] = []
    while tokens and tokens[0] not in ("]", " | "):
        token, *tokens = tokens
        if token == "[":
            inner, tokens = _alternatives(tokens)
            tokens = tokens[1:]
            parts.append(st.one_of(st.just(""), inner))
        elif token == _MORE:
            item = parts[-1]
            parts.append(st.lists(item, max_size=2).map(lambda more: "".join(f", {item_text}" for item_text in more)))
        else:
            parts.append(_word(token))
    return st.tuples(*parts).map("".join), tokens


def _word(token: str) -> st.SearchStrategy[str]:
    if token in VALUES:
        return st.sampled_from(VALUES[token])
    if "|" in token:
        return st.one_of([_word(word) for word in token.split("|")])
    tail = token[len(token.rstrip(":=")) :]
    if tail and token[: -len(tail)] in VALUES:
        return st.sampled_from(VALUES[token[: -len(tail)]]).map(lambda text: text + tail)
    assert not token.startswith("<"), f"tests.harness.syntax has no value for {token}"
    return st.just(token)
