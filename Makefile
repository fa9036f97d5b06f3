# Every task of the project, by name. `make help` lists them. Needs Rust >= 1.95, a C compiler, for
# tests a C++ compiler, and Python >= 3.10; nothing else unless a line says so.

PYTHON ?= python3
CARGO ?= cargo
# Seconds that `make fuzz` spends on each target.
FUZZ_SECONDS ?= 60
# Where `make peers` installs other engines, and `make bench-peers` looks for them.
PEERS_DIR ?= .peers
# A copy of cabinetry's git repository, whose head `make compat` tests too; skipped where there is
# none.
CABINETRY_HEAD ?=
# Published likelihoods, with reference numbers where there is a cases.json; what needs them says so
# and skips where they are absent. `make data` writes into `data` unless another folder is named.
DATA_DIR ?= $(or $(NEXTSTAT_DATA),$(wildcard ../shared/data),data)
FETCHED_DATA_DIR = $(if $(filter file,$(origin DATA_DIR)),data,$(DATA_DIR))
# The reference models of torchless; the tests that need them are ignored where they are absent.
TORCHLESS_DATA ?= ../shared/torchless
# Tests run in folders of their own, so they get absolute paths.
export NEXTSTAT_DATA := $(abspath $(DATA_DIR))
override TORCHLESS_DATA := $(abspath $(TORCHLESS_DATA))
export TORCHLESS_DATA
TARGET_DIR = $(or $(CARGO_TARGET_DIR),target)
NEXTSTAT = $(TARGET_DIR)/release/nextstat

# With `make --jobs`, cargo has as many jobs of its own as without.
unexport MAKEFLAGS

.DEFAULT_GOAL := help
# The Python package is built into a wheel and installed here, from nothing, before it is tested.
VENV ?= .venv
EXTRAS ?= test,plot,progress,dask,xmlio
TEST_EXTRAS ?= $(EXTRAS),jax
# A Python that may have PyTorch already (Debian: python3-torch and python3-venv): from the package
# index it would be 5.4 GB.
TORCH_PYTHON ?= /usr/bin/python3
# HEPData's own validator, whose licence is the GPL: a program beside the tests and no dependency.
HEPDATA_VENV ?= .venv-hepdata
HEPDATA_VALIDATE ?= $(abspath $(HEPDATA_VENV))/bin/hepdata-validate

# Options of scripts/prose.py in `make check`, such as `--only docs`.
PROSE ?=

.PHONY: help run build c-library py test test-rust test-python test-torchless-py test-torch test-cluster bench-python check format bench bench-scaling bench-peers bench-gpu bench-transformers families mistakes peers validate cli-page json-page docs figures compat compat-gradients ptx kernels-check kernels-sanitize kernels-ptx kernels-opencl kernels-mutate kernels-fused test-arm torchless-sanitize fuzz web web-report web-app web-packages web-serve test-web clean check-rust check-text check-python build-tests

help: ## list the tasks
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## fit our example workspace and show the result
	$(CARGO) run --release --locked --quiet --package ns-cli -- fit examples/simple.json

build: ## build the `nextstat` command, optimised
	$(CARGO) build --release --locked --package ns-cli

# Where `make c-library` installs.
PREFIX ?= dist/c

c-library: ## build torchless for C and C++, optimised, and install header, libraries and pkg-config file into PREFIX
	$(CARGO) build --release --locked --package torchless-c
	sh bindings/torchless-c/install.sh $(TARGET_DIR)/release $(PREFIX) "$$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)"

py: ## build the Python package and install it into .venv
	$(PYTHON) scripts/test_wheel.py $(TARGET_DIR)/wheels --build --venv $(VENV) --extras $(EXTRAS) --no-tests

test: test-rust test-python test-torchless-py test-torch test-web ## run all tests: Rust's, those of the Python packages from their wheels in clean environments, and those of the report page in a browser

