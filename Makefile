# `make` lists the tasks. `make run` and `make test` are all a new machine needs: Python 3.11+, make, and
# (for the fast record kernel) a C compiler.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
SEEDS ?= 2000

.DEFAULT_GOAL := help
.PHONY: help run test check format demo schemas proto codec bench kafka crash simulate chaos kafka-check referee interop connector bench-spark clean

help: ## list the tasks
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sort | sed -E 's/:.*## /\t/' | expand -t 18

KERNELS := $(wildcard src/ottla/protocol/_*.p[yx][xdi])

$(READY): pyproject.toml setup.py constraints.txt $(KERNELS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Ottla needs Python 3.11 or newer; set PYTHON=python3.11 (or newer)"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV) ..."
	@if command -v uv >/dev/null 2>&1; then \
		VIRTUAL_ENV=$(VENV) uv pip install -q -c constraints.txt -e '.[dev]'; \
	else \
		$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[dev]'; \
	fi
	@touch $@

run: $(READY) ## start a broker on 127.0.0.1:9092 with its data in ./data
	@exec $(BIN)/ottla serve

test: $(READY) check ## everything CI runs: lint, types, layers, all tests
	$(BIN)/python -m pytest -n 2 --dist loadgroup

check: $(READY) ## lint, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY) ## format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

demo: $(READY) ## the whole platform in one command: a broker, orders, two Spark pipelines, tables and a plot
	$(BIN)/python examples/pipelines/demo.py demo

schemas: $(READY) ## compare every message with Kafka's definitions: make schemas SCHEMAS=<folder of Kafka's JSON files>
	$(BIN)/python tools/compare_schemas.py $(SCHEMAS)

proto: $(READY) ## compile the .proto of the gRPC door
	$(BIN)/python -m tools.compile_proto

codec: $(READY) ## show the code of one codec: make codec API=produce VERSION=9
	$(BIN)/python tools/show_codec.py $(API) $(VERSION)

bench: $(READY) ## measure Ottla beside Apache Kafka; BENCH="--quick | --all | --only WORD | --rounds N | --help"
	$(BIN)/python -m bench $(BENCH)

kafka: $(READY) ## fetch Apache Kafka's jars (Java and Maven, or KAFKA_LIB=<folder of jars>) and rdkafka_performance
	$(BIN)/python -m tools.kafka fetch
	$(BIN)/python -m tools.rdkafka_performance

crash: $(READY) ## recover from many more simulated power losses than `make test` does
	OTTLA_CRASH_IMAGES=100000 $(BIN)/python -m pytest tests/crash -n 2

kafka-check: $(READY) ## have Apache Kafka read our files and start on our data (needs Java and Maven)
	$(BIN)/python -m tools.kafka check
	$(BIN)/python -m tools.kafka exchange
	$(BIN)/python -m tools.kafka cluster
	$(BIN)/python -m tools.kafka mixed

simulate: $(READY) ## elections and replication of simulated nodes, from many seeds, and planted mistakes; SEEDS=20000 for more
	$(BIN)/python -m tests.simulation.raft --seeds $(SEEDS)
	$(BIN)/python -m tests.simulation.raft.mutants $(SEEDS)
	$(BIN)/python -m tests.simulation.replication --seeds $(SEEDS)
	$(BIN)/python -m tests.simulation.replication --mutants --seeds $(SEEDS)

chaos: $(READY) ## kill, pause and cut off nodes of a cluster under load; CHAOS="--minutes 5 --scenario NAME --seed N | --help"
	$(BIN)/python -m tests.chaos $(CHAOS)
	$(BIN)/python -m pytest tests/cluster --heavy -n 0 -m heavy

referee: $(READY) ## run the interop and cluster tests against Apache Kafka, to prove what they expect (needs Java and Maven)
	$(BIN)/python -m pytest tests/interop tests/cluster -n 2 --dist loadgroup --referee

interop: $(READY) ## every client x every feature, on Ottla and Apache Kafka; INTEROP="--client kafka-python" for one
	$(BIN)/python -m tools.interop $(INTEROP)

connector: $(READY) ## the same Spark jobs by its Kafka connector and by ottla, on Ottla and Apache Kafka; CONNECTOR="--only WORD"
	$(BIN)/python -m tools.spark_connector compare $(CONNECTOR)

bench-spark: $(READY) ## measure ottla beside Spark's Kafka connector and Parquet; BENCH="--only WORD | --rows N | --help"
	$(BIN)/python -m bench.spark $(BENCH)

clean: ## remove the environment and everything built
	rm -rf $(VENV) build dist src/*.egg-info src/ottla/protocol/_*.c src/ottla/protocol/*.so
