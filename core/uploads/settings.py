"""Settings of upload handlers in a comment: parsed once, filled for each request (uploads-3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rowcall.core.endpoint.capabilities import Upload
from rowcall.core.endpoint.template import Template, ValueOf, parse_template
from rowcall.core.uploads.names import climbs

MOST = 4_294_967_295


class ClimbingPathError(ValueError):
    """The value of a request would lead out of the folder that the comment names."""


@dataclass(frozen=True, slots=True)
class HandlerSettings:
    """The settings of a comment for one handler, with their values for one request.

    Each method returns the value of a setting, or the default if it is absent or not valid (uploads-4). texts: by name
    of the setting, in lower case.
    """

    texts: Mapping[str, str]

    def text(self, name: str, default: str) -> str:
        return self.texts.get(name, default)

    def text_or_none(self, name: str, default: str | None = None) -> str | None:
        return self.texts.get(name, default)

    def flag(self, name: str, default: bool) -> bool:
        return {"true": True, "false": False}.get(self.texts.get(name, "").strip().lower(), default)

    def number(self, name: str, default: int, *, minimum: int = 0) -> int:
        text = self.texts.get(name, "").strip()
        return int(text) if is_number(text) and int(text) >= minimum else default


def is_number(text: str) -> bool:
    """Return whether the text is a whole number from 0 to the largest object id (oid), in ASCII digits."""
    return text.isascii() and text.isdecimal() and len(text) <= 10 and int(text) <= MOST


class SettingTemplates:
    """The settings of a comment for one handler, with placeholders. Created once; `fill` is called for each request."""

    def __init__(
        self,
        upload: Upload,
        custom: Iterable[tuple[str, str]],
        key: str,
        names: Mapping[str, int],
        path_alias: str | None = None,
    ) -> None:
        """Parse the settings.

        custom: names and texts of custom parameters, which include settings with the key of a renamed handler. key: of
        the handler; settings that begin with it and `_` count for this handler only. names: of placeholders → index of
        the parameter, from `placeholder_names`. path_alias: another name of the setting `path`, used if that is
        absent; None: there is none.
        """
        written = {word.lower(): text for word, text in (*custom, *upload.settings)}
        prefix = f"{key.lower()}_"
        own = {word.removeprefix(prefix): text for word, text in written.items() if word.startswith(prefix)}
        chosen = {**own, **written}
        if path_alias in chosen:
            chosen.setdefault("path", chosen[path_alias])
        self._written = chosen
        self._templates = {word: parse_template(text, names) for word, text in chosen.items()}
        fixed = all(template.is_fixed for template in self._templates.values())
        self._fixed = self._fill_templates(_no_value) if fixed else None

    def fill(self, value_of: ValueOf) -> HandlerSettings:
        """Return the settings for a request. value_of: returns the value of a parameter by its index. Raises
        `ClimbingPathError` if a value in the setting `path` leads out of the folder."""
        return self._fill_templates(value_of) if self._fixed is None else self._fixed

    def text_of(self, word: str) -> str | None:
        """Return the text of a setting in the comment, with its placeholders; None: it is not set. word: name of the
        setting, in lower case."""
        return self._written.get(word)

    def _fill_templates(self, value_of: ValueOf) -> HandlerSettings:
        return HandlerSettings({word: _text(word, template, value_of) for word, template in self._templates.items()})


def _text(word: str, template: Template, value_of: ValueOf) -> str:
    return template.fill(value_of, _refuse_climbing if word == "path" else str)


def _refuse_climbing(value: str) -> str:
    """Return the value unchanged. Raises `ClimbingPathError` if it may lead out of the folder, as `climbs` says."""
    if climbs(value):
        raise ClimbingPathError(value)
    return value


def _no_value(_index: int) -> None:
    return
