# Everything a newcomer needs: `make demo`, `make serve-demo` and `make test` set up what they use.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
SERVING := .venv/.serving
TESTABLE := .venv/.testable
READY := .venv/.ready
# Nothing is compiled beforehand: most modules of most packages are never imported.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt
# `make nightly SPARK=yes` also tests Spark, if there is Java; OTHERS=yes compares with pgmpy and
# hmmlearn; DEEP=1 tries 3,000 examples of each property.
SPARK ?=
OTHERS ?=
DEEP ?=
comma := ,
NIGHTLY := .venv/.nightly$(if $(SPARK),-spark)$(if $(OTHERS),-others)
# `make torture` also tries Spark, wherever there is Java.
TORTURABLE := .venv/.torturable
# A folder of real data for `make reproduction DATA=folder`; without one, simulated worlds only.
DATA ?=
# Every command is a process of its own: compiled modules are kept, whatever the environment says.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo serve-demo test nightly torture sbom check format references lint types imports bench docs wheel reproduction clean
.DEFAULT_GOAL := demo

demo: $(INSTALLED)
	$(BIN)/takifugu demo

serve-demo: $(SERVING)
	$(BIN)/python -m takifugu.cli.demo.serve_demo

# What a change is most likely to break, in minutes; `make nightly` is the rest, and properties with more examples.
test: $(TESTABLE)
	$(BIN)/python -m pytest -q -n auto -rs -m "not nightly and not real_data"

nightly: $(NIGHTLY)
	EXAMPLES=usual DEEP=$(DEEP) $(BIN)/python -m pytest -q -n auto -rs -m "(nightly or hypothesis) and not real_data"

# `make torture MINUTES=30 PARTS="oracles kills"`; without PARTS all of them.
MINUTES ?= 120
PARTS ?=
torture: $(TORTURABLE)
	$(BIN)/python -m torture $(PARTS) --minutes $(MINUTES)

# `make sbom SBOM=file`: what is installed here, with versions and licences, as CycloneDX.
SBOM ?= out/sbom.json
sbom: $(READY)
	mkdir -p "$(dir $(SBOM))"
	$(BIN)/python -m torture.dependencies --sbom "$(SBOM)"

check: lint types imports test

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# What is written from the declarations of query kinds, options, commands and routes: commit it.
references: $(READY)
	$(BIN)/python -m takifugu.session.planner_stub
	$(BIN)/python -m takifugu.cli.command_reference docs/reference/commands.md
	$(BIN)/python -m takifugu.server.api.rest_reference docs/reference/rest.md

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(READY)
	$(BIN)/mypy

imports: $(READY)
	$(BIN)/lint-imports

bench: $(READY)
	$(BIN)/python -m benchmarks

docs: $(READY)
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet -b html docs out/site
	@echo "open out/site/index.html"

wheel: $(READY)
	$(BIN)/python -m build --no-isolation --outdir dist  # the wheel from the sdist, never from build/

reproduction: $(READY)
	$(BIN)/takifugu reproduce all --out out/simulated
ifneq ($(DATA),)
	$(BIN)/takifugu reproduce all --data "$(DATA)" --out out/real
	$(BIN)/python -m takifugu.papers.composition.reproduction_page out/real/results.json out/simulated/results.json
	$(BIN)/python -m takifugu.papers.composition.appendix_page --again --fitted out/real/fitted-baselines.json out/simulated/fitted-baselines.json
endif

clean:
	rm -rf .venv out build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis

NEEDS := $(BIN)/python pyproject.toml constraints.txt

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "takifugu needs Python 3.11 or newer: make PYTHON=python3.11")'
	$(PYTHON) -m venv .venv

$(INSTALLED): $(NEEDS)
	$(PIP) -e '.[tables]'
	touch $@

$(SERVING): $(NEEDS)
	$(PIP) -e '.[server]'
	touch $@ $(INSTALLED)

$(TESTABLE): $(NEEDS)
	$(PIP) -e '.[test]'
	touch $@ $(INSTALLED) $(SERVING)

$(READY): $(NEEDS)
	$(PIP) -e '.[dev]'
	$(PIP) --no-deps pgmpy  # for its network files; `make nightly OTHERS=yes` imports it
	touch $@ $(TESTABLE) $(INSTALLED) $(SERVING)

$(NIGHTLY): $(READY)
	$(PIP) -e '.[$(if $(OTHERS),nightly,dev)$(if $(SPARK),$(comma)spark)]'
	touch $@

$(TORTURABLE): $(READY)
	$(PIP) -e '.[torture$(if $(SPARK)$(shell command -v java),$(comma)spark)]'
	touch $@
