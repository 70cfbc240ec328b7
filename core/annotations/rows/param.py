"""The annotation `param`: name of a parameter in requests, its type, and its default."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from rowcall.core.annotations.declaration import Annotation, BadValueError, Draft, Line
from rowcall.core.annotations.rows.identity import add_hash
from rowcall.core.catalogue.type_names import is_built_in
from rowcall.core.endpoint.capabilities import Caching, ConsumedToken, Document, Encryption, Job, Upload
from rowcall.core.endpoint.parameter_changes import ParameterChange, is_parameter_name

_DEFAULT = re.compile(r"(?:^|[ ,])(?:default|=)(?=[ ,]|$)", re.IGNORECASE)
_MISSPELT = frozenset({"defualt", "defalt", "deafult", "defult", "dafault", "defaul", "defaults", "defautl", "deault"})
_TYPES = frozenset(
    [
        "int",
        "integer",
        "int2",
        "int4",
        "int8",
        "bigint",
        "smallint",
        "numeric",
        "decimal",
        "bool",
        "boolean",
        "varchar",
        "uuid",
        "jsonb",
        "timestamptz",
        "bytea",
    ]
)
"""Names of types that are unlikely as names of parameters. `date` or `name` may be a new name."""
_QUOTED = re.compile(r"'((?:[^']|'')*)'")
_WORD = re.compile(r"[^\s]+")


def _param(draft: Draft, line: Line) -> None:
    """Apply a line `param …`, which gives a parameter a default, a name or a type: the forms of comments-22, tested in
    this order. Raises `BadValueError` for an unknown parameter of uploads or of a merge patch, and for a name that
    cannot be one."""
    parameter, rest = _split(line.rest)
    words = rest.replace(",", " ").split()
    lower = [word.lower() for word in words]
    if lower[:3] == ["is", "hash", "of"] and len(words) > 3:
        add_hash(draft, parameter, words[3].removeprefix(":"))
    elif lower == ["is", "merge", "patch"]:
        _merge_patch(draft, parameter)
    elif lower[:3] == ["is", "upload", "metadata"]:
        _upload_metadata(draft, line, parameter)
    elif lower[1:] == ["is", "upload", "metadata"]:
        _change(draft, line, parameter, words[0])
        _upload_metadata(draft, line, words[0])
    else:
        _change(draft, line, parameter, rest)


def _split(rest: str) -> tuple[str, str]:
    """Return the parameter without a leading colon, and the rest of the line. `param x=1` is read as `param x = 1`.
    rest: everything behind the keyword."""
    parameter, _, behind = (
        rest.replace(",", " ", 1).partition(" ") if "," in rest.split(" ")[0] else rest.partition(" ")
    )
    if "=" in parameter.strip("="):
        parameter, _, value = parameter.partition("=")
        behind = f"= {value} {behind}"
    return parameter.removeprefix(":"), behind.strip()


def _merge_patch(draft: Draft, parameter: str) -> None:
    """Let a parameter receive the members of a body that are no parameters. Raises `BadValueError` if it does not
    exist."""
    name = draft.parameter_named(parameter)
    if name is None:
        raise BadValueError(f"the routine has no parameter {parameter}")
    draft.set(patch_parameter=name)


def _upload_metadata(draft: Draft, line: Line, parameter: str) -> None:
    """Accept uploads, and let a parameter receive their metadata. Raises `BadValueError` if it does not exist."""
    name = draft.parameter_named(parameter)
    if name is None:
        raise BadValueError(f"the routine has no parameter {parameter}")
    draft.change_fields("upload", Upload(), enabled=True, metadata=name)
    draft.used.setdefault("upload", line.shown)


def _change(draft: Draft, line: Line, parameter: str, rest: str) -> None:
    """Add the change of a parameter to the draft: name, type, default; a new name also applies to its options and to
    the following lines (`_rename`). rest: behind the name of the parameter.

    Warn of a name that is probably a type. Raises `BadValueError` for a name that cannot be one or is a misspelt
    `default`.
    """
    mark = _DEFAULT.search(rest)
    name, type_word = _name_and_type(_head(rest), colon=line.rest.startswith(":"))
    if name is not None and name.lower() in _MISSPELT:
        raise BadValueError(f"'{name}' would be the new name of the parameter; did you mean default?")
    if name is not None and not is_parameter_name(name):
        raise BadValueError(f"'{name}' is not a name: a letter or _, then letters, digits, _ and $, or $1, $2 …")
    if name is not None and type_word is None and name.lower() in _TYPES and not rest.lower().startswith("is "):
        draft.warn(
            line, f"the parameter is called {name} in requests now; `param {parameter} type is {name}` is its type"
        )
    default = None if mark is None else _value(rest[mark.end() :].lstrip(" ,"))
    draft.parameter_changes.append(
        ParameterChange(line.shown, parameter, name, type_word, defaulted=mark is not None, default=default)
    )
    if name is not None:
        _rename(draft, parameter, name)


def declared_type(line: Line) -> tuple[str, str | None, str | None]:
    """Return the parameter of a `param` line, its new name, and its type as written; None: the line gives no name or
    type."""
    parameter, rest = _split(line.rest)
    lower = rest.replace(",", " ").lower().split()
    if lower[:3] in (["is", "hash", "of"], ["is", "upload", "metadata"], ["is", "merge", "patch"]):
        return parameter, None, None
    name, type_name = _name_and_type(_head(rest), colon=line.rest.startswith(":"))
    # Behind a name, `is` begins `is upload metadata` or prose.
    is_type = type_name is not None and type_name.split()[0].lower() != "is"
    return parameter, name, type_name if is_type else None


def _head(rest: str) -> list[str]:
    """Return the words before a default. rest: behind the name of the parameter."""
    mark = _DEFAULT.search(rest)
    return (rest if mark is None else rest[: mark.start()]).replace(",", " ").split()


def _name_and_type(words: list[str], *, colon: bool) -> tuple[str | None, str | None]:
    """Return the new name and the type; None: the words give none.

    words: those between the name of the parameter and a default (`_head`). colon: the parameter is written like the
    placeholder of a file, so that `int` in `:id int` is a type and not a new name.
    """
    lower = [word.lower() for word in words]
    if colon and len(words) == 1 and is_built_in(words[0]):
        return None, words[0]
    if lower[:2] == ["type", "is"] and len(words) > 2:
        return None, " ".join(words[2:])
    if lower[:1] == ["is"] and len(words) > 1:
        words = words[1:]
    if not words:
        return None, None
    return words[0], " ".join(words[1:]) or None


def _value(text: str) -> str | None:
    """Return the default that a line ends with: the text in single quotes, which may be empty, or the first word. None
    (NULL) for the word null, and if nothing follows.
    """
    quoted = _QUOTED.match(text)
    if quoted is not None:
        return quoted[1].replace("''", "'")
    word = _WORD.match(text)
    return None if word is None or word[0].lower() == "null" else word[0]


def _rename(draft: Draft, parameter: str, name: str) -> None:
    """Rename the parameter for the following lines, and in the options that earlier lines have set. Without effect if
    no parameter has the name `parameter`."""
    old_name = draft.parameter_named(parameter)
    if old_name is None:
        return

    def rename(word: str) -> str:
        """Return the new name for a word that names the parameter, in any case or as in requests, else the word."""
        return name if word and draft.parameter_named(word) == old_name else word

    draft.expressions = {rename(key): text for key, text in draft.expressions.items()}
    draft.changes |= {
        option: renamed(draft.changes[option], rename)
        for option, renamed in _RENAMED.items()
        if option in draft.changes
    }
    draft.parameters = draft.parameters - {old_name} | {name}


_Rename = Callable[[str], str]
"""Function that returns the new name of a parameter: that of the same parameter, or another one unchanged."""


def _rename_in_option(word: str, rename: _Rename) -> str:
    return rename(word)


def _rename_in_caching(caching: Caching, rename: _Rename) -> Caching:
    names = caching.parameters
    return replace(caching, parameters=None if names is None else tuple(map(rename, names)))


def _rename_in_encryption(encryption: Encryption, rename: _Rename) -> Encryption:
    bindings = tuple((rename(word), binding) for word, binding in encryption.parameter_bindings)
    return replace(encryption, parameters=tuple(map(rename, encryption.parameters)), parameter_bindings=bindings)


def _rename_in_upload(upload: Upload, rename: _Rename) -> Upload:
    return replace(upload, metadata=None if upload.metadata is None else rename(upload.metadata))


def _rename_in_job(job: Job, rename: _Rename) -> Job:
    unique_by = None if job.unique_by is None else tuple(map(rename, job.unique_by))
    return replace(job, unique_by=unique_by, serial_by=tuple(map(rename, job.serial_by)))


def _rename_in_consumed_token(consumed: ConsumedToken, rename: _Rename) -> ConsumedToken:
    return replace(consumed, parameter=rename(consumed.parameter))


def _rename_in_document(document: Document, rename: _Rename) -> Document:
    # Names of examples are in lower case (`openapi example`).
    return replace(document, examples=tuple((rename(word).lower(), text) for word, text in document.examples))


def _rename_in_hashes(hashes: tuple[tuple[str, str], ...], rename: _Rename) -> tuple[tuple[str, str], ...]:
    return tuple((rename(target), rename(source)) for target, source in hashes)


def _rename_in_rules(rules: tuple[tuple[Any, ...], ...], rename: _Rename) -> tuple[tuple[Any, ...], ...]:
    return tuple((rename(word), *rest) for word, *rest in rules)


_RENAMED: Mapping[str, Callable[[Any, _Rename], object]] = {
    "body_parameter": _rename_in_option,
    "caching": _rename_in_caching,
    "consumed_token": _rename_in_consumed_token,
    "document": _rename_in_document,
    "encryption": _rename_in_encryption,
    "hashes": _rename_in_hashes,
    "headers_parameter": _rename_in_option,
    "job": _rename_in_job,
    "password_rules": _rename_in_rules,
    "patch_parameter": _rename_in_option,
    "upload": _rename_in_upload,
    "validation_messages": _rename_in_rules,
    "validations": _rename_in_rules,
}
"""Each field of `Options` that names parameters → the function that renames one in its value."""


ANNOTATIONS = (
    Annotation(
        name="param",
        aliases=("parameter", "param"),
        syntax="param <parameter> [is] <name> [<type>] [default <default>] | param <parameter> default [<default>] | "
        "param <parameter> type is <type> [default <default>] | param <parameter> is hash of <parameter> | "
        "param <parameter> is upload metadata | param <parameter> is merge patch",
        description="Gives a parameter another name in requests, reads it as another type, or gives it a default: one "
        "word, a text in single quotes, or null. Can also fill it with the hash of another parameter, with the "
        "metadata of uploaded files, or with all members of a JSON body that are no other parameters.",
        apply=_param,
        minimum_words=3,
        colon_names=True,
    ),
)