# Tests that need published likelihoods with reference numbers, or the reference models of
# torchless, are ignored unless these are there; then absent ones are failures. What takes many
# minutes (`many_models`), what needs a GPU (`hardware::`), ONNX's own tests of its operators
# (`node_tests::`) and templates of a script (`templates_of_a_file`) stay ignored.
HAS_DATA = $(wildcard $(DATA_DIR)/cases.json)
HAS_TORCHLESS_DATA = $(wildcard $(TORCHLESS_DATA))
WITH_DATA = --include-ignored --skip many_models --skip hardware:: --skip node_tests:: --skip templates_of_a_file $(if $(HAS_LATEX),,--skip pdflatex_)
# LaTeX with the packages that tables need.
HAS_LATEX = $(and $(shell command -v pdflatex),$(shell kpsewhich booktabs.sty 2>/dev/null),$(shell kpsewhich graphicx.sty 2>/dev/null),$(shell kpsewhich siunitx.sty 2>/dev/null))
build-tests:
	$(CARGO) test --workspace --locked --no-run

test-rust: ## run the Rust tests, a short fuzz run with a fixed number of inputs included
	$(CARGO) test --workspace --locked --no-fail-fast $(if $(and $(HAS_DATA),$(HAS_TORCHLESS_DATA)),-- $(WITH_DATA))
ifeq (,$(and $(HAS_DATA),$(HAS_TORCHLESS_DATA)))
	$(if $(HAS_DATA),$(CARGO) test --workspace --exclude torchless --locked --no-fail-fast -- $(WITH_DATA),@echo "note: tests that need the published likelihoods are ignored: there is no $(DATA_DIR)/cases.json")
	$(if $(HAS_TORCHLESS_DATA),$(CARGO) test --package torchless --locked -- $(WITH_DATA),@echo "note: tests that need the reference models of torchless are ignored: there is no $(TORCHLESS_DATA)")
endif
ifeq (,$(HAS_LATEX))
	@echo "note: tests that compile tables with LaTeX are ignored: there is no pdflatex with booktabs, graphicx and siunitx"
else ifeq (,$(HAS_DATA))
	$(CARGO) test --package nextstat --test nextstat --locked -- --ignored pdflatex_
endif

test-python: ## build the wheel, install it into a clean .venv, and run the Python tests there
	@[ -x $(HEPDATA_VALIDATE) ] || { $(PYTHON) -m venv $(HEPDATA_VENV) && $(HEPDATA_VENV)/bin/python -m pip install --quiet --disable-pip-version-check hepdata-validator==0.3.6; } || echo "warning: HEPData's validator could not be installed; the tests that need it are skipped"
	HEPDATA_VALIDATE=$$([ -x $(HEPDATA_VALIDATE) ] && echo $(HEPDATA_VALIDATE)) $(PYTHON) scripts/test_wheel.py $(TARGET_DIR)/wheels --build --venv $(VENV) --extras $(TEST_EXTRAS)

# An environment of its own: neither package needs the other. Tests of both run if there is a wheel
# of nextstat, which `make test-python` builds.
TORCHLESS_VENV ?= .venv-torchless
test-torchless-py: ## build the wheel of torchless, install it into a clean environment, and run its tests there
	$(PYTHON) scripts/test_wheel.py $(TARGET_DIR)/wheels --build --package bindings/torchless-py --beside bindings/ns-py --venv $(TORCHLESS_VENV)

# After the wheel is built: `make -j` must not look for it earlier.
test-torch: test-python ## run the tests of gradients with the PyTorch of TORCH_PYTHON, and that wheel; skipped where it has none
	@if $(TORCH_PYTHON) -c "import torch, ensurepip" >/dev/null 2>&1; \
	then $(TORCH_PYTHON) scripts/test_wheel.py $(TARGET_DIR)/wheels --system-packages --venv $(VENV)-torch --tests bindings/ns-py/tests/differentiable; \
	else echo "warning: skipped: the tests that need PyTorch, which $(TORCH_PYTHON) does not have (Debian: python3-torch, python3-venv)"; fi

