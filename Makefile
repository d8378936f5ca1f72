# Every target sets itself up from uv.lock; all it needs is Python 3.11 or newer, with venv.
PYTHON ?= $(firstword $(foreach p,python3.11 python3.12 python3.13 python3,$(shell command -v $(p))))
UV_VERSION := 0.13.9
UV := .uv/bin/uv
BIN := .venv/bin
READY := .venv/.ready
export UV_PYTHON_DOWNLOADS := never
# What Python compiled it may keep, whatever the caller says: each process that starts is twice as quick.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup demo test check format bench bench-full torture lab samples clean

setup: $(READY)

$(UV):
	$(PYTHON) -m venv .uv
	.uv/bin/pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)

$(READY): pyproject.toml uv.lock $(UV)
	$(UV) sync --quiet --frozen --all-extras --all-groups --python $(PYTHON)
	@touch $(READY)

demo: $(READY)
	$(BIN)/tallybook demo $(ARGS)

test: $(READY)
	$(BIN)/pytest --numprocesses=4 --dist=loadscope --no-loadscope-reorder $(ARGS)

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/pytest tests/house/test_docs.py tests/house/test_pages.py

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(READY)
	$(BIN)/python -m tests.benchmarks

bench-full: $(READY)
	$(BIN)/python -m tests.benchmarks --full

torture: $(READY)
	TMPDIR=$${TMPDIR:-/tmp} $(BIN)/pytest tests/torture -s --timeout=3600 $(ARGS)

lab: $(READY)
	$(BIN)/tallybook lab $(ARGS)

samples: $(READY)
	$(BIN)/python -m tallybook.demo.record data-samples

clean:
	rm -rf .venv .uv build dist .mypy_cache .ruff_cache
