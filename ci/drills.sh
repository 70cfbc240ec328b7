#!/usr/bin/env bash
# The faults that take their time: hangs, locks, full tables of descriptors. A share of the files, which the commit draws.
set -euo pipefail
cd "$(dirname "$0")/.."
source ci/seed.sh
make drills
