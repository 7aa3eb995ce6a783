# Everything one does with this repository. `make` alone lists the targets.

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
NODE_STAMP := website/node_modules/.package-lock.json
PYTEST := $(BIN)/python -m pytest
OFFLINE := not nightly and not site and not qdrant
Q ?= What are the core principles of Physical AI?
ARGS ?=
BENCH ?= $(wildcard benchmarks/*.py)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup ingest ask dev evaluate bench test test-nightly test-qdrant test-site check fmt lock site site-dev clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## Make .venv and install the locked versions (Python 3.11+, nothing else)

$(STAMP): requirements.lock pyproject.toml scripts/setup.sh
	@sh scripts/setup.sh $(VENV)
	@touch $@

ingest: $(STAMP) ## Turn website/docs into indexed chunks and print the report (ARGS=... passes options)
	@$(BIN)/rag-pipeline ingest $(ARGS)
	@echo 'Open the Dagster UI: make dev'

ask: $(STAMP) ## Ask a question: make ask Q="..."
	@$(BIN)/rag-pipeline query $(ARGS) -- "$$QUESTION"
ask: export QUESTION = $(value Q)

dev: $(STAMP) ## Open the Dagster UI on http://127.0.0.1:3000
	@DAGSTER_HOME="$$($(BIN)/python -m rag_pipeline.orchestration.instance)" && export DAGSTER_HOME && \
		exec $(BIN)/dagster dev -w workspace.yaml $(ARGS)

evaluate: $(STAMP) ## Ingest, then measure retrieval against the golden set; fails below the bounds
	@$(BIN)/rag-pipeline evaluate

bench: $(STAMP) ## Run the benchmarks (minutes); BENCH=benchmarks/query_latency.py runs one, ARGS=... goes to it
	@set -e; for script in $(BENCH); do echo "== $$script"; $(BIN)/python "$$script" $(ARGS); done

test: $(STAMP) ## Run every test that needs no network (4 to 6 minutes on 2 cores)
	@$(PYTEST) -n auto --dist worksteal -m "$(OFFLINE)" $(ARGS)

test-nightly: $(STAMP) ## Run the tests that take minutes
	@$(PYTEST) -m "nightly and not site and not qdrant" $(ARGS)

test-qdrant: $(STAMP) ## Run the tests that need a Qdrant server at QDRANT_URL
	@test -n "$$QDRANT_URL" || { echo 'test-qdrant: set QDRANT_URL, for example http://127.0.0.1:6333' >&2; exit 2; }
	@$(PYTEST) -m qdrant $(ARGS)

test-site: $(STAMP) site ## Build the website and test the pages it serves (Node 20+)
	@$(PYTEST) -m site rag_pipeline_tests/site $(ARGS)

check: $(STAMP) ## Lint, formatting, types and the import rule
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

fmt: $(STAMP) ## Format the code and mend what the linter can
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

lock: $(STAMP) ## Write requirements.lock anew from pyproject.toml (ARGS=--upgrade takes newer versions)
	@sh scripts/lock.sh $(BIN)/python $(ARGS)

$(NODE_STAMP): website/package.json website/package-lock.json
	@command -v npm >/dev/null || { echo 'the website needs Node 20 or newer' >&2; exit 2; }
	@cd website && npm ci --no-audit --no-fund
	@touch $@

site: $(NODE_STAMP) ## Build the website into website/build (Node 20+)
	@cd website && npm run build

site-dev: $(NODE_STAMP) ## Serve the website with live reload
	@cd website && npm run start

clean: ## Remove what can be made again: environments, caches, the site's build (never DATA_DIR)
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage build dist
	@rm -rf website/node_modules website/build website/.docusaurus
	@find rag_pipeline rag_pipeline_tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
