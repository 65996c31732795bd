# The commands of this project. `make demo` and `make test` are the two to know; both fetch what they lack.

CARGO ?= cargo
CC ?= cc
JOBS ?= 2

# What is built names no folder of the machine on which it is built, and is the same wherever that was.
export RUSTFLAGS := $(strip $(RUSTFLAGS) --remap-path-prefix=$(or $(CARGO_HOME),$(HOME)/.cargo)=/cargo --remap-path-prefix=$(CURDIR)=/margay)
export CFLAGS_x86_64_unknown_linux_gnu := -ffile-prefix-map=$(or $(CARGO_HOME),$(HOME)/.cargo)=/cargo

.PHONY: all build setup demo test lint docs sessions dist wheel packages-test unit command examples companions clients races clients-python clients-triton clients-cutile clients-warp clients-tinygrad clients-pycuda clients-cuda-python clients-jax clients-nccl clients-rust clients-ggml clients-samples clients-full build-systems ci-recipes bench bench-native header clean

all: build

# The library as programs look for it: a directory for LD_LIBRARY_PATH, and a file for LD_PRELOAD.
build:
	$(CARGO) build --release
	@mkdir -p build/lib
	@ln -sf libcuda.so target/release/libcuda.so.1
	@ln -sf ../../target/release/libcuda.so build/lib/libcuda.so.1
	@ln -sf libcuda.so.1 build/lib/libcuda.so
	CC="$(CC)" companions/build target/release
	@CC="$(CC)" CARGO="$(CARGO)" jit/build target/release
	@if [ -e target/release/libmargay-jit.so ]; then ln -sf ../../target/release/libmargay-jit.so build/lib/libmargay-jit.so; fi
	@ln -sf ../../target/release/libnvidia-ml.so.1 build/lib/libnvidia-ml.so.1
	@ln -sfn ../../target/release/companions build/lib/companions

setup:
	scripts/setup

# A program that nvcc compiled and a C program linked with -lcuda, on the CPU.
demo: setup build
	CC="$(CC)" scripts/demo

# Every test there is.
test: setup
	$(MAKE) lint
	$(MAKE) build
# Programs first: the tests build the library again, with what tests need, in the same place.
	$(MAKE) examples companions clients command races
	$(MAKE) sessions packages-test build-systems ci-recipes
	$(MAKE) unit

lint:
	$(CARGO) fmt --all --check
	$(CARGO) fmt --manifest-path jit/Cargo.toml --check
	$(CARGO) clippy --release --workspace --all-targets -- -D warnings
	python3 tests/ptx/reference.py --check
	scripts/import-circles
	scripts/check-links
	scripts/variables --check

# The pages as a book, in build/docs; mdBook is compiled the first time.
docs:
	scripts/docs

# The shell sessions that the README and the pages show.
sessions: setup build
	scripts/sessions

# What is published, in build/dist: a tarball, a Debian package and debug symbols; a wheel for pip.
dist: setup build
	CC="$(CC)" CARGO="$(CARGO)" packaging/dist

wheel: setup build
	CC="$(CC)" CARGO="$(CARGO)" packaging/wheel

# Makes all of them twice, compares, installs each and runs programs there.
packages-test: setup build
	CC="$(CC)" CARGO="$(CARGO)" packaging/test

unit:
	$(CARGO) test --release --workspace
	@CC="$(CC)" CARGO="$(CARGO)" jit/test target/release

# The command `margay`: what it says of programs that work and of programs that do not.
command: setup build
	CC="$(CC)" tests/command/run

# Of the checkers: programs with and without mistakes, a model of PTX's memory model, and the programs of clients/cuda.
races: setup build
	CC="$(CC)" tests/check/run
	tests/seeds/run
	tests/numbers/run
	CC="$(CC)" tests/check/findings.py
	tests/check/memory/run
	tests/check/sites/run
	tests/check/hosts/run
	tests/litmus/run
	clients/cuda/run --check memory,init,sync,race --runtimes static13 --loadings LD_LIBRARY_PATH --jobs $(JOBS)

# C programs over the driver API, against NVIDIA's header and against ours.
examples: setup build
	CC="$(CC)" c-examples/run

# The libraries that make Python's clients keep PTX, with ours in the place of NVIDIA's behind them; NVML and nvidia-smi.
companions: build
	CC="$(CC)" companions/tests/run

# CUDA C++ programs by an unmodified nvcc, with three runtimes, in two ways of loading; and programs of Python's clients, of those
# whose packages are not larger than a few hundred megabytes.
clients: setup build
	clients/cuda/run --jobs $(JOBS)
	clients/python/run sample

# Programs of Numba, CuPy and NVML's tools, from the Python package index (about 340 MB to fetch the first time).
clients-python: build
	clients/python/run

# Programs of other clients in Python, each with an environment of its own (JAX's takes 5 GB), and samples of their own tests.
clients-triton clients-cutile clients-warp clients-tinygrad clients-cuda-python clients-jax clients-nccl: clients-%: build
	clients/python/run $* --suites

# PyCUDA is built from its sources, and starts nvcc.
clients-pycuda: setup build
	clients/python/run pycuda --suites

# Everything, with the whole of the clients' own tests: hours.
clients-full: clients
	clients/python/run all --suites --full --libraries

# Programs of clients in Rust, and their crates' own tests.
clients-rust: setup build
	clients/rust/run --suites

# ggml's CUDA backend against its CPU backend, operation by operation; compiling it before is long.
clients-ggml: setup build
	clients/ggml/run --jobs $(JOBS)

# NVIDIA's CUDA samples, those that do not draw.
clients-samples: setup build
	clients/samples/run --jobs $(JOBS)

# Example projects of CMake, Meson and Cargo, whose tests run under Margay.
build-systems: setup build
	clients/build-systems/run

# The recipes for continuous integration: action.yml and what is in packaging/ci.
ci-recipes: setup build
	packaging/ci/test

# Ratios to native code, memcpy and nothing: see the table's last column for what is aimed at.
bench: build
	CC="$(CC)" scripts/bench

# CUDA C as people write it, beside vectorised C for the same CPU. `scripts/bench-native --only NAME --threads 2 --quick`.
bench-native: setup build
	scripts/bench-native

# The build makes the header from src/api; this copies it to include/cuda.h, where a test compares the two.
header:
	UPDATE_HEADER=1 $(CARGO) test --release --lib the_committed_header_is_the_generated_one

clean:
	$(CARGO) clean
	rm -rf build
