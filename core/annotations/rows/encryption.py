"""Annotations about encrypted values: encrypt, decrypt (spec 4.3 rule 1, reference 04, 14)."""

from __future__ import annotations

from rowcall.core.annotations.declaration import Annotation, Draft, Line, true_or_false
from rowcall.core.endpoint.capabilities import Encryption


def _encrypt(draft: Draft, line: Line) -> None:
    """Names that are none are dropped; when none is left nothing is encrypted (reference 04, 14)."""
    if not line.arguments:
        draft.within("encryption", Encryption(), all_parameters=True)
        return
    found = [draft.parameter_named(name) for name in line.arguments]
    draft.within("encryption", Encryption(), parameters=tuple(name for name in found if name is not None))
    for name, match in zip(line.arguments, found, strict=True):
        if match is None:
            draft.warn(line, f"the routine has no parameter {name}; nothing is encrypted for it")


def _decrypt(draft: Draft, line: Line) -> None:
    if line.arguments:
        draft.within("encryption", Encryption(), columns=line.arguments)
    else:
        draft.within("encryption", Encryption(), all_columns=True)


def _assign_encrypt(draft: Draft, value: str) -> None:
    draft.within("encryption", Encryption(), all_parameters=true_or_false(value))


def _assign_decrypt(draft: Draft, value: str) -> None:
    draft.within("encryption", Encryption(), all_columns=true_or_false(value))


ANNOTATIONS = (
    Annotation(
        name="encrypt",
        aliases=("encrypt", "encrypted", "protect", "protected"),
        syntax="encrypt [<parameter>, ...]",
        description="Encrypts text values before they reach the database: those of the named parameters, or all.",
        apply=_encrypt,
        assign=_assign_encrypt,
    ),
    Annotation(
        name="decrypt",
        aliases=("decrypt", "decrypted", "unprotect", "unprotected"),
        syntax="decrypt [<column>, ...]",
        description="Decrypts values on their way out: those of the named columns, or all. What cannot be decrypted "
        "stays as it is.",
        apply=_decrypt,
        assign=_assign_decrypt,
    ),
)
