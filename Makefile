# `make up` and `make test` are complete on a machine that has Python 3.11+ and make.
# Paths are relative on purpose: a checkout may lie in a folder whose name has spaces.

SHELL := /bin/sh
PY := .venv/bin/python
PORT ?= 8000
TURNS ?= 8
N ?= 2000
LEVELS ?= 1,2,4,8,16,32
SECONDS_EACH ?= 8
SOURCES := $(wildcard ctxengine inspector api workers manage.py)
TEMPLATES := $(wildcard templates inspector api)
# Where the environment forbids bytecode, each of the many processes that the tests start would compile the product anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help install install-test up examples test faults fuzz load bench lint types format lock clean

help:
	@echo "make up        install, start everything and print the address and the login (PORT=8000)"
	@echo "make examples  run the example agents on all three APIs against the strict local provider (TURNS=8)"
	@echo "make test      install what the tests need and run every check"
	@echo "make faults    only the tests that kill workers, brokers and databases"
	@echo "make bench     the benchmark report, bench/report.md (a quarter of an hour on a quiet machine)"
	@echo "make fuzz      generated and hostile calls against the whole API (N=2000)"
	@echo "make load      many runtimes at once against real processes (LEVELS=1,2,4,8,16,32)"
	@echo "make install   build .venv from the lock"
	@echo "make lint      ruff, import contracts, deployment, API schema, templates, spelling"
	@echo "make types     mypy"
	@echo "make format    rewrite the code in the house format"
	@echo "make lock      renew the locks (needs uv)"
	@echo "make clean     remove .venv and caches; data folders stay"

install:
	@sh .ci/install requirements.lock

install-test:
	@sh .ci/install requirements-test.lock
	@sh .ci/chromium
	@sh .ci/brokers

# exec: the process that make waits for is the one that gets the signals.
up: install
	@exec $(PY) manage.py up --port $(PORT)

examples: install
	@$(PY) -m examples.run_all --turns $(TURNS) --thinking --trouble

# Side by side; what each says comes in one piece where this make can do that. Either fails the run, and pytest is not begun.
SIDE_BY_SIDE := -j 2 $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)

test: install-test
	@$(MAKE) --no-print-directory $(SIDE_BY_SIDE) lint types
	$(PY) -m pytest -n 2 --dist worksteal

# Everywhere: at each commit of each write, not at the last alone; and docs/faults.md is written anew from what passed.
faults: install-test
	CTX_FAULTS_EVERYWHERE=1 CTX_WRITE_FAULTS_PAGE=1 $(PY) -m pytest -m faults -p no:randomly
	$(PY) -m pytest -q tests/faults/test_faults_page.py

fuzz: install-test
	$(PY) -m tests.fuzz.drive --calls $(N)

load: install-test
	$(PY) -m bench.load --levels $(LEVELS) --seconds $(SECONDS_EACH)

bench: install-test
	$(PY) -m bench.report --speed

lint: install-test
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -c "from importlinter.cli import lint_imports_command as run; run()"
	$(PY) manage.py makemigrations --check --dry-run
	CTX_HTTPS=true $(PY) manage.py check --deploy --fail-level WARNING
	$(PY) manage.py spectacular --validate --fail-on-warn --file /dev/null
	$(PY) -m djlint --lint --quiet $(TEMPLATES)
	$(PY) -m codespell_lib $(SOURCES) tests docs README.md CONTRIBUTING.md CHANGELOG.md

types: install-test
	$(PY) -m mypy $(SOURCES)

format: install-test
	$(PY) -m ruff check --fix --quiet .
	$(PY) -m ruff format .

LOCK := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-header --no-annotate pyproject.toml

lock:
	$(LOCK) --output-file requirements.lock
	$(LOCK) --constraint requirements.lock --extra test --output-file requirements-test.lock

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
