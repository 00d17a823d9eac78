# Two commands do everything: `make demo` and `make test`.
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
	$(BIN)/python -m pytest -n auto

test-slow: $(INSTALLED)
	$(BIN)/python -m pytest -n auto -m slow

# Kills a training run N times and compares it with one that was left alone; see docs/resume.md.
N ?= 20
crash-test: $(INSTALLED)
	PYTHONPATH=tests OMP_NUM_THREADS=1 $(BIN)/python -m crash $(N)

# Coverage-guided fuzzing, SECONDS for each target (docs/fuzzing.md).
SECONDS ?= 30
fuzz: $(INSTALLED)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev,fuzz]'
	$(BIN)/python tests/fuzz/coverage_guided.py $(SECONDS)

# What a process holds over STEPS tiny steps with every part on.
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
