# Start with `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: demo test test-slow crash-test fuzz endurance bench gpu-check lint format clean

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(INSTALLED)

demo: $(INSTALLED)
	$(BIN)/cooper demo

test: lint
	$(BIN)/python -m pytest -n auto --dist loadgroup

test-slow: $(INSTALLED)
	$(BIN)/python -m pytest -n auto --dist loadgroup -m slow

# Kills training runs N times and compares them with one that was left alone; see docs/resume.md.
N ?= 20
crash-test: $(INSTALLED)
	PYTHONPATH=tests OMP_NUM_THREADS=1 $(BIN)/python -m crash $(N)

# Coverage-guided fuzzing with SECONDS for each target; see docs/fuzzing.md.
SECONDS ?= 30
fuzz: $(INSTALLED)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev,fuzz]'
	$(BIN)/python tests/fuzz/coverage_guided.py $(SECONDS)

# Takes STEPS tiny steps with every part on, and fails if what the process holds grows.
STEPS ?= 10000
endurance: $(INSTALLED)
	COOPER_ENDURANCE_STEPS=$(STEPS) $(BIN)/python -m pytest tests/test_endurance.py -m slow -s

# BENCH='--model FOLDER --data labelled.parquet --vllm PYTHON' measures more; see benchmarks/run.py.
bench: $(INSTALLED)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev,bench]'
	$(BIN)/python benchmarks/run.py $(BENCH)
	$(BIN)/python benchmarks/growth.py

# The engine on a GPU, into benchmarks/results/gpu.json; says so where there is none. GPU='--model FOLDER' takes a model.
gpu-check: $(INSTALLED)
	$(BIN)/python benchmarks/gpu_check.py $(GPU)

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python

format: $(INSTALLED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache
