# SPDX-License-Identifier: Apache-2.0
# A short front: CMake does the work (see CMakePresets.json).

.PHONY: help build demo test test-asan test-oracle bench lint format fuzz install clean

help:
	@echo 'make demo         build layac and answer the example of the README'
	@echo 'make test         build everything and run all tests'
	@echo 'make test-asan    the tests with AddressSanitizer and UndefinedBehaviorSanitizer'
	@echo 'make test-oracle  compare with independent implementations (Python, NumPy; needs a network once)'
	@echo 'make bench        measure speed'
	@echo 'make lint         clang-format, clang-tidy, shellcheck'
	@echo 'make format       apply clang-format'
	@echo 'make fuzz         run each fuzz target for FUZZ_SECONDS (20)'
	@echo 'make install      install to PREFIX (/usr/local), under DESTDIR where that is set'
	@echo 'make clean        remove build/'

build:
	@scripts/bootstrap
	cmake --preset release
	cmake --build --preset release

demo: build
	@scripts/demo

test: build
	ctest --preset release

test-asan:
	@scripts/bootstrap
	cmake --preset asan
	cmake --build --preset asan
	ctest --preset asan

test-oracle: build
	@scripts/bootstrap --oracle
	scripts/oracle

bench: build
	@scripts/bench

lint:
	@scripts/bootstrap --lint
	scripts/lint

format:
	@scripts/bootstrap --lint
	scripts/lint --fix

FUZZ_SECONDS ?= 20
fuzz:
	@scripts/bootstrap --fuzz
	scripts/fuzz $(FUZZ_SECONDS)

PREFIX ?= /usr/local
install: build
	cmake --install build/release --prefix '$(PREFIX)'

clean:
	rm -rf build
