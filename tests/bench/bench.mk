# How benchmarks are built and run; tests/bench/README.md says how to read them.

#@ make bench      measure, and say which bars are met; ONLY=redis,sqlite.hot LONG=1 PEERS=1: tests/bench/README.md

.PHONY: bench bench-parts

BENCH_DEPS := $(TEST_DEPS) gnuplot-nox
# Debian's npm only where there is none: other packages of Node have one of their own, and cannot stand beside it.
PEER_DEPS  := beanstalkd gearman-job-server libgearman-dev ruby-sidekiq python3-celery python3-rq postgresql \
              $(if $(shell command -v npm),,nodejs npm)
BENCH      := $(patsubst tests/%.c,$B/tests/%,$(wildcard tests/bench/*.c))
PEER_BENCH := $(patsubst tests/%.c,$B/tests/%,$(wildcard tests/bench/peers/*.c))
# What the producers share.
BENCH_LOAD := $(patsubst %.c,$B/obj/%.o,$(wildcard tests/bench/load/*.c))

# ONLY= picks parts, LONG=1 adds the large backlog, PEERS=1 the same work on what people use today.
bench:
	$(call install_missing,$(BENCH_DEPS) $(if $(PEERS),$(PEER_DEPS)))
	@$(MAKE_PARALLEL) bench-parts
	@$(PYTHON) tests/bench/bench.py $(if $(ONLY),--only="$(ONLY)") $(if $(PEERS),--peers) $(if $(LONG),--long)

bench-parts: build $(BENCH) $(TEST_PLUGINS) $(if $(PEERS),$(PEER_BENCH) $B/bench/node_modules/bullmq $B/bench/node_modules/graphile-worker)

$(BENCH): $(BENCH_LOAD)
$B/obj/tests/bench/%.o: CPPFLAGS += -Itests/bench
$B/tests/bench/peers/gearman: LDLIBS += -lgearman

# Both at once: npm removes what it has not been told of.
$B/bench/node_modules/bullmq $B/bench/node_modules/graphile-worker &:
	@mkdir -p $B/bench
	@npm install --silent --no-audit --no-fund --prefix $B/bench bullmq ioredis graphile-worker
