#!/usr/bin/env bash
# The long forms of the attack tests: a share of the files, which the commit draws. `make test` runs the others, and
# `make attack` runs all of them.
set -euo pipefail
cd "$(dirname "$0")/.."
source ci/seed.sh
make attack ARGS="-m 'attack and slow and not drill'"
