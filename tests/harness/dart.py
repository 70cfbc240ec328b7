"""Syntax check of Dart for tests of generated clients. Without a Dart SDK, the tree-sitter grammar (compiled in a
package of npm) checks the syntax; types are not checked."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.harness.node import node, packages

_CHECK = """
const { Parser, Language } = require("web-tree-sitter");
const fs = require("fs");
(async () => {
    await Parser.init();
    const parser = new Parser();
    parser.setLanguage(await Language.load(process.argv[2]));
    const wrong = [];
    const visit = (file, node) => {
        if (node.type === "ERROR" || node.isMissing) {
            wrong.push(`${file}:${node.startPosition.row + 1}: ${node.text.slice(0, 200)}`);
        } else {
            node.children.forEach(child => visit(file, child));
        }
    };
    for (const file of process.argv.slice(3)) {
        visit(file, parser.parse(fs.readFileSync(file, "utf8")).rootNode);
    }
    console.log(JSON.stringify(wrong));
})();
"""


def mistakes_in_dart(*files: Path) -> list[str]:
    """Return the places with syntax errors; empty if there are none."""
    modules = packages()
    script = modules.parent / "check_dart.js"
    script.write_text(_CHECK, encoding="utf-8")
    grammar = modules / "tree-sitter-wasms" / "out" / "tree-sitter-dart.wasm"
    done = subprocess.run(
        [node(), str(script), str(grammar), *map(str, files)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr[-1000:]
    places: list[str] = json.loads(done.stdout)
    return places
