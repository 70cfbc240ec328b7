#!/usr/bin/env bash
# The long forms of the attack tests. `make test` runs the others, and `make attack` runs all of them.
set -euo pipefail
cd "$(dirname "$0")/.."
make attack ARGS="-m 'attack and slow and not drill'"
