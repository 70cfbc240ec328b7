#!/usr/bin/env bash
# What `make test` leaves out as slow, and random examples at length: a share of the files, which the commit draws.
set -euo pipefail
cd "$(dirname "$0")/.."
source ci/seed.sh
make thorough ARGS="--hypothesis-seed=$ROWCALL_RANDOM_SEED"
