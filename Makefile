# The two commands that matter: `make bench` and `make test`. Both work from a bare clone.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
EXTRAS ?= dev
ARGS ?=

.PHONY: bench test lint ui clean

bench: $(VENV)/ready  ## Compile, verify and compare every baseline; results go to MLflow
	$(BIN)/python -m pytest suite --benchmark-only $(ARGS)

test: lint  ## Everything that can be tested on this host
	$(BIN)/python -m pytest tests $(ARGS)

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

ui: $(VENV)/ready  ## Open the results in a browser
	$(BIN)/mlflow ui --backend-store-uri $${MLFLOW_TRACKING_URI:-sqlite:///mlflow.db} $(ARGS)

$(VENV)/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[$(EXTRAS)]"
	touch $@

clean:
	rm -rf $(VENV) .suite .benchmarks mlflow.db mlruns mlartifacts .mypy_cache .ruff_cache .pytest_cache
