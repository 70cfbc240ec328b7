"""Annotations about encrypted values: encrypt, decrypt (protection-8 to protection-10)."""

from __future__ import annotations

from collections.abc import Mapping

from rowcall.core.annotations.declaration import Annotation, Draft, Line, NamedLine, true_or_false
from rowcall.core.endpoint.capabilities import Encryption


def _encrypt(draft: Draft, line: Line) -> None:
    """Set the parameters to encrypt: those that the line names, or all text parameters. Unknown names leave the
    endpoint out (`core.building.protective_lines`)."""
    earlier = draft.get("encryption", Encryption()).parameter_bindings
    names, bindings = _names_and_bindings(line.arguments)
    if not names:
        draft.change_fields(
            "encryption", Encryption(), all_parameters=True, parameter_bindings=_merge_bindings(earlier, bindings)
        )
        return
    parameters = [draft.parameter_named(name) for name in names]
    bindings_by_parameter = {
        match: bindings[name] for name, match in zip(names, parameters, strict=True) if match is not None
    }
    draft.change_fields(
        "encryption",
        Encryption(),
        parameters=tuple(bindings_by_parameter),
        parameter_bindings=_merge_bindings(earlier, bindings_by_parameter),
    )
    draft.named.append(NamedLine("encrypt", line, names, tuple(name for name in names if draft.parameter_named(name))))


def _decrypt(draft: Draft, line: Line) -> None:
    """Set the columns to decrypt: those that the line names, or all. Unknown names leave the endpoint out
    (`core.building.protective_lines`)."""
    names, bindings = _names_and_bindings(line.arguments)
    folded = {name.casefold(): binding for name, binding in bindings.items()}
    merged = _merge_bindings(draft.get("encryption", Encryption()).column_bindings, folded)
    if names:
        draft.named.append(NamedLine("decrypt", line, names))
        draft.change_fields("encryption", Encryption(), columns=names, column_bindings=merged)
    else:
        draft.change_fields("encryption", Encryption(), all_columns=True, column_bindings=merged)


def _names_and_bindings(words: tuple[str, ...]) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the names, and the context to which the value of each name is bound ("" if it has none).

    `a as x b` gives the names a and b, with the bindings x and "". `as x` gives no names; its binding has the key "",
    which stands for all names. Without words, the binding of this key is "".
    """
    if len(words) == 2 and words[0].lower() == "as":
        return (), {"": words[1]}
    bindings: dict[str, str] = {}
    rest = iter(words)
    last = ""
    for word in rest:
        if last and word.lower() == "as" and (binding := next(rest, None)) is not None:
            bindings[last] = binding
            last = ""
        else:
            last = word
            bindings.setdefault(word, "")
    return tuple(bindings), bindings or {"": ""}


def _merge_bindings(earlier: tuple[tuple[str, str], ...], bindings: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the bindings with those of a later line, which take precedence. A binding "" removes the earlier one of
    its name."""
    return tuple((name, binding) for name, binding in {**dict(earlier), **bindings}.items() if binding)


def _assign_encrypt(draft: Draft, value: str) -> None:
    draft.change_fields("encryption", Encryption(), all_parameters=true_or_false(value))


def _assign_decrypt(draft: Draft, value: str) -> None:
    draft.change_fields("encryption", Encryption(), all_columns=true_or_false(value))


ANNOTATIONS = (
    Annotation(
        name="encrypt",
        aliases=("encrypt", "encrypted", "protect", "protected"),
        syntax="encrypt [<parameter>, ...] | encrypt <parameter> as <name> | encrypt as <name>",
        description="Encrypts text values before they reach the database: those of the named parameters, or all. With "
        "`as`, values are bound to that name; without it, those of table endpoints are bound to their column.",
        apply=_encrypt,
        assign=_assign_encrypt,
    ),
    Annotation(
        name="decrypt",
        aliases=("decrypt", "decrypted", "unprotect", "unprotected"),
        syntax="decrypt [<column>, ...] | decrypt <column> as <name> | decrypt as <name>",
        description="Decrypts values of the result: those of the named columns, or all. Values that cannot be "
        "decrypted are unchanged. With `as`, values that are bound to another name are not decrypted.",
        apply=_decrypt,
        assign=_assign_decrypt,
    ),
)
