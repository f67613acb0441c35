# Everything here works in a fresh clone. `make demo` and `make test` install what they need, by package name, when it is missing.

SECONDS ?= 60

.PHONY: demo test sanitize fuzz bench check api format format-check

demo:
	@Scripts/demo

test:
	@Scripts/test

sanitize:
	@Scripts/sanitize thread address

fuzz:
	@Scripts/fuzz $(SECONDS)

bench:
	@Benchmarks/run

check:
	@Scripts/check

# Writes API/URLLoading.txt, the list of everything that is public.
api:
	@Scripts/api

format:
	swift format --in-place --recursive --parallel Package.swift Sources Tests

format-check:
	swift format lint --strict --recursive --parallel Package.swift Sources Tests
