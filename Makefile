# The main job and the tests, each from nothing: `make run`, `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# no bytecode: the main job imports little of what is installed, and of what builds it nothing
PIP := PIP_COMPILE=0 $(BIN)/pip install --quiet --quiet --disable-pip-version-check
# where there is no such command only pytest's own limits hold
LIMIT := $(if $(shell command -v timeout),timeout -k 10 2400)
# one more than there are cores: some tests wait for processes that they start
PYTEST = $(BIN)/python -m pytest -q -n $(shell expr 1 + `getconf _NPROCESSORS_ONLN`) --dist worksteal
MAIN := -p platforms/grid5000.xml -w workloads/google-288-00.json --envelope power_profiles/profile3.csv

# the compiled form stands for the sources that it was made of: make it again if one differs
COMPILE = $(BIN)/python -c 'import sys; from batwatt import units; sys.exit(units.__file__.endswith(".py"))' || $(PIP) --editable .

.PHONY: install compiled help run test coverage same-bytes lint docs wheel bench images profiles igsc22 pmbs23 varcap checkpoint carbon clean

install: $(BIN)/batwatt  ## install in .venv, compiled where there is a C compiler
	@$(COMPILE)
	@$(BIN)/python -c 'from batwatt import units; print("batwatt is", "not compiled, and slower" if units.__file__.endswith(".py") else "compiled")'

help:  ## what can be made
	@grep -E '^[a-z0-9-]+:.*##' Makefile | sed 's/:.*##/\t/'

$(BIN)/batwatt: setup.cfg pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python >= 3.11 is needed: make PYTHON=python3.11"; exit 2; }
	$(PYTHON) -m venv $(VENV) || { echo "the venv module is missing: apt install python3-venv"; exit 2; }
	$(PIP) --upgrade pip
	BATWATT_PURE=1 $(PIP) --editable .
	@touch $@

$(VENV)/test $(VENV)/dev: $(BIN)/batwatt
	BATWATT_PURE=1 $(PIP) --editable '.[$(@F)]'
	-$(BIN)/python -m compileall -qq $(VENV)/lib
	@# dev has what test has
	@touch $@ $(VENV)/test

run: $(BIN)/batwatt  ## the main job: EASY + slowdown + HFLD compared with no configuration
	$(BIN)/batwatt compare $(MAIN) --keep -e out/main \
	  -c 'EASY Slowdown HFLD={"backfilling": "easy", "order": "slowdown", "response": "hfld"}' \
	  -c 'EASY Slowdown no configuration={"backfilling": "easy", "order": "slowdown", "response": "none"}'

# what the tests and the experiments need, compiled where there is a C compiler
compiled: $(VENV)/test
	@$(COMPILE)

test: compiled  ## all tests, of the compiled form where there is a C compiler; of Python with BATWATT_PURE=1
	$(LIMIT) $(PYTEST) --durations 30

coverage: $(VENV)/dev  ## the lines and branches that the tests run, in out/coverage; leaves the Python form: `make install` compiles again
	rm -rf src/batwatt/_compiled
	@# measuring imports modules, and writes files where a full disk is played
	$(PYTEST) --timeout 900 -o session_timeout=3600 --cov --cov-report=term --cov-report=html \
	  --deselect tests/cli/test_cli_help.py::test_a_function_of_the_python_api_loads_its_own_module_only \
	  --deselect tests/studies/test_study_disk.py::test_no_room_in_the_worker_is_not_the_fault_of_the_run

same-bytes: $(VENV)/dev  ## compare what commands print and write with the hashes in bench/same_bytes.json
	$(BIN)/python bench/same_bytes.py --check

lint: $(VENV)/dev  ## style, types, import contracts, sizes
	$(BIN)/ruff check setup.py src schedulers tests bench docs papers power_profiles start workloads docker
	$(BIN)/ruff format --check setup.py src schedulers tests bench docs papers power_profiles start workloads docker
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python bench/size.py

docs: $(VENV)/dev  ## the documentation as a site, in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

