# make optimize   search a pattern for the bundled model, end to end (about 5 minutes on 2 cores)
# make test       the fast tests
# make test-all   the slow ones too
# make lint       style
# Each sets up .venv by itself.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
OUT ?= out

.PHONY: optimize test test-all lint format clean

optimize: $(READY)
	$(BIN)/ixsearch optimize --out $(OUT)

test: $(READY)
	$(BIN)/python -m pytest -m "not slow and not gpu" $(ARGS)

test-all: $(READY)
	$(BIN)/python -m pytest -m "not gpu" $(ARGS)

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
