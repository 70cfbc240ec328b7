"""Settings of mail with which none could be sent stop the start."""

from __future__ import annotations

from pathlib import Path

import pytest

from rowcall.core.config import assemble
from rowcall.core.config.tree import Section
from rowcall.core.sections.errors import ConfigError
from rowcall.service.options.queues import mail_options
from rowcall.service.startup_error import StartupError

ON = ("Mail:Enabled", "true")


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ([ON], "Mail:Host is missing, the mail server; or set Mail:Transport to Folder or Log"),
        ([ON, ("Mail:Transport", "Folder")], "Mail:Folder is missing"),
        ([ON, ("Mail:Host", "x"), ("Mail:CaFile", "/none.pem")], "Mail:CaFile: /none.pem has no certificates"),
    ],
)
def test_invalid_mail_settings_stop_the_start(settings: list[tuple[str, str]], why: str) -> None:
    with pytest.raises((ConfigError, StartupError), match=why):
        mail_options(assemble(Section(), settings, {}).settings)


def test_a_ca_file_without_certificates_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("none")
    settings = [ON, ("Mail:Host", "x"), ("Mail:CaFile", str(tmp_path / "ca.pem"))]
    with pytest.raises((ConfigError, StartupError), match=r"ca\.pem has no certificates"):
        mail_options(assemble(Section(), settings, {}).settings)
