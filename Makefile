# Everything here works in a fresh clone. `make demo` and `make test` install what they need, by package name, when it is missing.

SECONDS ?= 60
PREFIX ?= /usr/local
# The tool needs no Swift where it runs: the toolchain's libraries are in it.
STATIC = swift build -c release --static-swift-stdlib --scratch-path .build-static

.PHONY: deb deb-check demo test docs sanitize fuzz bench scale combine crash-test history check api format format-check tool install uninstall

demo:
	@Scripts/demo

test:
	@Scripts/test

# The documentation as a static site in .build/docs, by the toolchain's own DocC.
docs:
	@Scripts/install-needs build
	@Scripts/docs

sanitize:
	@Scripts/sanitize thread address

fuzz:
	@Scripts/fuzz $(SECONDS)

bench:
	@Benchmarks/run

# Ten thousand tasks, two thousand hosts, slow names, slow disks, long lines: ends with an error where anything is not as it should be.
scale:
	@Benchmarks/scale

# Every pair of what a load, a stream task or FTP may be, and the triples that matter, held against a model: all once, or with SECONDS=N seed
# after seed for so long.
combine:
	@Scripts/install-needs test
	@swift build --product urlsessiond
	@swift build --product CombinationProgram
	@.build/debug/CombinationProgram --pairs --triples $(if $(filter command environment,$(firstword $(origin SECONDS))),--seconds $(SECONDS))

check:
	@Scripts/check

# Kills the daemon and programs with background transfers at random moments: KILLS=300.
crash-test:
	@Scripts/install-needs build
	@swift build --product urlsessiond
	@swift build --product TransferProgram
	@Scripts/crash-test

# One history of requests, logins, deploys and kills after another, for SECONDS: SEED is the first one, STEPS the length of each.
history:
	@Scripts/install-needs build
	@swift build --product urlsessiond
	@swift build --product urlsession
	@swift build --product HistoryProgram
	@.build/debug/HistoryProgram --seed $(or $(SEED),$$(date +%s)) --steps $(or $(STEPS),150) \
	    --seconds $(SECONDS)

# Writes API/URLLoading.txt, the list of everything that is public, and API/apple-coverage.tsv, how much of Apple's API that is.
api:
	@Scripts/api
	@Scripts/coverage

# The command-line tool and the daemon of background sessions, as they are installed. `install` builds them only if `tool` did not, so that
# `sudo make install` compiles nothing as root.
tool:
	@Scripts/install-needs build
	$(STATIC) --product urlsession
	$(STATIC) --product urlsessiond
	@# What was built is up to date, even where nothing had to be: `install` compares the times.
	@touch .build-static/release/urlsession .build-static/release/urlsessiond

.build-static/release/urlsession .build-static/release/urlsessiond:
	@$(MAKE) tool

# The manual page and the shells' completions are what the tool says of itself.
SHARE = $(DESTDIR)$(PREFIX)/share
MANUAL = $(SHARE)/man/man1/urlsession.1
DAEMON_MANUAL = $(SHARE)/man/man8/urlsessiond.8
BASH_COMPLETION = $(SHARE)/bash-completion/completions/urlsession
ZSH_COMPLETION = $(SHARE)/zsh/site-functions/_urlsession
FISH_COMPLETION = $(SHARE)/fish/vendor_completions.d/urlsession.fish
TOOL = .build-static/release/urlsession
DAEMON = .build-static/release/urlsessiond
# The names of functions stay, for what a crash prints; lines and variables do not. STRIP=: leaves all as it is.
STRIP = strip --strip-debug --remove-section=.swift_ast

install: $(TOOL) $(DAEMON)
	@for built in $(TOOL) $(DAEMON); do \
	    newer=$$(find Sources Package.swift -newer "$$built" -print -quit); [ -z "$$newer" ] || \
	    { echo "install: $$newer is newer than the tool that was built: 'make tool' first" >&2; exit 1; }; \
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

uninstall:
	rm -f "$(DESTDIR)$(PREFIX)/bin/urlsession" "$(DESTDIR)$(PREFIX)/libexec/urlsessiond" "$(MANUAL)" "$(DAEMON_MANUAL)" "$(BASH_COMPLETION)" "$(ZSH_COMPLETION)" "$(FISH_COMPLETION)"

# A Debian package in .build/deb, and the same installed, used and removed in a clean chroot, which takes debootstrap, lintian and root.
deb: $(TOOL) $(DAEMON)
	@Scripts/deb

deb-check: deb
	@Scripts/deb-check

format:
	swift format --in-place --recursive --parallel Package.swift Plugins Sources Tests Examples

format-check:
	swift format lint --strict --recursive --parallel Package.swift Plugins Sources Tests Examples
