# The two commands of the README are `make report` and `make test`; `make help` lists the rest.
# Written for GNU make 3.81 (macOS) and any POSIX shell.

VENV ?= .venv
BIN = $(VENV)/bin
STAMP = $(VENV)/.fpt-installed

# The first of these that runs and is new enough; name another with `make PYTHON=...`.
NEW_ENOUGH = -c 'import sys; sys.exit(sys.version_info < (3, 11))'
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	if $$p $(NEW_ENOUGH) >/dev/null 2>&1; then echo $$p; break; fi; done)

# What installs. To use another installer: make report INSTALL="uv pip install --python .venv/bin/python"
INSTALL ?= $(BIN)/python -m pip install

# Jupyter Book's own command builds one page after the other; what it would run, told to build several at a time. Four
# keep two cores busy: a page waits for its kernel, and a few are long.
PAGES ?= 4
# SITE is the address at which the book will stand, for the preview images of its pages.
SITE ?=
# A page is executed again when it, or what it is computed from, has changed (book/_ext/outdated.py). After a warning
# every page is, so that the next build warns again.
# What Sphinx remembers of a build lies beside the book, so that none of it is put on the web.
BOOK = $(BIN)/jupyter-book config sphinx . --config $(CURDIR)/_config.yml --toc $(CURDIR)/book/_toc.yml >/dev/null && \
  PYTHONPATH=book/_ext $(BIN)/sphinx-build -b html -j $(PAGES) -W --keep-going -q $(if $(SITE),-D ogp_site_url=$(SITE)) -d
# Executed notebooks lie beside the pages, which link them; building the book does not read them.
SHIP = find -L runs -path '*/published/*/notebook.ipynb' | tar cf - -T - | tar xf - -C
CHECKED = .test

# Two for the tests and two for the book, since many wait for other processes. The cells of a notebook stay together
# (loadfile), in the order given: by number of tests, files with few long ones would come last.
PROCESSES ?= 2

# One thing at a time, also under `make -j`: sweeps and book share the cores by themselves.
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help report study book compare site pdf page picture guards links test lint unit test-book built-book read-book \
  test-all install clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "make %-10s %s\n", $$1, $$2}' Makefile

report: study book compare  ## train the laptop study on this machine, build the book, show your numbers

study: $(STAMP)
	$(BIN)/fpt run laptop

book: $(STAMP)  ## build the book from the published results
	$(BOOK) book/_build/doctrees . book/_build/html || { rm -rf book/_build/doctrees; exit 1; }
	$(SHIP) book/_build/html

page: $(STAMP)  ## one page alone: make page PAGE=listops; links to others lead nowhere
	$(if $(PAGE),,$(error name the page: make page PAGE=listops))mkdir -p $(CHECKED)/page
	printf 'format: jb-book\nroot: book/%s\nchapters: [file: book/bibliography]\n' $(PAGE) >$(CHECKED)/page/_toc.yml
	$(BOOK:-W=) $(CHECKED)/page/doctrees -D external_toc_path=$(CHECKED)/page/_toc.yml \
	  -D suppress_warnings=myst.xref_missing . $(CHECKED)/page/html
	@echo "$(CHECKED)/page/html/book/$(PAGE).html"

site: book  ## the book, and an archive of it in dist/
	mkdir -p dist
	$(BIN)/python -m zipfile -c dist/fpt-book-$$($(BIN)/python -c 'import fpt; print(fpt.__version__)').zip book/_build/html

# What is read on paper: the answer, the advice and the map. Any Chrome prints them.
CHROMIUM ?= $(shell for c in chromium chromium-browser google-chrome google-chrome-stable; do \
	command -v $$c && break; done)
PRINTED = freeze advice map

