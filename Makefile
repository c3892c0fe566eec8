# make optimize   search a pattern for the bundled model, end to end: about 4 minutes on 2 cores; OUT=folder
# make test       the fast tests, two processes at a time; ARGS="-k trie" for some of them, JOBS=8 for more
# make test-all   the slow ones too
# make lint       style; make format mends it
# make clean      remove .venv and what was built
# Each sets up .venv by itself, with PYTHON=python3.12 or the like where python3 is older than 3.11.
# make optimize again goes on with the study in ixsearch.db: remove that file to search anew.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
OUT ?= out
JOBS ?= 2
PYTEST := $(BIN)/python -m pytest --numprocesses $(JOBS) --dist loadfile

.PHONY: optimize test test-all lint format clean

optimize: $(READY)
	$(BIN)/ixsearch optimize --out $(OUT)

test: $(READY)
	$(PYTEST) -m "not slow and not gpu" $(ARGS)

test-all: $(READY)
	$(PYTEST) -m "not gpu" $(ARGS)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The torch that constraints.txt names comes first: a range would let pip take a larger build.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[plot,test]'
	touch $(READY)

clean:
	rm -rf .venv build *.egg-info
