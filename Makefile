# Every target sets up .venv by itself; it is quick while pyproject.toml has not changed.
PYTHON ?= python3
# Without an NVIDIA GPU a smaller torch will do:
# make PIP_FLAGS='--extra-index-url https://download.pytorch.org/whl/cpu' test
PIP_FLAGS ?=
DEMO_TIME ?= 90s
FUZZ_SECONDS ?= 600
MUTANTS ?= 1500
SEED ?= 0
JAIL ?= landlock
WITHOUT_landlock := userns
WITHOUT_bubblewrap := landlock
# Whole files, the longest ones first (tests/conftest.py). Many a test waits for a disk or a deadline:
# two CPUs have work for three.
ABREAST := -n 3 --dist loadfile --no-loadscope-reorder
SLOWEST := --durations=15 --durations-min=5
# The files with tests of a mark: collecting all others takes half a minute, and chooses nothing.
MARKED = $(sort $(shell grep -rlw 'mark\.$(1)' tests --include='test_*.py'))
VENV := .venv
BIN := $(VENV)/bin
# All that developers need, and what a user needs for a campaign and its report.
STAMP := $(VENV)/.installed
LEAN := $(VENV)/.lean
LINT := $(VENV)/lint
# Several workers share the CPUs, and the threads of a BLAS would wait for each other.
test test-jail test-fast: export OPENBLAS_NUM_THREADS := 1
# Each process of a test run would compile what the one before it has compiled.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo suite problem-pages docs screenshots viewer-speed test test-all test-jail recipes test-fast test-gpu test-gpu-bare first-contact fuzz lint format \
	bench bench-build bench-emulated bench-gpu \
	fairness headroom sparse-baselines portfolio dense-libraries side-by-side coverage growth verification-cost \
	hostile precisions attacks modules ab exports sizes telling mutants search exhaustive search-cpu regret transfer noise isolation static \
	model-pairs metrics-derived instances library-memory recipe-builds clean

$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_FLAGS) -e '.[dev,cuda]'
	touch $@ $(LEAN)

$(LEAN): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_FLAGS) -e '.[view]'
	touch $@

# mypy takes a package's name from its folder, and a checkout may be called anything.
$(LINT)/kernelwright: $(STAMP)
	mkdir -p $(LINT)
	ln -sfn $(CURDIR) $@

demo: $(LEAN)
	$(BIN)/kernelwright run spmm_csr --target cpu --max-time $(DEMO_TIME) --home .demo
	$(BIN)/kernelwright report @last --home .demo -o report.html
	@echo "The report: $(CURDIR)/report.html"

# What times kernels has the machine to itself; the rest runs on three workers. The jail is the best
# that works here; `make test-jail JAIL=landlock` holds another one to what depends on it.
test: $(STAMP)
	status=0; own=; test -n "$$TEST_CACHE" || own=$$(mktemp -d); \
	export TEST_CACHE="$${TEST_CACHE:-$$own}"; \
	$(BIN)/pytest $(ABREAST) $(SLOWEST) -m "not timed" || status=1; \
	$(BIN)/pytest $(SLOWEST) -m timed $(call MARKED,timed) || status=1; \
	test -z "$$own" || rm -rf "$$own"; exit $$status

# What ends otherwise where a jail does, in one jail: the other is taken away from the whole run.
test-jail: $(STAMP)
	status=0; \
	$(BIN)/python tests/poorer_machine.py $(WITHOUT_$(JAIL)) -- \
		$(BIN)/pytest $(ABREAST) -m "jail and not timed" $(call MARKED,jail) || status=1; \
	$(BIN)/python tests/poorer_machine.py $(WITHOUT_$(JAIL)) -- \
		$(BIN)/pytest -m "jail and timed" $(call MARKED,jail) || status=1; \
	exit $$status

# Every row of the long tables of which a sample is in `make test` (tests/sampling.py).
test-all:
	TEST_ALL=1 $(MAKE) test

# Of these, every recipe, every skeleton and compiled baseline.
recipes: $(STAMP)
	TEST_ALL=1 $(BIN)/pytest -n 2 --dist worksteal tests/kernelbench/recipes \
		tests/kernelbench/test_baselines.py tests/cli/test_skeletons.py

test-fast: $(STAMP)
	$(BIN)/pytest -m "not slow and not browser and not timed" -n 2 --dist worksteal

# On a machine with an NVIDIA GPU; it fails where nothing could be tried on one, and says why.
# Where no jail works: KERNELWRIGHT_JAIL=bare make test-gpu
test-gpu: $(STAMP)
	TEST_ALL=1 TEST_REQUIRE_GPU=1 $(BIN)/pytest tests/gpu tests/sandbox/run/device tests/verifier/profile

