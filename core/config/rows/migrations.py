"""Key of migrations."""

from rowcall.core.sections.keys import Key, section, text

ROWS: tuple[Key, ...] = (
    section("Migrations", "Numbered SQL files that `rowcall --migrate` runs, each once."),
    text("Migrations:Folder", "migrations", "Folder of the files, such as 001-accounts.sql."),
)
