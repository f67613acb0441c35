# All targets work in a fresh clone: they install the Debian or Ubuntu packages that they need.

SECONDS ?= 60
PREFIX ?= /usr/local
# The programs are linked statically with the toolchain's libraries, so they run without Swift.
STATIC = swift build -c release --static-swift-stdlib --scratch-path .build-static

.PHONY: help deb deb-check demo test docs sanitize fuzz bench scale combine crash-test history check api format format-check tool install uninstall

# The first target, so that a bare `make` changes nothing: shows what the targets do, from the comments that begin with `#:`.
help:
	@sed -n 's/^#: \([a-z-]*\) \(.*\)/  make \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 22

#: demo show what the library does, with servers on this machine
demo:
	@Scripts/demo

#: test install what the tests need, build, check and run all tests
test:
	@Scripts/test

#: docs write the documentation as a static site to .build/docs
docs:
	@Scripts/install-needs build
	@Scripts/docs

#: sanitize run the tests with the thread and the address sanitizer
sanitize:
	@Scripts/sanitize thread address

#: fuzz run each fuzz target for SECONDS (60)
fuzz:
	@Scripts/fuzz $(SECONDS)

#: bench compare speed and memory with other clients
bench:
	@Benchmarks/run

# Ten thousand tasks, two thousand hosts, slow host name lookups, slow disks, long queues. Fails if a row is not as expected.
#: scale run loads in great numbers: tasks, hosts, slow names, slow disks
scale:
	@Benchmarks/scale

# Compares loads, stream tasks and FTP loads with a model: all pairs of their properties' values, and the important triples. Runs once, or with
# SECONDS=N for that long with different seeds.
#: combine compare loads with a model, for SECONDS if given
combine:
	@Scripts/install-needs test
	@swift build --product urlsessiond
	@swift build --product CombinationProgram
	@.build/debug/CombinationProgram --pairs --triples $(if $(filter command environment,$(firstword $(origin SECONDS))),--seconds $(SECONDS))

#: check check rules of the sources and documents; needs only Python 3
check:
	@Scripts/check

#: crash-test kill the daemon and programs KILLS times (300) during transfers
crash-test:
	@Scripts/install-needs build
	@swift build --product urlsessiond
	@swift build --product TransferProgram
	@Scripts/crash-test

#: history run random histories for SECONDS (60), from SEED, of STEPS steps (150)
history:
	@Scripts/install-needs build
	@swift build --product urlsessiond
	@swift build --product urlsession
	@swift build --product HistoryProgram
	@.build/debug/HistoryProgram --seed $(or $(SEED),$$(date +%s)) --steps $(or $(STEPS),150) \
	    --seconds $(SECONDS)

# Writes API/URLLoading.txt, the list of public declarations, and API/apple-coverage.tsv, their coverage of Apple's API.
#: api write the public declarations to API/
api:
	@Scripts/api
	@Scripts/coverage

# Builds the command-line tool and the daemon of background sessions for installation. `install` builds them only if they do not exist, so after
# `make tool`, `sudo make install` compiles nothing as root.
#: tool build urlsession and urlsessiond, with the toolchain linked statically
tool:
	@Scripts/install-needs build
	$(STATIC) --product urlsession
	$(STATIC) --product urlsessiond
	@# A build without changes does not update the files' times, which `install` compares.
	@touch .build-static/release/urlsession .build-static/release/urlsessiond

.build-static/release/urlsession .build-static/release/urlsessiond:
	@$(MAKE) tool

# The manual page and the shell completions are generated from the tool's own help.
SHARE = $(DESTDIR)$(PREFIX)/share
MANUAL = $(SHARE)/man/man1/urlsession.1
DAEMON_MANUAL = $(SHARE)/man/man8/urlsessiond.8
BASH_COMPLETION = $(SHARE)/bash-completion/completions/urlsession
ZSH_COMPLETION = $(SHARE)/zsh/site-functions/_urlsession
FISH_COMPLETION = $(SHARE)/fish/vendor_completions.d/urlsession.fish
TOOL = .build-static/release/urlsession
DAEMON = .build-static/release/urlsessiond
# Keeps the names of functions, for crash reports, but not lines and variables. STRIP=: strips nothing.
STRIP = strip --strip-debug --remove-section=.swift_ast

#: install install the built programs below PREFIX (/usr/local)
install: $(TOOL) $(DAEMON)
	@for built in $(TOOL) $(DAEMON); do \
	    newer=$$(find Sources Package.swift -newer "$$built" -print -quit); [ -z "$$newer" ] || \
	    { echo "install: $$newer is newer than the built programs: run 'make tool' first" >&2; exit 1; }; \
	done
	install -d "$(DESTDIR)$(PREFIX)/bin" "$(DESTDIR)$(PREFIX)/libexec" "$(SHARE)/man/man1" "$(SHARE)/man/man8" "$(SHARE)/bash-completion/completions"
	install -d "$(SHARE)/zsh/site-functions" "$(SHARE)/fish/vendor_completions.d"
	install -m 755 $(TOOL) "$(DESTDIR)$(PREFIX)/bin/urlsession"
	install -m 755 $(DAEMON) "$(DESTDIR)$(PREFIX)/libexec/urlsessiond"
	$(STRIP) "$(DESTDIR)$(PREFIX)/bin/urlsession" "$(DESTDIR)$(PREFIX)/libexec/urlsessiond"
	Scripts/manual-page $(TOOL) > $(TOOL).1
	install -m 644 $(TOOL).1 "$(MANUAL)"
	install -m 644 docs/urlsessiond.8 "$(DAEMON_MANUAL)"
	$(TOOL) --generate-completion-script bash > "$(BASH_COMPLETION)"
	sed -i '1{/^#!/d}' "$(BASH_COMPLETION)"
	$(TOOL) --generate-completion-script zsh > "$(ZSH_COMPLETION)"
	$(TOOL) --generate-completion-script fish > "$(FISH_COMPLETION)"
	chmod 644 "$(BASH_COMPLETION)" "$(ZSH_COMPLETION)" "$(FISH_COMPLETION)"

#: uninstall remove what install installed
uninstall:
	rm -f "$(DESTDIR)$(PREFIX)/bin/urlsession" "$(DESTDIR)$(PREFIX)/libexec/urlsessiond" "$(MANUAL)" "$(DAEMON_MANUAL)" "$(BASH_COMPLETION)" "$(ZSH_COMPLETION)" "$(FISH_COMPLETION)"

#: deb make a Debian package in .build/deb
deb: $(TOOL) $(DAEMON)
	@Scripts/deb

#: deb-check install, use and remove the package in a clean chroot, of RELEASE if given; needs root
deb-check: deb
	@Scripts/deb-check $(if $(RELEASE),--release $(RELEASE))

#: format format the sources
format:
	swift format --in-place --recursive --parallel Package.swift Plugins Sources Tests Examples

#: format-check show what format would change
format-check:
	swift format lint --strict --recursive --parallel Package.swift Plugins Sources Tests Examples