pdf: book  ## the opening page, the advice and the map as PDF in dist/ (needs Chromium or Chrome)
	@test -n "$(CHROMIUM)" || { \
	  echo "make pdf prints with Chromium or Chrome, and found neither. Install one (Debian: apt-get install chromium),"; \
	  echo "or name it: make pdf CHROMIUM=/path/to/chrome"; exit 1; }
	mkdir -p dist
	for page in $(PRINTED); do \
	  "$(CHROMIUM)" --headless --no-sandbox --disable-gpu --no-pdf-header-footer --virtual-time-budget=10000 \
	    --print-to-pdf="$(CURDIR)/dist/$$page.pdf" "file://$(CURDIR)/book/_build/html/book/$$page.html" || exit 1; \
	done

picture: $(STAMP)  ## draw the picture of README.md anew from the published results
	$(BIN)/python -m fpt.show.picture

guards: $(STAMP)  ## list the sentences of the book that no longer hold, without building it
	$(BIN)/python -m fpt.show.guards book/*.md

links: book  ## list every address outside the book that its pages link to, for a check by hand
	@grep -rhoE 'href="https?://[^"#]+' book/_build/html --include='*.html' | cut -c7- | sort | uniq -c | sort -rn

compare: $(STAMP)
	$(BIN)/fpt report laptop
	@echo "The book: $(CURDIR)/book/_build/html/index.html"

# The book is built and read while the tests run, since many of these wait for other processes; what it printed follows.
test: $(STAMP)  ## style, types, tests, notebooks, the book; without what repeats a faster test
	@log=$$(mktemp); $(MAKE) test-book >$$log 2>&1 & book=$$!; \
	  trap 'kill $$book 2>/dev/null; rm -f $$log' EXIT; trap 'exit 130' INT TERM; \
	  $(MAKE) lint unit; status=$$?; wait $$book || status=$$?; cat $$log; exit $$status
	@echo "All checks passed."

lint: $(STAMP)  ## style, types, pairs of notebooks
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

unit: $(STAMP)  ## the tests, and every notebook against its own checks
	$(BIN)/python -m pytest notebooks tests --nbval-lax --nbval-current-env -n $(PROCESSES) --dist loadfile --no-loadscope-reorder

test-book: built-book read-book  ## build the book, and run its tests

built-book: $(STAMP)
	rm -rf $(CHECKED)
	mkdir -p $(CHECKED)
	{ $(BOOK) $(CHECKED)/doctrees . $(CHECKED)/_build/html && $(SHIP) $(CHECKED)/_build/html; } \
	  >$(CHECKED)/build.log 2>&1 || { cat $(CHECKED)/build.log; exit 1; }

read-book: $(STAMP)
	FPT_BOOK="$(CURDIR)/$(CHECKED)/_build/html" \
	  $(BIN)/python -m pytest tests/book -m book -n $(PROCESSES)

test-all: $(STAMP)  ## with the slow tests, as in CI: on Ray, compiled, every model and number type, every sweep of the papers
	FPT_SLOW=1 $(MAKE) test

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@if ! $(BIN)/python -m pip --version >/dev/null 2>&1; then \
	  test -n "$(PYTHON)" && $(PYTHON) $(NEW_ENOUGH) || { \
	    echo "fpt needs Python 3.11 or newer, and found none: $$(python3 --version 2>&1)."; \
	    echo "Install one, or name it: make PYTHON=/path/to/python3.12"; exit 1; }; \
	  $(PYTHON) -m venv $(VENV) || { \
	    echo "$(PYTHON) cannot make an environment (Debian and Ubuntu: install python3-venv)."; exit 1; }; \
	fi
	@$(BIN)/python $(NEW_ENOUGH) || { \
	  echo "$(VENV) holds $$($(BIN)/python --version); fpt needs 3.11 or newer. Remove $(VENV), or: make VENV=..."; \
	  exit 1; }
	$(INSTALL) -c constraints.txt -e ".[dev,minilm]"
	@touch $(STAMP)

clean:  ## remove what was built; keeps the environment and your runs
	rm -rf _build book/_build conf.py $(CHECKED) .mypy_cache .pytest_cache .ruff_cache .hypothesis dist
