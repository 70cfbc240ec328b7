"""Hooks of MkDocs for the site of the manual (mkdocs.yml).

- The version of pyproject.toml is shown in the header of each page.
- `ROWCALL_REPOSITORY`, else the remote `origin` of git if it is an https address, is where edit links lead.
- Links to files outside of docs/ lead to that repository; without one their text remains.
- File names behind a language (```json rowcall.json) become titles of code blocks.
- The rules and decisions of docs/internals are added to the navigation, a section for each folder.
- `extra.search_boost` sets the weight of pages and folders in the search.
"""

from __future__ import annotations

import os
import posixpath
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
BRANCH = "main"

_FENCE = re.compile(r"^```(?P<language>\w+) (?P<title>\S[^\n]*)$", re.MULTILINE)
_LINK = re.compile(r"\[(?P<text>[^\]]+)\]\((?P<target>(?:\.\./)[^)\s]+)\)")


def on_config(config: Any) -> Any:
    """Add the version, and the address for edit links."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    config.site_name = f"rowcall {version}"
    repository = _repository()
    config.extra["repository"] = repository
    if repository:
        config.edit_uri_template = f"{repository}/edit/{BRANCH}/docs/{{path}}"
    internals = next(section["Internals"] for section in config.nav if "Internals" in section)
    internals += [{"Rules": _files("behaviour")}, {"Decisions": _files("decisions")}]
    return config


def _files(folder: str) -> list[str]:
    return [f"internals/{folder}/{path.name}" for path in sorted((ROOT / "docs/internals" / folder).glob("*.md"))]


def _repository() -> str:
    """Return the web address of the repository, or an empty text if it has none."""
    named = os.environ.get("ROWCALL_REPOSITORY")
    if named is None:
        command = ["git", "-C", str(ROOT), "remote", "get-url", "origin"]
        named = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return named.removesuffix(".git").rstrip("/") if named.startswith("https://") else ""


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Rewrite code fences and links to files outside of docs/, and set the weight of the page in the search."""
    for prefix, boost in config.extra["search_boost"].items():
        if page.file.src_uri.startswith(prefix):
            page.meta.setdefault("search", {})["boost"] = boost
    folder = posixpath.dirname(page.file.src_uri)
    markdown = _LINK.sub(lambda link: _link(link, folder, config.extra["repository"]), markdown)
    return _FENCE.sub(lambda fence: f'```{fence["language"]} title="{fence["title"]}"', markdown)


def _link(link: re.Match[str], folder: str, repository: str) -> str:
    """Return a link as it is if it leads to a page; else one to the repository, or its text if there is none."""
    path = posixpath.normpath(posixpath.join("docs", folder, link["target"]))
    if path.startswith("docs/"):
        return link[0]
    return f"[{link['text']}]({repository}/blob/{BRANCH}/{path})" if repository else link["text"]
