#!/usr/bin/env bash
# The micro-benchmarks of the Cython parts beside their Python twins and beside orjson. They judge results, not
# times; the ratios are printed.
set -euo pipefail
cd "$(dirname "$0")/.."
.venv/bin/python -m pytest bench/micro --benchmark-only --benchmark-max-time=0.3 --benchmark-columns=median,ops,rounds "$@"
