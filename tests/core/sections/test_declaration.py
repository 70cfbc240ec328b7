"""Sections are declared once: their keys, their objects and the defaults of both follow from the fields."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping

import pytest

from rowcall.core.config import ConfigError, KeyType, Settings
from rowcall.core.config.table import SECTIONS
from rowcall.core.config.tree import Origin, merge_all, single
from rowcall.core.sections.declaration import (
    choice,
    declared_section,
    flag,
    integer,
    interval,
    keys_of,
    part,
    section,
    text,
    text_map,
    texts,
)


class Color(enum.Enum):
    RED = "Red"
    BLUE = "Blue"


def _even(text: str | None) -> int:
    if text not in ("2", "4"):
        raise ValueError(f"{text!r} is not even")
    return int(text)


@section("Jobs:Inner", "A part.")
class Inner:
    delay: float | None = interval("Delay", None, "A delay.")


@section("Jobs", "An example.")
class Example:
    enabled: bool = flag("Enabled", False, "A switch.")
    count: int = integer("Concurrency", 8, "A number.")
    color: Color = choice("Color", Color, "Red", "A choice.")
    title: str | None = text("Title", None, "A nullable text.")
    items: tuple[str, ...] = texts("Queues", ("a",), "A list.", each=str.upper)
    even: Mapping[str, int] = text_map("QueueLimits", {}, "A map.", each=_even)
    ignored = flag("Ignored", False, "A key without a field.")
    inner: Inner = part(Inner)
    last: float = interval("Retention", "2 minutes", "A duration.")


def settings_of(**values: str) -> Settings:
    origin = Origin("command line")
    paths = {name.replace("__", ":"): text for name, text in values.items()}
    return Settings(merge_all(single(f"Jobs:{path}", text, origin) for path, text in paths.items()))


def test_keys_have_full_paths_in_the_order_of_the_fields() -> None:
    names = "Enabled Concurrency Color Title Queues QueueLimits Ignored Inner Inner:Delay Retention"
    assert [key.path for key in keys_of(Example)] == ["Jobs", *(f"Jobs:{name}" for name in names.split())]


def test_choices_of_an_enum_are_its_values() -> None:
    key = next(key for key in keys_of(Example) if key.path == "Jobs:Color")
    assert (key.type, key.choices) == (KeyType.CHOICE, ("Red", "Blue"))


def test_a_constructor_has_the_defaults_of_the_keys() -> None:
    example = Example(count=3)
    assert (example.enabled, example.count, example.color, example.title) == (False, 3, Color.RED, None)
    assert (example.items, example.even, example.inner, example.last) == (("A",), {}, Inner(), 120.0)


def test_a_class_attribute_without_annotation_is_not_a_field() -> None:
    assert "ignored" not in {field.name for field in dataclasses.fields(Example)}
    assert not hasattr(Example(), "ignored")


@pytest.mark.parametrize("kind", SECTIONS, ids=lambda kind: kind.__name__)
def test_empty_settings_give_the_defaults_of_the_constructor(kind: type) -> None:
    declared = declared_section(kind)
    if not (declared.fields or declared.parts):
        return  # a section without an object
    if any(field.default is field.default_factory for field in dataclasses.fields(kind)):
        return  # an object with values that are not read
    assert Settings().read(kind) == kind()


def test_a_converter_error_names_the_key() -> None:
    with pytest.raises(ConfigError, match=r"^Jobs:QueueLimits:x: '3' is not even$"):
        settings_of(QueueLimits__x="3").read(JobLimits)


@section("Jobs", "The same keys as those of jobs.")
class JobLimits:
    limits: Mapping[str, int] = text_map("QueueLimits", {}, "A map.", each=_even)
    concurrency: int = integer("Concurrency", 8, "A number.")
    retention: float = interval("Retention", "7 days", "A duration.")


def test_values_are_read_and_converted() -> None:
    limits = settings_of(QueueLimits__x="4", Concurrency="2", Retention="1h").read(JobLimits)
    assert limits == JobLimits(limits={"x": 4}, concurrency=2, retention=3600.0)


def test_a_disabled_section_is_not_read() -> None:
    wrong = settings_of(QueueLimits__x="3")
    assert wrong.read_enabled(JobLimits) is None


def test_fields_of_other_sources_are_given() -> None:
    assert settings_of(Retention="1h").read(Named, title="title").title == "title"


@section("Jobs", "An object with a value that is no key.")
class Named:
    title: str
    retention: float = interval("Retention", "7 days", "A duration.")