# Slurm is Debian's, and needs root: see bindings/ns-py/cluster_tests/test_slurm.py.
CLUSTER_VENV ?= .venv-cluster
test-cluster: ## run shards and parts with Dask, Parsl, loky, Ray, Snakemake and law from PyPI (0.6 GB), and on a Slurm of one node where there is one; workers are killed (five minutes)
	$(PYTHON) scripts/test_wheel.py $(TARGET_DIR)/wheels --build --venv $(CLUSTER_VENV) --extras test,dask --requirements bindings/ns-py/cluster_tests/requirements.txt --tests bindings/ns-py/cluster_tests

# Some tests show documents of the wheel's command, so `make test` builds the wheel first.
WEB_VENV ?= .venv-web
ifneq (,$(filter test,$(MAKECMDGOALS)))
test-web: test-python
endif
test-web: ## run the tests of the report page: in Chromium, and with Node; skipped where these are absent
	@sh web/tests/run.sh $(WEB_VENV) $(VENV)/bin/nextstat

web: web-report web-app ## build what a browser runs: the report page's script and style, and the app in web/dist (needs Node >= 20, npm, and Rust for wasm32)

# Into crates/ns-report/assets, which are committed.
web-report: web-packages
	cd web && npm run build

web-app: web-packages
	$(PYTHON) scripts/wasm.py
	cd web && npm run build-app

web-packages:
	cd web && npm ci --no-audit --no-fund

WEB_PORT ?= 8000
web-serve: ## serve the app of web/dist on this machine alone, at http://127.0.0.1:8000
	@test -e web/dist/index.html || { echo "error: there is no web/dist/index.html" >&2; echo "hint: \`make web\` builds it" >&2; exit 2; }
	$(PYTHON) -m http.server --bind 127.0.0.1 --directory web/dist $(WEB_PORT)

check: check-rust check-text check-python ## formatting, lints, words and widths, documentation, licences, and known vulnerabilities where cargo-deny is installed (needs the network)

check-rust:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- --deny warnings
	RUSTDOCFLAGS="--deny warnings" $(CARGO) doc --workspace --no-deps --locked --quiet
	@if $(CARGO) deny --version >/dev/null 2>&1; then $(CARGO) deny --locked check advisories licenses bans sources; \
	else $(PYTHON) scripts/licences.py; fi

check-text:
	$(PYTHON) scripts/prose_test.py
	$(PYTHON) scripts/prose.py $(PROSE)
	$(PYTHON) scripts/torchless_mutate.py --check
	$(PYTHON) scripts/torchless_sanitize.py --check
	@if [ -d web/node_modules ] && command -v npm >/dev/null; then cd web && npm run --silent check; \
	else echo "warning: skipped: whether crates/ns-report/assets is what web/ gives (cd web && npm ci installs what this needs)"; fi

check-python:
	@if $(VENV)/bin/ruff --version >/dev/null 2>&1; then $(VENV)/bin/ruff check bindings/ns-py bindings/torchless-py scripts benches compat docs/assets web; \
	else echo "warning: skipped: ruff, which $(VENV) does not have (make test-python installs it)"; fi

format: ## format the Rust sources
	$(CARGO) fmt --all

bench: ## measure evaluations and fits of the named cases
	$(CARGO) run --release --locked --quiet --package ns-benches -- cases --data $(DATA_DIR)

bench-python: build py ## measure the Python package in .venv against the command of the same build
	$(CARGO) build --release --locked --package ns-benches
	$(VENV)/bin/python benches/python.py --data $(DATA_DIR) --bin $(TARGET_DIR)/release

bench-scaling: ## measure time and memory against model size; writes docs/benchmarks.md and its plot
	$(CARGO) run --release --locked --quiet --package ns-benches -- scaling --write docs

peers: ## install the engines that we compare with, each in its own environment (ROOT needs CPython 3.11)
	PYTHON=$(PYTHON) PEERS_DIR=$(PEERS_DIR) sh benches/install_peers.sh

