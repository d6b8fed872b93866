# Two commands do everything: `make demo` and `make test`. Each sets up its own environment.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test slow lock format clean benchmark-games benchmark-training benchmark-planning

demo: .venv/installed
	$(BIN)/saplan demo

test: .venv/tested
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest

slow: .venv/tested ## the tests that take minutes
	$(BIN)/python -m pytest -m slow

format: .venv/tested
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("saplan needs Python 3.11 or newer; run: make PYTHON=/path/to/python3.11" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	touch $@

.venv/tested: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test]'
	touch $@

.venv/peers: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[peers]'
	touch $@

benchmark-games: .venv/peers
	$(BIN)/python benchmarks/games.py

lock: ## write the exact versions of a fresh installation to constraints.txt
	rm -rf .venv && $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	$(BIN)/python -m pip freeze --exclude-editable > constraints.txt
	touch .venv/installed .venv/tested

clean:
	rm -rf .venv
