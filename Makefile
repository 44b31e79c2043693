# Everything a newcomer needs: `make demo` and `make test` set up what they use.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
# The tests also read Result tables, and run Spark where there is Java: `make test SPARK=` does not.
SPARK ?= $(if $(shell command -v java 2>/dev/null),yes)
EXTRAS := tables$(if $(SPARK),$(shell echo ,)spark)
TESTABLE := .venv/.testable-$(EXTRAS)

.PHONY: demo test check format lint types imports bench clean
.DEFAULT_GOAL := demo

demo: $(READY)
	$(BIN)/takifugu collapse 2

test: $(TESTABLE)
	$(BIN)/python -m pytest -q -n auto --dist loadgroup -rs

check: lint types imports test

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(READY)
	$(BIN)/mypy

imports: $(READY)
	$(BIN)/lint-imports

bench: $(READY)
	$(BIN)/python -m benchmarks

clean:
	rm -rf .venv out build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "takifugu needs Python 3.11 or newer: make PYTHON=python3.11")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -c constraints.txt pgmpy  # for its network files; never imported
	touch $(READY)

$(TESTABLE): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[$(EXTRAS)]'
	touch $@