bench-peers: build ## compare fits and procedures with the peers; appends to benches/RECORD.md (half an hour)
	$(CARGO) build --release --locked --package ns-benches
	$(PYTHON) benches/peers.py --peers $(PEERS_DIR) --data $(DATA_DIR) --bin $(TARGET_DIR)/release
	$(PYTHON) benches/procedures.py --peers $(PEERS_DIR) --data $(DATA_DIR) --bin $(TARGET_DIR)/release

# `CANDLE=1` builds candle, too: a project of its own with its own dependencies, for this machine's
# processor (minutes, 0.5 GB).
CANDLE_TARGET = $(abspath $(TARGET_DIR))/candle

bench-transformers: ## compare torchless with llama.cpp, PyTorch and, with CANDLE=1, candle; appends to benches/RECORD.md (half an hour, 3 GB)
	$(CARGO) build --release --locked --package torchless
	@if [ -n "$(CANDLE)" ]; then cd benches/candle && RUSTFLAGS="-C target-cpu=native" CARGO_TARGET_DIR=$(CANDLE_TARGET) $(CARGO) build --release --locked; fi
	$(PYTHON) benches/transformers.py --python $(PEERS_DIR)/transformers/bin/python --bin $(TARGET_DIR)/release $(if $(CANDLE),--candle $(CANDLE_TARGET)/release/candle-peer)

bench-gpu: ## try and measure an NVIDIA GPU; appends to benches/RECORD.md (ten minutes)
	$(PYTHON) benches/gpu.py

validate: build ## compare every published case with its reference; writes docs/validation.md
	$(PYTHON) scripts/validate.py --nextstat $(NEXTSTAT) --data $(DATA_DIR) --write docs/validation.md
	$(PYTHON) scripts/prose.py --fix-width --only docs/validation.md

cli-page: build ## write docs/cli.md from the help texts
	$(PYTHON) scripts/cli_page.py --nextstat $(NEXTSTAT) --write docs/cli.md

json-page: ## write docs/reference/json.md from the JSON schemas
	$(PYTHON) scripts/json_page.py --write docs/reference/json.md

# What `make docs` is built with; the notebooks on the site are executed where this has the package.
# The sources alone would hide it: they lack the extension module.
DOCS_VENV ?= .venv-docs
HAS_PACKAGE = $(wildcard $(DOCS_VENV)/lib/python3*/site-packages/nextstat)

