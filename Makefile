# Two commands do everything: `make demo` and `make test`. Each sets up its own environment.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test browser slow reliability lock format docs clean results benchmark-games benchmark-training benchmark-planning

demo: .venv/installed
	$(BIN)/saplan demo

test: .venv/tested browser
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

browser: ## Chromium for the tests of the page; without it they are skipped
	@command -v chromium > /dev/null || { test "$$(id -u)" = 0 && apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
		apt-get install -qq -y --no-install-recommends chromium fonts-dejavu-core > /dev/null; } \
		|| echo "no Chromium: the tests of the page in a browser will be skipped"

slow: .venv/ray ## the tests that take minutes
	$(BIN)/python -m pytest -m slow

reliability: .venv/tested ## kills, damage, bad numbers, full disks as often as docs/reliability.md says (an hour)
	RELIABILITY=full $(BIN)/python -m pytest tests/reliability
	$(BIN)/python benchmarks/results.py

docs: .venv/docs ## the documentation site in build/docs; a warning is an error
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs build/docs
	@echo "open build/docs/index.html"

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

.venv/docs: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	touch $@

.venv/ray: .venv/tested
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[ray]'
	touch $@

.venv/peers: .venv/installed constraints-peers.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -c constraints-peers.txt -e '.[peers]'
	touch $@

benchmark-games: .venv/peers ## our games against two JAX peers and MiniGrid
	$(BIN)/python benchmarks/games.py

benchmark-training: .venv/peers ## our training against a PPO in JAX (and Stable-Baselines3 if the extra sb3 is installed)
	$(BIN)/python benchmarks/training.py

benchmark-planning: .venv/peers ## planning time against graph size, and plans by algebra beside ENHSP (needs Java 17)
	$(BIN)/python benchmarks/graph_search.py
	$(BIN)/python benchmarks/planning.py

results: .venv/installed ## train and evaluate the small agents that the documents show, and write the tables
	$(BIN)/saplan reproduce --out results/small --methods structured --variants default paper --games switches --steps 2500000
	$(BIN)/saplan reproduce --out results/small --methods structured --variants default paper --games exchange --steps 4000000
	$(BIN)/saplan reproduce --out results/small --methods structured --variants default paper --games mining --steps 5000000
	$(BIN)/python benchmarks/results.py

lock: ## write the exact versions of a fresh installation to constraints.txt
	rm -rf .venv && $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	$(BIN)/python -m pip freeze --exclude-editable > constraints.txt
	touch .venv/installed .venv/tested

clean:
	rm -rf .venv .pytest_cache