# What to run first on a machine with a GPU: seven parts of ten minutes at most, or those of
# PARTS="facts tests"; writes first-contact/ and docs/results/gpu-*.md. It goes on where it was ended.
# Without a GPU it says so and ends with status 3; CONTACT=--stand-in rehearses it on a fake driver.
# With the packages that are there, and none of .venv: python3 benchmarks/first_contact.py
first-contact: $(STAMP)
	$(BIN)/python benchmarks/first_contact.py $(addprefix --part ,$(PARTS)) $(CONTACT)

# The same from a checkout that is not installed, with the packages that $(PYTHON) has: numpy, scipy,
# pydantic and pytest at least.
test-gpu-bare:
	folder=$$(mktemp -d) && ln -s $(CURDIR) $$folder/kernelwright && \
	TEST_ALL=1 TEST_REQUIRE_GPU=1 PYTHONPATH=$$folder $(PYTHON) -m pytest tests/gpu -c tests/gpu/pytest.ini --rootdir . ; \
	status=$$? ; rm -r $$folder ; exit $$status

# The fuzz targets of the test suite for longer, with new inputs; stops at the first that fails.
fuzz: $(STAMP)
	$(BIN)/python -m kernelwright.tests.fuzz.run --seconds $(FUZZ_SECONDS)

lint: $(STAMP) $(LINT)/kernelwright
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	MYPYPATH=$(LINT) $(BIN)/mypy -p kernelwright

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP)
	$(BIN)/python benchmarks/help_time.py
	$(BIN)/python benchmarks/turnaround.py
	$(BIN)/python benchmarks/agent_overhead.py

# CUDA C++ and Triton from source to cubin, against a PyTorch extension.
bench-build: $(STAMP)
	$(BIN)/python benchmarks/build.py

# One emulated evaluation of a CUDA and of a Triton kernel for each problem.
bench-emulated: $(STAMP)
	$(BIN)/python benchmarks/emulated.py

# A campaign for each problem at equal caps, resumable, an hour; writes docs/results/suite-cpu.md.
# Quiet machine.
suite: .venv/.installed
	$(BIN)/kernelwright suite all --budget $(or $(BUDGET),seconds=25) --target cpu \
	    --markdown docs/results/suite-cpu.md --csv docs/results/suite-cpu.csv

# A page for each problem, and which paper's operator is where; writes docs/problems.
problem-pages: .venv/.installed
	$(BIN)/python benchmarks/problem_pages.py

# The documents as a site in build/site; a broken link, or a page that is missing, ends it.
docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_FLAGS) -e '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

# Pictures of the viewer for docs/viewer.md, from the campaign of `make demo`, or HOME_OF=… CAMPAIGN=….
screenshots: $(STAMP)
	$(BIN)/python benchmarks/screenshots.py $(or $(HOME_OF),.demo) $(or $(CAMPAIGN),@last)

# What pages, lists and `show` take on a store of 200 campaigns, 100,000 candidates and two million
# events, which it makes (some 3 GB in the folder for temporary files); writes docs/results/viewer.md.
viewer-speed: $(STAMP)
	$(BIN)/python benchmarks/viewer.py

# One campaign for each problem and language on this machine's GPU; writes docs/results/gpu-*.md.
bench-gpu: $(STAMP)
	$(BIN)/python benchmarks/gpu_results.py --seconds $(RESULTS_SECONDS)

# 60 pairings of a kernel with its copy, 20 with a slower one; writes docs/results/fairness.md.
fairness: $(STAMP)
	$(BIN)/python benchmarks/fairness.py

# Right kernels on hidden shapes: how near they come to the gates; writes docs/results/headroom.md.
headroom: $(STAMP)
	$(BIN)/python benchmarks/headroom.py

# Two evaluations at once against one alone; writes docs/results/side-by-side.md. Quiet machine.
side-by-side: $(STAMP)
	$(BIN)/python benchmarks/side_by_side.py

# One kernel judged 30 times over an hour, quiet and loaded; writes docs/results/coverage.md.
coverage: $(STAMP)
	$(BIN)/python benchmarks/coverage.py

# What screenings, evaluations and confirmations cost; writes docs/results/verification-cost.md.
verification-cost: $(STAMP)
	$(BIN)/python benchmarks/verification_cost.py

# One kernel on 10,000 to a million rows: time and memory; writes docs/results/growth.md.
growth: $(STAMP)
	$(BIN)/python benchmarks/growth.py

# Our best sparse product against torch, scipy and MKL prepared; writes docs/results/sparse-baselines.md.
sparse-baselines: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[mkl]'
	$(BIN)/python benchmarks/sparse_baselines.py

# Several sparse products and a tree between them, on some 40 matrices and four widths, an hour on a
# busy machine, which goes on where it was ended; writes docs/results/portfolio.md and .jsonl.
portfolio: $(STAMP)
	$(BIN)/python benchmarks/portfolio.py --cpus 1 --judge

# Two programs with an exported product and without it; GRAPH is a .mtx.gz; writes docs/results/ab.md.
ab: $(STAMP)
	$(BIN)/python benchmarks/ab.py $(GRAPH)