docs: ## build the documentation site into site/, strictly; nothing is loaded from other hosts
	@test -x $(DOCS_VENV)/bin/mkdocs || { $(PYTHON) -m venv $(DOCS_VENV) && $(DOCS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r docs/requirements.txt; }
	NO_MKDOCS_2_WARNING=1 $(if $(HAS_PACKAGE),,PYTHONPATH=$(CURDIR)/bindings/ns-py/python) $(DOCS_VENV)/bin/python -m mkdocs build --strict

figures: ## draw the figures of the documentation again (wants the package with its extra `plot` in .venv)
	$(VENV)/bin/python docs/assets/figures.py

compat: ## compare nextstat.pyhf with pyhf, cabinetry, SModelS, spey and abcd-pyhf, installed with pip; writes docs/compatibility.md (takes minutes)
	$(CARGO) build --release --locked --package ns-py
	cp $(TARGET_DIR)/release/lib_nextstat.so bindings/ns-py/python/nextstat/_nextstat.abi3.so
	$(PYTHON) compat/run.py --work $(PEERS_DIR)/compat --data $(DATA_DIR)/workspaces $(if $(CABINETRY_HEAD),--cabinetry-head $(CABINETRY_HEAD)) --write docs/compatibility.md

compat-gradients: ## compare gradients with pyhf's JAX backend differentiated by JAX, both installed with pip, within 1e-5 (takes minutes)
	$(PYTHON) scripts/test_wheel.py $(TARGET_DIR)/wheels --build --venv $(PEERS_DIR)/compat-gradients --extras jax --no-tests
	$(PEERS_DIR)/compat-gradients/bin/python -m pip install --quiet --disable-pip-version-check pyhf==0.7.6
	$(PEERS_DIR)/compat-gradients/bin/python compat/gradients.py

ptx: ## compile the kernels to PTX where their sources changed (pinned compiler from PyPI; no GPU, no CUDA toolkit)
	$(PYTHON) scripts/ptx.py
	$(PYTHON) scripts/ptx.py --ptxas sm_90

kernels-check: ## read the kernels as Metal would (needs clang), and the Metal launcher's types (needs Rust's Apple target)
	$(PYTHON) scripts/kernels_check.py
	@if rustup target list --installed 2>/dev/null | grep -q aarch64-apple-darwin; \
	then $(CARGO) check --locked --package ns-device --features metal --target aarch64-apple-darwin; \
	else echo "warning: skipped: the target aarch64-apple-darwin is not installed"; fi

kernels-sanitize: ## replay the kernels of the tests under g++'s sanitizers (three minutes)
	$(PYTHON) scripts/kernels_sanitize.py

kernels-ptx: ## execute the PTX that is shipped on launches of the tests, without a GPU (minutes)
	$(PYTHON) scripts/kernels_ptx.py

OPENCL_VENV ?= .venv-kernels/opencl
# `--self-tests`: these only, as in .ci/run.
OPENCL_FLAGS ?=
kernels-opencl: ## run the tests of the kernels on every OpenCL driver of this machine, on Intel's for processors from PyPI (1 GB), and recorded launches under Oclgrind (many minutes)
	$(PYTHON) scripts/kernels_opencl.py --venv $(OPENCL_VENV) $(OPENCL_FLAGS)

kernels-mutate: ## plant bugs in copies of the kernels and show that the tests catch them (half an hour)
	$(PYTHON) scripts/kernels_mutate.py

kernels-fused: ## compare the emulated kernels with the CPU with products and sums fused, as NVIDIA GPUs compute them (needs a processor with FMA)
	NEXTSTAT_KERNEL_FLAGS="-ffp-contract=fast -mfma" $(CARGO) test --locked --package ns-compute --test ns_compute devices::

test-arm: ## run the tests of torchless and of fits on aarch64, under emulation, with and without `dotprod` (needs QEMU, a cross compiler and Rust's target; an hour)
	$(PYTHON) scripts/test_arm.py

mistakes: ## make the classic mistakes of inference, of its fast mode and of encoders in a copy of torchless and show that its tests catch them (five minutes)
	$(PYTHON) scripts/torchless_mutate.py

torchless-sanitize: ## share models of torchless among sixteen threads under ThreadSanitizer, and plant races that it has to see (needs rust-src; takes a core for a quarter of an hour)
	$(PYTHON) scripts/torchless_sanitize.py

families: ## compare torchless with transformers and llama.cpp on random models of every family (after `make peers`)
	$(CARGO) build --release --locked --package torchless
	$(PEERS_DIR)/transformers/bin/python scripts/torchless_families.py --bin $(TARGET_DIR)/release/torchless

fuzz: ## fuzz each target for FUZZ_SECONDS seconds (needs nightly Rust and cargo-fuzz)
	sh scripts/fuzz.sh $(FUZZ_SECONDS)

clean: ## remove what was built
	$(CARGO) clean

.PHONY: dist dist-test data

# Where Rust's standard libraries for the targets cannot be fetched: `DIST_FLAGS=--build-std`.
DIST_FLAGS ?=

dist: ## build the Linux wheels and the source distributions of the Python packages, and the static command into dist/ (needs Rust's targets; tools from PyPI)
	$(PYTHON) scripts/dist.py $(DIST_FLAGS)

dist-test: ## test what `make dist` built in bare Debian roots without Rust, on aarch64 under QEMU, and in an empty root
	$(PYTHON) scripts/dist_test.py

# A mirror with the layout of DATA_DIR, in place of the public records.
DATA_MIRROR ?=

data: ## fetch the published likelihoods into `data`, or the DATA_DIR that is given, by DOI or URL, and check them
	$(PYTHON) scripts/fetch_data.py $(FETCHED_DATA_DIR) $(if $(DATA_MIRROR),--base-url $(DATA_MIRROR))