wheel: $(VENV)/dev  ## build the sdist and of it the wheel, install it without extras in a clean environment, check that it is compiled, run the main example there
	rm -rf dist build && $(BIN)/python -m build --quiet
	$(BIN)/twine check --strict dist/*
	$(BIN)/python setup.py check_wheel dist/*.whl
	$(PYTHON) -m venv --clear build/clean
	build/clean/bin/pip install --quiet --disable-pip-version-check dist/*.whl
	cd build && clean/bin/python -c 'import batwatt, batwatt.schedulers.powercap; print("wheel", batwatt.__version__)'
	cd build && clean/bin/python -c 'from batwatt.batsim import bs; assert not bs.__file__.endswith(".py"); bs.Bs.execute_jobs'
	build/clean/bin/batwatt run $(MAIN) -e build/main > /dev/null
	build/clean/bin/batwatt init build/start && cd build/start && ../clean/bin/batwatt run $(MAIN) -e out/main > /dev/null
	build/clean/bin/batwatt study start/first.yaml 2>&1 | grep "pip install -e '.\[study\]'"

bench: $(VENV)/dev  ## speed and memory, compiled: the embedded engine, the environment, readers of traces, whole commands, riskaware, varcap, checkpoint and carbon plans, growth with long queues and with hosts, comparisons, studies
	$(MAKE) --no-print-directory wheel
	build/clean/bin/pip install --quiet --disable-pip-version-check "$$(echo dist/*.whl)[all]"
	$(BIN)/python bench/engine.py --compiled build/clean/bin/python; code=$$?; for name in api readers gym whole riskaware varcap checkpoint growth responses carbon comparison study; do build/clean/bin/python bench/$$name.py || code=1; done; build/clean/bin/python bench/comparison.py --machines 13000 --jobs 11000 || code=1; exit $$code

images: $(VENV)/dev  ## the picture of the README, of runs of today
	$(BIN)/python docs/images/make.py

profiles: $(VENV)/dev  ## check that the power profiles are what their script makes
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[profiles]'
	$(BIN)/python power_profiles/make_profiles.py --check

igsc22: compiled  ## the experiments of the powercap paper: the study, its page
	$(BIN)/python -m papers.igsc22.sources
	$(BIN)/batwatt study papers/igsc22/study.yaml
	$(BIN)/python -m papers.igsc22.decisions
	$(BIN)/python -m papers.igsc22.tables results/igsc22

pmbs23: compiled  ## the experiments of the riskaware paper, in part: the study, its page
	$(BIN)/python -m papers.generators papers/pmbs23/inputs.yaml study
	$(BIN)/batwatt study papers/pmbs23/study.yaml
	$(BIN)/python -m papers.pmbs23.tables results/pmbs23

varcap: compiled  ## the experiments of the varcap dissertation, in part: the studies, its page
	$(BIN)/python -m papers.generators papers/varcap/inputs.yaml study prices
	for name in study prices; do $(BIN)/batwatt study papers/varcap/$$name.yaml || exit; done
	$(BIN)/python -m papers.varcap.tables results/varcap results/varcap-prices

checkpoint: compiled  ## experiments on checkpoint planning: the study, its page
	$(BIN)/python -m papers.generators papers/checkpoint/inputs.yaml study
	$(BIN)/batwatt study papers/checkpoint/study.yaml
	$(BIN)/python -m papers.checkpoint.tables results/checkpoint

carbon: compiled  ## experiments of the carbon thesis: the small plans; with SIGNAL=FILE (papers/carbon/README.md) all plans, its page
	$(BIN)/python -m papers.carbon.study papers/carbon/small.yaml power_profiles/carbon/carbon-hourly.csv results/carbon-small
ifdef SIGNAL
	$(BIN)/python -m papers.carbon.study papers/carbon/study.yaml $(SIGNAL) results/carbon
	$(BIN)/python -m papers.carbon.tables results/carbon results/carbon-small
else
	@echo "DE-2024-hourly.csv is not there, so papers/carbon/study.yaml is left out: give SIGNAL=FILE; it is from github.com/Quacck/master-thesis (papers/carbon/README.md)"
endif

clean:  ## remove what was made
	rm -rf $(VENV) build dist out site src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
