"""Comments as they may be shown: generated code and documents repeat them to people whom secrets are not for."""

from __future__ import annotations

import re
from functools import cache


def shown_comment(comment: str | None) -> str:
    """The comment without what its lines keep secret, such as passwords of `basic_auth`."""
    return _secret_lines().sub(r"\1 ***", (comment or "").replace("\r\n", "\n").replace("\r", "\n"))


@cache
def _secret_lines() -> re.Pattern[str]:
    # Workers need the annotations for nothing else.
    from rowcall.core.annotations import CATALOGUE

    words = "|".join(word for annotation in CATALOGUE if annotation.secret for word in annotation.aliases)
    return re.compile(rf"^([ \t]*@?(?:{words}))[ \t]*[ \t,=:][ \t]*\S.*?$", re.IGNORECASE | re.MULTILINE)