# Every export format in every language, loaded by strangers; VALIDATORS is the Python of an
# environment with kernels and flashinfer-bench; writes docs/results/exports.md.
exports: $(STAMP)
	$(BIN)/python benchmarks/exports.py $(if $(VALIDATORS),--validators $(VALIDATORS))

# Libraries for a dense product, each in a process of its own; writes docs/results/dense-libraries.md.
dense-libraries: $(STAMP)
	$(BIN)/python benchmarks/dense_libraries.py

# Judges every cheat of tests/hostile; writes docs/results/hostile.md.
hostile: $(STAMP)
	$(BIN)/python benchmarks/hostile_table.py

# Judges what each precision policy allows and does not; writes docs/results/precisions.md.
precisions: $(STAMP)
	$(BIN)/python benchmarks/precisions.py

# PyTorch modules as people write them, a campaign each; writes docs/results/modules.md.
modules: $(STAMP)
	$(BIN)/python benchmarks/modules.py

# Which classes of sizes an evaluation tries; writes docs/results/sizes.md.
sizes: $(STAMP)
	$(BIN)/python benchmarks/sizes.py

# In how many trials kernels that are wrong for some sizes show it; writes docs/results/telling.md.
telling: $(STAMP)
	$(BIN)/python benchmarks/telling.py

# Attacks on the clock beside their honest twins; writes docs/results/attacks.md. Quiet machine.
attacks: $(STAMP)
	$(BIN)/python benchmarks/attacks.py

# Right kernels with one mistake each, and who of them passes; writes docs/results/mutants.md.
# What was judged is kept under build/: ended early, it goes on there.
mutants: $(STAMP)
	$(BIN)/python benchmarks/mutants.py --count $(MUTANTS) --seed $(SEED)

# Searches of knobs beside Kernel Tuner's, on the recorded spaces SPACES; writes docs/results/search.md.
search: $(STAMP)
	test -n "$(SPACES)" || { echo "name recorded spaces: make search SPACES='a.json.gz b.json.gz'"; exit 2; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[tuner]'
	$(BIN)/python benchmarks/search.py --out docs/results/search.md $(SPACES)

# Every point of the recipes' knobs on `cpu`, an hour and more, which goes on where it was ended; writes
# benchmarks/spaces. Then searches of them, beside a tenth of the space; writes docs/results/search-cpu.md.
exhaustive: $(STAMP)
	for problem in softmax spmm_csr gemm; do \
		$(BIN)/python benchmarks/exhaustive.py $$problem --state build/exhaustive/$$problem \
			--out benchmarks/spaces/$$problem.json.gz || exit 1; done

search-cpu: $(STAMP)
	$(BIN)/python benchmarks/search.py --out docs/results/search-cpu.md --seeds 30 --within 2 --peers '' \
		benchmarks/spaces/*.json.gz

# How much slower winners are than the fastest of their campaigns; writes docs/results/regret.md.
regret: $(STAMP)
	$(BIN)/python benchmarks/regret.py
	$(BIN)/python benchmarks/regret.py --loaded

# Campaigns that begin with what an earlier one found, and without; writes docs/results/transfer.md.
transfer: $(STAMP)
	$(BIN)/python benchmarks/transfer.py $(if $(SPACES),--spaces $(SPACES))

# One instance of all threads, or several of few (Packrat); writes docs/results/instances.md.
instances: $(STAMP)
	$(BIN)/python benchmarks/instances.py

# Torch's baselines where freed memory goes back to the system, and where it stays; writes
# docs/results/library-memory.md. Quiet machine.
library-memory: $(STAMP)
	$(BIN)/python benchmarks/library_memory.py

# Every recipe for GPUs, built for three architectures and emulated; writes
# docs/results/recipe-builds.md. What RECORD has is not asked for again.
recipe-builds: $(STAMP)
	$(BIN)/python benchmarks/recipe_builds.py $(if $(RECORD),--record $(RECORD))

# What a screening's error is made of; writes docs/results/noise.md.
noise: $(STAMP)
	$(BIN)/python benchmarks/noise.py

# What the static profile says of kernels whose order is known; writes docs/results/static.md.
static: $(STAMP)
	$(BIN)/python benchmarks/static_profiles.py

# Pairs of kernels whose order is known, by the model of time; writes docs/results/model-pairs.md.
model-pairs: $(STAMP)
	$(BIN)/python benchmarks/pairs.py

# Counters chosen from a device's record; writes docs/results/metrics-derived.md.
metrics-derived: $(STAMP)
	$(BIN)/python benchmarks/derived_metrics.py

# What the sandbox enforces in six environments; writes docs/results/isolation.md. Best as root.
isolation: $(STAMP)
	$(BIN)/python benchmarks/isolation_table.py

clean:
	rm -rf $(VENV) .demo report.html first-contact build *.egg-info \
		.pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
