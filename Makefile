# The two commands that matter: `make bench` and `make test`. Both work from a bare clone.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
EXTRAS ?= dev,train
ARGS ?=
# Processes that tests are spread over: one more than cores, since some tests wait.
WORKERS ?= $(shell n=$$(nproc); echo $$((n < 8 ? n + 1 : 8)))
GPU := $(wildcard /dev/nvidiactl)
comma := ,
FUZZED := tests/harness/test_parse_fuzz.py tests/matrices/test_readers_fuzz.py \
	tests/matrices/test_matrix_market_fuzz.py tests/matrices/test_matlab.py \
	tests/suite/test_resume.py
# Every process would compile its modules anew.
unexport PYTHONDONTWRITEBYTECODE
READY := $(VENV)/ready-$(subst $(comma),-,$(EXTRAS))

.PHONY: bench test test-all fuzz lint ui clean clean-results

bench: $(READY)  ## Compile, verify and compare every program; results go to MLflow
	$(BIN)/python -m pytest suite --benchmark-only $(ARGS)

# What needs a GPU runs one at a time: it measures.
test: lint  ## What can be tested on this host in minutes
	$(BIN)/python -m pytest tests -n $(WORKERS) --dist worksteal -m 'not slow$(if $(GPU), and not gpu)' $(ARGS)
	$(if $(GPU),$(BIN)/python -m pytest tests -m 'gpu and not slow' $(ARGS))

test-all: lint  ## Everything that can be tested on this host
	$(BIN)/python -m pytest tests -n $(WORKERS) --dist worksteal $(if $(GPU),-m 'not gpu') $(ARGS)
	$(if $(GPU),$(BIN)/python -m pytest tests -m gpu $(ARGS))

fuzz: $(READY)  ## Longer hunts: text and files that are not read, moments at which a kill loses something
	FUZZ_EXAMPLES=$${FUZZ_EXAMPLES:-20000} $(BIN)/python -m pytest $(FUZZED) $(ARGS)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

ui: $(READY)  ## Open the results in a browser
	@case "$$MLFLOW_TRACKING_URI" in \
	http*) echo "MLflow is served at $$MLFLOW_TRACKING_URI" ;; \
	*) echo "Open http://127.0.0.1:5000/#/experiments?workflowType=machine_learning"; \
	$(BIN)/mlflow ui --backend-store-uri "$${MLFLOW_TRACKING_URI:-sqlite:///mlflow.db}" $(ARGS) ;; \
	esac

# --no-compile: of some 20,000 modules a run imports a tenth, and compiles those itself.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e ".[$(EXTRAS)]"
	touch $@

clean:  ## Remove the environment and caches; results stay
	rm -rf $(VENV) .benchmarks .hypothesis .mypy_cache .ruff_cache .pytest_cache *.egg-info

clean-results:  ## Remove every measurement made here
	rm -rf .suite mlflow.db* mlruns mlartifacts
