# Everything is installed into .venv (and .venv-parts, .venv-bigquery and .npm-parts for
# `make test-parts`); a bare machine needs only make, git and Python 3.11 or newer.
PYTHON ?= python3
BIN := .venv/bin
PARTS_BIN := .venv-parts/bin
BIGQUERY_BIN := .venv-bigquery/bin
PIP_OPTIONS := --quiet --disable-pip-version-check --no-input

.DEFAULT_GOAL := help
.PHONY: help install demo test test-parts check format lint types layers bench fleet docs lock clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

install: .venv/.installed ## install the program at .venv/bin/loadfactor, with locked dependencies

demo: install ## run the whole nightly job on the bundled fleet; writes loadfactor-out/
	@$(BIN)/loadfactor demo

test: install ## run every test that needs only what pip brings
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

test-parts: .venv-parts/.installed .venv-bigquery/.installed .npm-parts/.installed ## install Java, Spark, Azurite and a BigQuery where missing, test against them, and kill nights
	sh tools/java.sh
	$(PARTS_BIN)/python -m pytest -m parts tests/parts tests/test_kills.py

check: lint types layers test ## format check, lint, types, layers, tests

format: install ## write the code in the project's format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lint: install ## check format and lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: install ## check types, strictly
	$(BIN)/python -m mypy

layers: install ## check which package may import which
	$(BIN)/lint-imports

bench: install ## measure time and memory of loading, planning and the optimiser (half an hour)
	$(BIN)/python tools/bench.py
	$(BIN)/python tools/bench_load.py
	$(BIN)/python tools/bench_plan.py
	$(BIN)/python tools/bench_year.py
	$(BIN)/python tools/bench_optimise.py

fleet: install ## make the bundled fleet's files again
	$(BIN)/python -m data.sample.generate

docs: install ## write docs/tables.md again from the table declarations
	@$(BIN)/python -m data.docs > docs/tables.md

lock: ## lock dependencies again from pyproject.toml (UPGRADE=1 takes newer versions)
	PYTHON="$(PYTHON)" sh tools/lock.sh

clean: ## remove environments, caches and results
	rm -rf .venv .venv-parts .venv-bigquery .npm-parts build dist loadfactor-out .coverage
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	rm -rf *.egg-info

.venv/.installed: requirements.lock pyproject.toml
	PYTHON="$(PYTHON)" sh tools/venv.sh .venv
	@echo "Installing the locked dependencies into .venv (a minute or two) ..."
	@$(BIN)/pip install $(PIP_OPTIONS) --require-hashes -r requirements.lock
	@$(BIN)/pip install $(PIP_OPTIONS) --no-deps --no-build-isolation -e .
	@touch $@

.venv-parts/.installed: requirements.lock requirements-parts.lock pyproject.toml
	PYTHON="$(PYTHON)" sh tools/venv.sh .venv-parts
	@echo "Installing the locked dependencies and Spark into .venv-parts (some minutes) ..."
	@$(PARTS_BIN)/pip install $(PIP_OPTIONS) --require-hashes -r requirements.lock
	@$(PARTS_BIN)/pip install $(PIP_OPTIONS) --require-hashes --no-build-isolation \
		-r requirements-parts.lock
	@$(PARTS_BIN)/pip install $(PIP_OPTIONS) --no-deps --no-build-isolation -e .
	@touch $@

.npm-parts/.installed: tools/parts/package.json tools/parts/package-lock.json
	@echo "Installing Azurite into .npm-parts (a minute) ..."
	sh tools/azurite.sh .npm-parts
	@touch $@

.venv-bigquery/.installed: requirements-bigquery.lock
	PYTHON="$(PYTHON)" sh tools/venv.sh .venv-bigquery
	@echo "Installing BigQuery's emulator into .venv-bigquery (a minute) ..."
	@$(BIGQUERY_BIN)/pip install $(PIP_OPTIONS) --require-hashes -r requirements-bigquery.lock
	@touch $@
