# Everything a newcomer needs: `make demo` looks around, `make test` proves that it works.
# Steps leave a stamp in .venv, so that a second call only does what has changed.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
SOURCES := $(wildcard ext/*/*.pyx ext/*/*.pxd ext/*/*.h) setup.py
CHECKED := core ext service tests bench ci setup.py
# Two more than processors, as tests wait for a third of their time, but not so many that their servers starve each other.
TEST_PROCESSES ?= $(shell n=$$(( $$(getconf _NPROCESSORS_ONLN) + 2 )); echo $$(( n > 4 ? 4 : n )))
# Files are given away in the order that tests/conftest.py puts them in. pytest keeps what it has made of a file.
PYTEST = PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n $(TEST_PROCESSES) --dist loadfile --no-loadscope-reorder
# How long `make fuzz` stays with each target.
SECONDS ?= 60

.DEFAULT_GOAL := build
.PHONY: build demo test attack thorough test-all drills check format bench fuzz docs site dist clean

build: $(STAMPS)/installed

$(STAMPS)/tools: pyproject.toml ci/create_environment.sh
	ci/create_environment.sh $(PYTHON) $(VENV)
	@touch $@

$(STAMPS)/installed: $(STAMPS)/tools $(SOURCES)
	@# Compiles only what has changed, which pip does not.
	PROFILE=$(PROFILE) PYTHONWARNINGS=ignore $(BIN)/python setup.py --quiet build_ext --inplace
	EXTENSIONS=0 PYTHONWARNINGS=ignore $(BIN)/pip install --quiet --no-build-isolation --no-deps --editable .
	@$(BIN)/python -m compileall -q core ext service tests bench  # each start would compile them where nothing may be written
	@touch $@

demo: build
	$(BIN)/rowcall --demo $(ARGS)

test: build
	$(PYTEST) -m "not drill and not slow" $(ARGS)

attack: build
	$(PYTEST) -m "attack and not drill" $(ARGS)

thorough: build
	ROWCALL_TEST_THOROUGH=1 $(PYTEST) -m "not drill and (drawn or hypothesis or (slow and not attack))" $(ARGS)
	ROWCALL_TEST_ENGINE=Granian $(PYTEST) tests/http -m "not drill and not slow" $(ARGS)

test-all: test attack thorough drills

drills: build
	$(BIN)/python -m pytest tests/drills -n $(TEST_PROCESSES) --dist load $(ARGS)

check: build
	$(BIN)/ruff format --check $(wildcard $(CHECKED))
	$(BIN)/ruff check $(wildcard $(CHECKED))
	PATH=$(abspath $(BIN)):$$PATH $(BIN)/cython-lint ext  # runs pycodestyle by name
	$(BIN)/pip install --quiet --group bench
	$(BIN)/mypy

format: build
	$(BIN)/ruff format $(wildcard $(CHECKED))
	$(BIN)/ruff check --fix $(wildcard $(CHECKED))

bench: build
	$(BIN)/pip install --quiet --group bench
	$(BIN)/python -m bench $(ARGS)

fuzz: build
	$(BIN)/python -m tests.fuzz.fuzz_values $(SECONDS)
	$(BIN)/python -m tests.fuzz.fuzz_request $(SECONDS)
	$(BIN)/python -m tests.fuzz.fuzz_raw $(SECONDS)
	$(BIN)/python -m tests.fuzz.fuzz_html $(SECONDS)
	$(BIN)/python -m tests.fuzz.fuzz_sheet $(SECONDS)
	$(BIN)/python -m tests.fuzz.fuzz_forms $(SECONDS)
	$(BIN)/python -m tests.fuzz.fuzz_heads $(SECONDS)
	$(BIN)/python -m tests.fuzz.fuzz_http1 $(SECONDS)
	$(BIN)/python -m tests.fuzz.fuzz_response_cache $(SECONDS)
	ROWCALL_TEST_THOROUGH=1 $(BIN)/python -m pytest -p tests.fuzzing --hypothesis-profile=fuzz -n $(TEST_PROCESSES) $(or $(ARGS),tests/core tests/ext)

docs: build
	$(BIN)/python ci/write_docs.py

site: $(STAMPS)/tools
	$(BIN)/python ci/build_site.py

dist: build site
	rm -rf dist
	@# The extensions of `make build` are taken; modules and extensions may have been removed since.
	for file in $$(find build/lib* -type f 2>/dev/null); do \
	    source="$${file#*/rowcall/}"; [ -e "$${source%%.*}.pyx" ] && [ "$${file##*.}" = so ] || rm "$$file"; done
	$(BIN)/python -m build --no-isolation --sdist --wheel --outdir dist . > build/dist.log 2>&1 || { cat build/dist.log; exit 1; }
	@ls dist

clean:
	rm -rf $(VENV) build dist service/manual/site.zip .demo *.egg-info ext/*/*.so ext/*/*.c .mypy_cache .ruff_cache .pytest_cache .hypothesis
