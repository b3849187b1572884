# Two commands matter: `make demo` and `make test`. Each sets up what it needs and is quick the next time.

PYTHON ?= python3
BIN := .venv/bin
WRITE_PATH := backfill_assets_tests/engine backfill_assets_tests/warehouse backfill_assets_tests/pipelines/test_landing.py
export DAGSTER_DISABLE_TELEMETRY := 1

.DEFAULT_GOAL := help
.PHONY: recordings mutation test-spark examples example-pages edit-pairs histories faults faults-long help env s3-jars demo ui spark-server spark-server-stop audit test-connect wheel test stories test-all check bench lock bounds clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

env: ## Create .venv from the lock and fetch the Delta jars, if that is not done yet
	@$(PYTHON) scripts/doctor.py
	@$(PYTHON) scripts/setup_env.py
	@BACKFILL_JARS_DIR=.spark-jars $(BIN)/backfill setup

s3-jars: env ## Fetch the jars by which Spark reads and writes S3 (13 MB), if that is not done yet
	@BACKFILL_JARS_DIR=.spark-jars $(BIN)/backfill setup --s3

demo: export DAGSTER_HOME := $(CURDIR)
demo: env ## Land real input and fill the whole history of every model
	@$(BIN)/python -m backfill_assets.cli.verbs.demo

ui: export DAGSTER_HOME := $(CURDIR)
ui: env ## Open the Dagster UI on port 3000 of this machine, for this machine only
	$(BIN)/dagster dev -h 127.0.0.1 -p 3000

spark-server: env ## Start a Spark Connect server that all runs of this machine can share
	@$(BIN)/python -m backfill_assets.cli.verbs.spark_server start

spark-server-stop: ## Stop it
	@$(BIN)/python -m backfill_assets.cli.verbs.spark_server stop

audit: export DAGSTER_HOME := $(CURDIR)
audit: env ## Audit the published data; ends with 1 when a blocking audit fails
	@$(BIN)/backfill audit

wheel: env ## Build the wheel into dist
	@$(BIN)/hatchling build -t wheel

test: s3-jars ## Run the tests, but not the long ones, three at a time
	@$(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder

stories: env ## Run the long stories of plans and of the queue: about half an hour
	@$(BIN)/pytest -m "story and not slow"

mutation: env ## Fill the demo's data, and plant defects in every sample model: ten minutes
	@$(BIN)/pytest -m "" backfill_assets_tests/pipelines/test_planted_defects.py

examples: env ## Run every example that Spark documents of its functions through the binding: minutes
	@$(BIN)/pytest -m "" -s backfill_assets_tests/warehouse/test_spark_examples.py

example-pages: env ## Play every worked example, and show its output on its page: some six minutes
	@$(BIN)/python scripts/example_pages.py

edit-pairs: env ## Make 1,500 edits of SQL and hold every verdict on them against Spark: minutes
	@$(BIN)/pytest -m "" -s backfill_assets_tests/edit_pairs

HISTORIES ?= 100
histories: env ## Play HISTORIES=100 random histories of edits and verbs, each held against an oracle: half an hour
	@HISTORIES=$(HISTORIES) $(BIN)/pytest -m slow -s backfill_assets_tests/histories

test-spark: env ## Run the tests of engine and orchestration on Spark, also those that usually need none
	@BACKFILL_TEST_SPARK=local $(BIN)/pytest backfill_assets_tests/engine backfill_assets_tests/orchestration

recordings: env ## Play the first hour and the three nights, and keep what a person sees in docs/examples
	@for story in first-hour three-nights; do PATH="$(CURDIR)/$(BIN):$$PATH" BACKFILL_JARS_DIR=$(CURDIR)/.spark-jars \
		$(BIN)/python scripts/record.py docs/examples/$$story.story > docs/examples/$$story.txt || exit 1; done

test-connect: env ## Run every test of the write path on a Spark Connect server
	@BACKFILL_TEST_SPARK=connect $(BIN)/pytest $(WRITE_PATH)

test-all: s3-jars ## Run every test
	@$(BIN)/pytest -m ""

faults: env ## Kill, fill the disk, lock the state: some minutes; prints kills and violations
	@$(BIN)/python -m backfill_assets_tests.faults

KILLS ?= 200
FAULTS ?= .faults
faults-long: env ## The same until KILLS=200 processes were killed: hours; goes on where it stopped
	@$(BIN)/python -m backfill_assets_tests.faults --kills $(KILLS) --results $(FAULTS)

check: env ## Lint, format, types, import contracts, spelling
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/pyright --pythonpath $(BIN)/python
	@$(BIN)/lint-imports
	@$(BIN)/codespell

bench: env ## Measure, and write the numbers to .benchmarks
	@$(BIN)/python -m benchmarks

lock: ## Resolve the dependencies anew within the bounds of pyproject.toml
	@$(PYTHON) scripts/setup_env.py lock --upgrade

bounds: ## Resolve the lowest and the highest versions that pyproject.toml allows; installs nothing
	@$(PYTHON) scripts/setup_env.py bounds

clean: ## Remove the environment, the jars and the caches, but no data
	rm -rf .venv .tools .spark-jars .spark-jars.partial
	rm -rf .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
