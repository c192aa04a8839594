# The course's commands; `make` alone lists them. What they do is in notebooks/machine/.
# PYTHON=python3.12 chooses the Python, TORCH="..." the build of torch (see README.md).

PYTHON ?=
TORCH ?=
LAB_OPTIONS ?=
TEST_OPTIONS ?=
BENCH_OPTIONS ?=
TRAIN_OPTIONS ?=
SITE_OPTIONS ?=
PAGE ?=
GRADE_OPTIONS ?=

# What the caller's shell has set must not lead our Python elsewhere, nor make it translate
# every module anew at each start.
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV PYTHONDONTWRITEBYTECODE
export PYTHON TORCH LAB_OPTIONS TEST_OPTIONS PAGE ASSIGNMENT SUBMISSIONS OUT
export PYTHONNOUSERSITE = 1

MACHINE = notebooks/machine
VENV_PYTHON = .venv/bin/python

# The first Python that every package is made for. One that is named is taken at its word.
define find_python
if [ -n "$$PYTHON" ]; then found="$$PYTHON"; \
    "$$found" -c "" 2>/dev/null || { echo "PYTHON=$$PYTHON does not start." >&2; exit 1; }; \
fi; \
for name in python3 python3.13 python3.12 python3.11 python3.14 python; do \
    [ -z "$$found" ] || break; \
    "$$name" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' \
        2>/dev/null && found="$$name"; \
done; \
if [ -z "$$found" ]; then \
    echo "The course needs Python 3.11, 3.12, 3.13 or 3.14, and none was found here" >&2; \
    echo "(python3 is: $$(python3 --version 2>&1)). Install one, for example from python.org;" >&2; \
    echo "if it has another name, say which: make lab PYTHON=name" >&2; exit 1; \
fi
endef

.PHONY: help install lab copy test test-slow notebooks site lint assignments grade bench train measure reset lock clean
.DEFAULT_GOAL := help

help:  ## this list
	@echo "The course:"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{printf "%-18s %s\n", $$1, $$2}'
	@echo "Choices: PYTHON=python3.12, TORCH=\"...\" (another build of torch), LAB_OPTIONS=--no-browser,"
	@echo "BROWSER=skip, SANDBOX=skip (tests without a browser, without sandboxes), TEST_OPTIONS=\"...\" (for pytest). README.md says more."

install:  ## make or renew the environment .venv (all commands below do this first)
	@$(find_python); "$$found" $(MACHINE)/install.py

lab: install  ## open the course in JupyterLab, on your own copy in my-course/
	@exec $(VENV_PYTHON) $(MACHINE)/working_copy.py lab

copy: install  ## make or renew my-course/ without opening JupyterLab (for VS Code)
	@$(VENV_PYTHON) $(MACHINE)/working_copy.py copy

reset: install  ## PAGE=03: a fresh copy of page 03; what you wrote is kept beside it
	@$(VENV_PYTHON) $(MACHINE)/working_copy.py reset "$$PAGE"

test: install  ## run all tests, the pages and the browser included (minutes)
	@$(VENV_PYTHON) $(MACHINE)/course_tests.py

test-slow: install  ## run the tests that are too slow for every day
	@$(VENV_PYTHON) $(MACHINE)/course_tests.py --slow

notebooks: install  ## rebuild every page from its text source, run it, check it (PAGE=03: one)
	@$(VENV_PYTHON) $(MACHINE)/build.py $$PAGE
	@$(VENV_PYTHON) $(MACHINE)/lint.py

site: install  ## the whole course as web pages in _site/ (SITE_OPTIONS=--stored: seconds)
	@$(VENV_PYTHON) $(MACHINE)/site/make.py $(SITE_OPTIONS)

lint: install  ## check the pages without running them
	@$(VENV_PYTHON) $(MACHINE)/lint.py

assignments: install  ## make the assignments' copies in _assignments/ (for teachers)
	@$(VENV_PYTHON) -m apex_lessons.grading.copies assignments _assignments

grade: install  ## grade a class: ASSIGNMENT=rope SUBMISSIONS=folder OUT=folder
	@echo "Starting Python and torch ..." >&2
	@$(VENV_PYTHON) -m apex_lessons grade "$$ASSIGNMENT" "$$SUBMISSIONS" --out "$$OUT" \
	    $(GRADE_OPTIONS)

bench: install  ## compare the speed with released libraries
	@$(VENV_PYTHON) -m pip install -q --no-deps --require-hashes -r tests/bench/requirements.txt
	@$(VENV_PYTHON) tests/bench/bench.py $(BENCH_OPTIONS)

train: install  ## train page 05's small models anew (all seeds, up to half an hour)
	@$(VENV_PYTHON) -m apex_lessons.extrapolation train $(TRAIN_OPTIONS)

measure: install  ## measure them anew at every length, with every method (half an hour)
	@$(VENV_PYTHON) -m apex_lessons.extrapolation measure $(TRAIN_OPTIONS)

lock: install  ## renew requirements.lock from pyproject.toml (for maintainers)
	@$(VENV_PYTHON) $(MACHINE)/lock.py

clean:  ## delete the environment .venv; your copy my-course/ stays
	@rm -rf .venv .pytest_cache .hypothesis
