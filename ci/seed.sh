# Sourced by the steps that draw tests and examples at random.
#
# A commit is judged by the same ones wherever and however often it is: its files say what is drawn. Long tests take part
# in turn, by file, so that CI stays below 15 minutes; `make test-all` runs all of them.
tree="$(git rev-parse 'HEAD^{tree}' 2>/dev/null || true)"
export ROWCALL_RANDOM_SEED="$((16#0${tree:0:7} + 1))"
export ROWCALL_TEST_SHARE="${ROWCALL_TEST_SHARE:-9}"
echo "ROWCALL_RANDOM_SEED=$ROWCALL_RANDOM_SEED ROWCALL_TEST_SHARE=$ROWCALL_TEST_SHARE"
