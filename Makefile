# The commands for working with this repository. `make` without a target lists them.

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEV := $(VENV)/.installed-dev
NODE_STAMP := website/node_modules/.package-lock.json
PYTEST := $(BIN)/python -m pytest
OFFLINE := not nightly and not site and not qdrant
CORES = $(shell getconf _NPROCESSORS_ONLN)
FAST := $(addprefix rag_pipeline_tests/,core ingestion retrieval answering evaluation)
Q ?= What are the core principles of Physical AI?
ARGS ?=
DAGSTER ?= <1.15
DAGSTER_PARTS := dagster dagster-webserver dagster-graphql dagster-dg-cli
BENCH ?= $(wildcard benchmarks/*.py)

# Processes start twice as fast with bytecode. Setup leaves it to the first use of each module to write it,
# and many container images switch that off.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: FORCE help setup ingest ask serve dev evaluate bench test test-fast test-nightly test-dagster test-qdrant test-site check docs hooks fmt lock release site site-dev clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## Create .venv and install what the program needs (needs only Python 3.11+)
	@echo 'setup: $(VENV) is ready. Next: make ingest'

$(STAMP): requirements.lock pyproject.toml scripts/setup.sh $(if $(shell test -x $(BIN)/python && echo yes),,FORCE)
	@sh scripts/setup.sh $(VENV)
	@touch $@

# Tests, checks and documentation need more packages, which the first of their targets installs.
$(DEV): $(STAMP) requirements-dev.lock
	@sh scripts/setup.sh $(VENV) dev
	@touch $@

ingest: $(STAMP) ## Index the documents in website/docs and print a report (ARGS=... passes options)
	@$(BIN)/rag-pipeline ingest $(ARGS)
	@echo 'Ask here: make ask Q="..."   Open the Dagster UI: make dev'

ask: $(STAMP) ## Answer a question: make ask Q="..."
	@$(BIN)/rag-pipeline query $(ARGS) -- "$$QUESTION"
ask: export QUESTION = $(value Q)

serve: $(STAMP) ## Serve the book with RoboTutor on http://127.0.0.1:8000; indexes and builds it first if needed
	@$(BIN)/rag-pipeline stats >/dev/null 2>&1 || $(BIN)/rag-pipeline ingest
	@test -f website/build/index.html || \
		if command -v npm >/dev/null; then $(MAKE) --no-print-directory site; else false; fi || \
		echo 'The website is not built, so only the API is served. To build it: make site (Node 20+)'
	@exec $(BIN)/rag-pipeline serve $(ARGS)

dev: $(STAMP) ## Start the Dagster UI on http://127.0.0.1:3000
	@exec $(BIN)/python -m rag_pipeline.orchestration.instance dg dev --use-active-venv $(ARGS)

evaluate: $(STAMP) ## Ingest, then measure search and answers with the golden set; fails if a quality gate fails
	@$(BIN)/rag-pipeline evaluate

bench: $(DEV) ## Run all benchmarks (minutes), or one: BENCH=benchmarks/query_latency.py ARGS=...
	@set -e; for script in $(BENCH); do echo "== $$script"; $(BIN)/python "$$script" $(ARGS); done

test: $(DEV) ## Run all tests that need no network (minutes on 2 cores)
	@$(PYTEST) -n auto --dist worksteal -m "$(OFFLINE)" $(ARGS)

test-fast: $(DEV) ## Run the tests of the domain code, in under a minute
	@$(PYTEST) -n $(CORES) --dist worksteal -m "$(OFFLINE) and not slow" $(FAST) $(ARGS)

test-nightly: $(DEV) ## Run the slow tests, which take minutes each
	@$(PYTEST) -m "nightly and not site and not qdrant" $(ARGS)

test-dagster: $(DEV) ## Run the tests of Dagster with other versions: DAGSTER='==1.13.0' (default: the newest of the range)
	@$(BIN)/uv venv -q --clear build/dagster
	@$(BIN)/uv pip install -q --python build/dagster/bin/python -r requirements.lock -r requirements-dev.lock
	@$(BIN)/uv pip install -q --python build/dagster/bin/python --upgrade $(foreach part,$(DAGSTER_PARTS),'$(part)$(DAGSTER)')
	@$(BIN)/uv pip install -q --python build/dagster/bin/python --no-deps --no-build-isolation -e .
	@build/dagster/bin/python -m pytest -n auto --dist worksteal -m "$(OFFLINE)" rag_pipeline_tests/orchestration rag_pipeline_tests/end_to_end/test_dagster_dev.py $(ARGS)

test-qdrant: $(DEV) ## Run the tests that need a Qdrant server at QDRANT_URL
	@test -n "$$QDRANT_URL" || { echo 'test-qdrant: set QDRANT_URL, for example http://127.0.0.1:6333' >&2; exit 2; }
	@$(PYTEST) -m qdrant $(ARGS)

test-site: $(DEV) site ## Build the website, test its pages and RoboTutor (Node 20+, Chromium)
	@$(PYTEST) -m site rag_pipeline_tests/site $(ARGS)
	@cd website && npm test --workspaces --if-present
	@cd website && npm exec -- vitest run
	@cd website && npm exec -- vitest run --config vitest.other-site.config.ts

check: $(DEV) ## Run the linter, and check formatting, types and imports
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

hooks: $(DEV) ## Run the pre-commit hooks on all files
	@$(BIN)/pre-commit run --all-files $(ARGS)

docs: $(DEV) ## Build the documentation site into build/docs; fails on a broken link or reference
	@$(BIN)/python scripts/write_reference.py
	@rm -rf build/docs && $(BIN)/zensical build --clean --strict
	@$(BIN)/python scripts/check_site.py build/docs
	@echo 'The documentation is in build/docs: open build/docs/index.html'

fmt: $(DEV) ## Format the code and apply the fixes of the linter
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

lock: $(DEV) ## Write the lock files from pyproject.toml (ARGS=--upgrade for newer versions)
	@sh scripts/lock.sh $(BIN)/python $(ARGS)

release: $(DEV) ## Build sdist, wheel and release notes in dist/, and test the wheel
	@$(BIN)/python scripts/release.py

$(NODE_STAMP): website/package.json website/package-lock.json
	@command -v npm >/dev/null || { echo 'the website needs Node 20 or newer' >&2; exit 2; }
	@cd website && npm ci --no-audit --no-fund
	@touch $@

site: $(STAMP) $(NODE_STAMP) ## Build the website, and its pages as Markdown, into website/build (Node 20+)
	@cd website && npm run build
	@$(BIN)/rag-pipeline export-pages --site website/build

site-dev: $(NODE_STAMP) ## Serve the website with live reload
	@cd website && npm run start

clean: ## Delete .venv, caches and the built website (never DATA_DIR)
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .cache .coverage .coverage.* build dist
	@rm -rf website/node_modules website/build website/.docusaurus website/packages/*/lib
	@find rag_pipeline rag_pipeline_tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
