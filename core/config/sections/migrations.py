"""The key of migrations."""

from __future__ import annotations

from rowcall.core.sections.declaration import section, text


@section("Migrations", "Numbered SQL files that `rowcall --migrate` runs, each once.")
class Migrations:
    folder: str = text("Folder", "migrations", "Folder of the files, such as 001-accounts.sql.")
