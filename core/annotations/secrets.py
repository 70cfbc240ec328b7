"""Comments as they may be shown: generated code and documents repeat them to people whom secrets are not for."""

from __future__ import annotations

import re

from rowcall.core.annotations import CATALOGUE
from rowcall.core.annotations.declaration import HIDDEN

_WORDS = "|".join(word for annotation in CATALOGUE if annotation.secret for word in annotation.aliases)
_SECRET = re.compile(rf"^([ \t]*@?(?:{_WORDS}))[ \t]*[ \t,=:][ \t]*\S.*?$", re.IGNORECASE | re.MULTILINE)


def shown_comment(comment: str | None) -> str:
    """The comment without what its lines keep secret, such as passwords of `basic_auth`."""
    return _SECRET.sub(rf"\1 {HIDDEN}", (comment or "").replace("\r\n", "\n").replace("\r", "\n"))
