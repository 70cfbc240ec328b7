"""Annotations for rules on request values: validate, validate_message."""

from __future__ import annotations

from rowcall.core.annotations.declaration import Annotation, BadValueError, Draft, Line, NamedLine


def _validate(draft: Draft, line: Line) -> None:
    """Add the rules of a line to those of earlier lines. Names keep their case and are compared exactly (execution-6).

    Raises `BadValueError` if the word `using` is missing.
    """
    parameter, using, *rules = line.arguments
    if using.lower() != "using":
        raise BadValueError("`validate <parameter> using <rule>` is expected")
    earlier = draft.changes.get("validations", ())
    assert isinstance(earlier, tuple)  # noqa: S101 (nothing else is ever stored there)
    draft.set(validations=(*earlier, (parameter, tuple(rules))))
    draft.named.append(NamedLine("validate", line, (parameter, *rules)))


def _message(draft: Draft, line: Line) -> None:
    """Add the message for a parameter and a rule: the rest of the line behind both, as written."""
    parameter, rule = line.arguments[:2]
    earlier = draft.get("validation_messages", ())
    draft.set(validation_messages=(*earlier, (parameter, rule, line.text_after(3))))


ANNOTATIONS = (
    Annotation(
        name="validate",
        aliases=("validate", "validation"),
        syntax="validate <parameter> using <rule>, ...",
        description="Refuses requests whose value breaks one of the rules: `not_null`, `not_empty`, `required`, "
        "`email`, or those of `ValidationOptions:Rules`. May be repeated.",
        apply=_validate,
        minimum_words=4,
    ),
    Annotation(
        name="validate_message",
        aliases=("validate_message",),
        syntax="validate_message <parameter> <rule> <message>",
        description="Message to a caller whose value breaks this rule of `validate`, instead of the rule's own "
        "message. `{0}` in it is the name of the parameter in requests.",
        apply=_message,
        minimum_words=4,
    ),
)
