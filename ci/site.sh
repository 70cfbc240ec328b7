#!/usr/bin/env bash
# The site of the manual: a warning, a link or an anchor that leads nowhere is an error.
set -euo pipefail
cd "$(dirname "$0")/.."
make site
