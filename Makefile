# One Makefile, no configure step.  build/ holds everything made; -MMD -MP keeps it right.
#
#   make run     start a host            make test    every test, from a bare Debian 12
#   make help    all targets

SHELL   := /bin/bash
VERSION := $(shell sed -n 's/^\#define QUIVER_VERSION *"\(.*\)"/\1/p' runtime/version.h)
PREFIX  ?= /usr/local
DESTDIR ?=

# SAN=asan (address + undefined), SAN=tsan and SAN=fuzz (clang's libFuzzer) build into a folder of their own.
SAN ?=
B   := build$(if $(SAN),/$(SAN))

CC       ?= cc
CXX      ?= c++
OBJCOPY  ?= objcopy
# What is only tested is compiled faster.
OPT      ?= $(if $(SAN),-O1,-O2)
WARN     := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wformat=2 -Wvla -Wpointer-arith
CPPFLAGS += -Iruntime -Isdk/include -D_GNU_SOURCE
CFLAGS   += -std=gnu11 $(OPT) -g $(WARN) $(if $(filter asan tsan,$(SAN)),-Wno-format-truncation) $(if $(WERROR),-Werror) -fno-omit-frame-pointer -pthread
LDFLAGS  += -pthread
LDLIBS   += -luv -ljansson -lconfig -lsqlite3 -lhiredis -lzookeeper_mt -lz -ldl -lm
ifeq ($(SAN),asan)
CFLAGS  += -fsanitize=address,undefined -fno-sanitize-recover=undefined
LDFLAGS += -fsanitize=address,undefined
endif
ifeq ($(SAN),tsan)
# TSan does not follow fences; where the code has one, it guards no plain data.
CFLAGS  += -fsanitize=thread $(if $(filter gcc cc,$(CC)),-Wno-tsan)
LDFLAGS += -fsanitize=thread
endif
ifeq ($(SAN),fuzz)
CC      := clang
CFLAGS  += -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
LDFLAGS += -fsanitize=fuzzer-no-link,address,undefined
endif

# $(call say,WORD[,FILE]): a step in one line; V=1 shows its command.
say = $(if $(V),,@printf '  %-4s %s\n' $(1) $(or $(2),$@);)

# --- what is made -----------------------------------------------------------------------------------------------------

LIB_SRC  := $(filter-out runtime/main.c,$(wildcard runtime/*/*.c runtime/*/*/*.c))
# The threads that TSan looks at, and the bytes that fuzzers write, meet only some of it.
ifeq ($(SAN),tsan)
LIB_SRC  := $(wildcard runtime/base/*.c runtime/ring/*.c runtime/config/setting_list.c)
endif
ifeq ($(SAN),fuzz)
LIB_SRC  := $(wildcard runtime/base/*.c runtime/config/*.c runtime/ring/*.c runtime/task/*.c) \
            $(wildcard runtime/host/*_doc.c) runtime/host/doc.c runtime/host/assign.c runtime/host/assignment.c \
            runtime/host/share.c runtime/host/window.c runtime/host/draft.c \
            $(wildcard runtime/store/*.c runtime/store/*/*.c)
endif
LIB_OBJ  := $(LIB_SRC:%.c=$B/obj/%.o) $(if $(filter tsan,$(SAN)),,$B/obj/lua.o)
MOCK_OBJ := $(patsubst %.c,$B/obj/%.o,$(wildcard sdk/mock/*.c))
QUIVER   := $B/quiver

PLUGINS  := $(filter-out common,$(patsubst plugins/%/,%,$(wildcard plugins/*/)))
PLUGIN_SO := $(PLUGINS:%=plugins/%.so)
# What handlers that start processes share.
PLUGIN_SRC_exec := $(wildcard plugins/common/*.[ch])
PLUGIN_SRC_pipe := $(PLUGIN_SRC_exec)
PLUGIN_SRC_sql  := $(wildcard plugins/common/command.[ch])
PLUGIN_LIBS_sql := -lsqlite3 -lpq -ljansson

UNIT_SRC := $(wildcard tests/unit/test_*.c)
UNIT     := $(UNIT_SRC:tests/%.c=$B/tests/%)
# A contract suite is several files; what is not a test_*.c of its own is a library for them.
COORD_CONTRACT_SRC := $(wildcard tests/contract/test_coord*.c)
CONTRACT_SRC := $(filter-out $(COORD_CONTRACT_SRC),$(wildcard tests/contract/test_*.c))
CONTRACT     := $(CONTRACT_SRC:tests/%.c=$B/tests/%)
CONTRACT_OBJ := $(patsubst %.c,$B/obj/%.o,$(filter-out $(CONTRACT_SRC) $(COORD_CONTRACT_SRC),$(wildcard tests/contract/*.c)))
COORD_CONTRACT     := $(COORD_CONTRACT_SRC:tests/%.c=$B/tests/%)
COORD_CONTRACT_OBJ := $(patsubst %.c,$B/obj/%.o,$(wildcard tests/contract/coord/*.c))
SIM      := $B/tests/sim/test_sim
FUZZ_SRC := $(wildcard tests/fuzz/fuzz_*.c)
FUZZ     := $(FUZZ_SRC:tests/%.c=$B/tests/%)
TEST_PLUGINS := $(patsubst tests/plugins/%.c,$B/test-plugins/%.so,$(wildcard tests/plugins/*.c)) \
                $(addprefix $B/test-plugins/,ledger-two.so statics.so statics-two.so)
VILLAINS := $(patsubst tests/villains/%.c,$B/villains/%.so,$(wildcard tests/villains/*.c)) \
            $(patsubst tests/villains/%.cc,$B/villains/%.so,$(wildcard tests/villains/*.cc))

# --- packages ---------------------------------------------------------------------------------------------------------

DEPS      := gcc make libc6-dev libuv1-dev libjansson-dev libconfig-dev libsqlite3-dev libhiredis-dev zlib1g-dev \
             uthash-dev libpq-dev libzookeeper-mt-dev
TEST_DEPS := $(DEPS) g++ clang clang-format clang-tidy cppcheck libclang-rt-14-dev pkg-config libcmocka-dev python3 \
             python3-pytest procps valgrind nodejs ruby postgresql iproute2 redis-server redis-sentinel redis-tools \
             python3-redis zookeeper default-jre-headless python3-kazoo stunnel4 openssl
PYTHON    := /usr/bin/python3

.DEFAULT_GOAL := build
.PHONY: help deps test-deps build run demo test test-all unit asan tsan contract sim fuzz e2e test-binaries fuzz-binaries syntax \
        lint format format-check tidy cppcheck mutants bench chaos chaos-proof model install uninstall clean plugins villains

help:
	@echo "make run        start a host with the embedded default: no server needed"
	@echo "make demo       watch a small scenario run and check itself"
	@echo "make test       unit, sanitizer, fuzz and end-to-end tests; last line: N passed, N failed"
	@echo "                one suite: make unit | asan | tsan | contract | sim | fuzz | e2e; some of it: make test ONLY=ring"
	@echo "make test-all   the same and the long runs"
	@echo "make build      build/quiver and plugins/*.so (the default)"
	@echo "make bench      measure, and say which bars are met; ONLY=redis,sqlite.hot LONG=1 PEERS=1: tests/bench/README.md"
	@echo "make chaos      break a fleet on purpose and check its history: ON=sqlite|redis|redis+zookeeper|sentinel|cluster"
	@echo "                FOR=60s SEED=N SAN=asan; make chaos-proof: that it notices when a check is missing"
	@echo "make mutants    remove each check in turn, and see which test notices"
	@echo "make model      check the model of the lease, and that it fails without each of its checks (two minutes)"
	@echo "make lint       clang-format, clang-tidy, cppcheck; make format: apply clang-format"
	@echo "make deps       install what is missing from Debian (run and test do it themselves)"
	@echo "make install    into PREFIX=$(PREFIX), DESTDIR honoured; make uninstall takes it back"
	@echo "make clean      remove build/ and the built plugins"
	@echo "settings: SAN=asan|tsan|fuzz  WERROR=1  V=1 (show commands)  CC=clang  PREFIX=  DESTDIR="

# $(call install_missing,PACKAGES): one dpkg-query; apt-get only if something is not there.
define install_missing
@command -v dpkg-query >/dev/null || { echo "make deps: this is not Debian; install these yourself: $(1)" >&2; exit 1; }; \
missing=$$(comm -23 <(printf '%s\n' $(1) | sort -u) \
        <(dpkg-query -W -f='$${db:Status-Abbrev} $${Package}\n' $(1) 2>/dev/null | sed -n 's/^.i *//p' | sort -u)); \
[ -z "$$missing" ] && exit 0; \
echo "installing from Debian:" $$missing; \
sudo=; [ "$$(id -u)" = 0 ] || sudo=sudo; \
[ -z "$$sudo" ] || command -v sudo >/dev/null || { \
        echo "make deps: needs root or sudo; as root: apt-get install" $$missing >&2; exit 1; }; \
$$sudo apt-get update -q >/dev/null && \
DEBIAN_FRONTEND=noninteractive $$sudo apt-get install -qy --no-install-recommends $$missing >/dev/null
endef

deps:
	$(call install_missing,$(DEPS))

test-deps:
	$(call install_missing,$(TEST_DEPS))

# --- build ------------------------------------------------------------------------------------------------------------

build: $(QUIVER) plugins

$B/obj/%.o: %.c | deps
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(CPPFLAGS) $(CFLAGS) -fPIC -MMD -MP -c -o $@ $<

# The Redis store's scripts, as C text.
LUA := runtime/store/redis/lua
$B/lua.c: $(wildcard $(LUA)/*.lua $(LUA)/lib/*.lua) $(LUA)/embed.awk
	@mkdir -p $(@D)
	$(call say,LUA)awk -f $(LUA)/embed.awk $(wildcard $(LUA)/*.lua) > $@.new
	@mv $@.new $@

$B/obj/lua.o: $B/lua.c | deps
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(CPPFLAGS) $(CFLAGS) -fPIC -c -o $@ $<

# `quiver new` has the templates in it.
$B/obj/runtime/cli/new.o: $(wildcard sdk/templates/*)
# And the coordination driver its scripts.
$B/obj/runtime/coord/redis/scripts.o: $(wildcard runtime/coord/redis/lua/*.lua)

$B/libruntime.a: $(LIB_OBJ)
	@rm -f $@
	$(call say,AR)$(AR) rcs $@ $^

$(QUIVER): $B/obj/runtime/main.o $B/libruntime.a
	$(call say,LINK)$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# The fake host that plugin authors test against.  A library of its own: it shares no code with the runtime.
$B/libquiver-mock.a: $(MOCK_OBJ)
	@rm -f $@
	$(call say,AR)$(AR) rcs $@ $^

# The client library, out of what it needs of the runtime.  Both forms show nothing but qv_client_*: whoever links with
# them has names of their own.  The number after .so changes when a program that was built before would break.
CLIENT_OBJ  := $(patsubst %.c,$B/obj/%.o,$(wildcard runtime/client/*.c))
CLIENT_LIBS := -luv -lconfig -lsqlite3 -lhiredis -lz -lm

$B/libquiver.so.1: $(CLIENT_OBJ) $B/libruntime.a sdk/client.map
	$(call say,CC)$(CC) $(LDFLAGS) -shared -Wl,-soname,$(@F) -Wl,--version-script=sdk/client.map -Wl,--as-needed \
	        $(if $(SAN),,-Wl,-z,defs) -o $@ $(CLIENT_OBJ) $B/libruntime.a $(CLIENT_LIBS)

$B/libquiver.a: $(CLIENT_OBJ) $B/libruntime.a
	@rm -f $@
	$(call say,LD)$(LD) -r -o $B/obj/libquiver.o $^
	$(call say,TRIM)$(OBJCOPY) --wildcard --keep-global-symbol='qv_client_*' $B/obj/libquiver.o
	$(call say,AR)$(AR) rcs $@ $B/obj/libquiver.o

plugins: $(PLUGIN_SO)

# A stock plugin is a folder of C files.  Installed by rename: a host may have the old file open.
.SECONDEXPANSION:
plugins/%.so: $$(wildcard plugins/%/*.[ch]) $$(PLUGIN_SRC_$$*) sdk/include/quiver/plugin.h sdk/plugin.map | deps
	$(call say,CC)$(CC) -std=c11 -O2 -g -Wall -Wextra -Wpedantic $(if $(WERROR),-Werror) -D_GNU_SOURCE -Isdk/include -fPIC \
	        -fvisibility=hidden -shared -Wl,--version-script=sdk/plugin.map -Wl,-z,defs -o $@.new $(filter %.c,$^) \
	        -pthread $(PLUGIN_LIBS_$*)
	@mv $@.new $@

# --- install ----------------------------------------------------------------------------------------------------------

# What goes where under PREFIX: mode:from:to, or link:to what:to.  uninstall removes exactly this.
INSTALLED := 755:$(QUIVER):bin/quiver \
             $(foreach h,$(notdir $(wildcard sdk/include/quiver/*.h)),644:sdk/include/quiver/$h:include/quiver/$h) \
             644:sdk/plugin.mk:share/quiver/plugin.mk \
             644:sdk/plugin.map:share/quiver/plugin.map \
             644:etc/quiver.service:share/quiver/quiver.service \
             644:$B/libquiver-mock.a:lib/libquiver-mock.a \
             644:$B/libquiver.a:lib/libquiver.a \
             755:$B/libquiver.so.1:lib/libquiver.so.1 \
             link:libquiver.so.1:lib/libquiver.so \
             644:$B/quiver-client.pc:lib/pkgconfig/quiver-client.pc \
             644:$B/quiver-plugin.pc:lib/pkgconfig/quiver-plugin.pc \
             644:$B/quiver-mock.pc:lib/pkgconfig/quiver-mock.pc \
             $(foreach w,$(wildcard sdk/pipe/*/quiver_pipe.*),644:$w:share/quiver/$(w:sdk/%=%)) \
             $(foreach p,$(PLUGINS),644:plugins/$p.so:lib/quiver/plugins/$p.so)
# Folders that are Quiver's own; removed if nothing else is left in them.
OWN_DIRS  := include/quiver $(patsubst sdk/%/,share/quiver/%,$(wildcard sdk/pipe/*/)) share/quiver/pipe share/quiver lib/quiver/plugins lib/quiver

PC        := $B/quiver-plugin.pc $B/quiver-mock.pc $B/quiver-client.pc
# Made anew each time: PREFIX may have changed.
.PHONY: $(PC)
$(PC): $B/%.pc: sdk/%.pc.in
	@mkdir -p $(@D)
	@sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' $< > $@

# Every file by rename: a host may have the old one open, and must not see half of the new one.
install: build $B/libquiver-mock.a $B/libquiver.a $B/libquiver.so.1 $(PC)
	@for entry in $(INSTALLED); do \
	        IFS=: read -r mode from to <<< "$$entry"; \
	        to="$(DESTDIR)$(PREFIX)/$$to"; \
	        if [ "$$mode" = link ]; then ln -sf "$$from" "$$to.new"; else install -D -m "$$mode" "$$from" "$$to.new"; fi && \
	                mv -fT "$$to.new" "$$to" || exit 1; \
	        echo "$$to"; \
	done

uninstall:
	@for entry in $(INSTALLED); do rm -f "$(DESTDIR)$(PREFIX)/$${entry##*:}"; done
	@for dir in $(OWN_DIRS); do rmdir "$(DESTDIR)$(PREFIX)/$$dir" 2>/dev/null || true; done

# --- tests ------------------------------------------------------------------------------------------------------------

# Objects of tests are kept for the next make.
.SECONDARY:

$B/tests/%: $B/obj/tests/%.o $B/libruntime.a
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) $(LDFLAGS) -o $@ $^ -lcmocka $(LDLIBS)

# The way an author does it: the plugin's own source, the mock, and the test.
$B/tests/unit/test_mock $B/tests/unit/test_mock_services: $B/obj/plugins/echo/echo.o $B/libquiver-mock.a
CHILD_OBJ := $(patsubst %.c,$B/obj/%.o,$(wildcard plugins/common/*.c))
$B/tests/unit/test_exec: $B/obj/plugins/exec/exec.o $(CHILD_OBJ) $B/libquiver-mock.a
$B/tests/unit/test_pipe: $(patsubst %.c,$B/obj/%.o,$(wildcard plugins/pipe/*.c)) $(CHILD_OBJ) $B/libquiver-mock.a
$B/tests/unit/test_sql: $(patsubst %.c,$B/obj/%.o,$(wildcard plugins/sql/*.c)) $B/obj/plugins/common/command.o $B/libquiver-mock.a
$B/tests/unit/test_sql: LDLIBS += -lpq

$B/libcontract.a: $(CONTRACT_OBJ)
	@rm -f $@
	$(call say,AR)$(AR) rcs $@ $^

# Loaded into servers, so never with a sanitizer.
$B/tests/preload/%.so: tests/preload/%.c
	@mkdir -p $(@D)
	$(call say,CC)$(CC) -std=gnu11 -O2 -g $(WARN) $(if $(WERROR),-Werror) -D_GNU_SOURCE -fPIC -shared -o $@ $<

$(CONTRACT): | $B/tests/preload/clock.so
$(CONTRACT): $B/tests/contract/%: $B/obj/tests/contract/%.o $B/libcontract.a $B/libruntime.a
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) $(LDFLAGS) -o $@ $^ -lcmocka $(LDLIBS)

$(COORD_CONTRACT): $B/tests/contract/%: $B/obj/tests/contract/%.o $(COORD_CONTRACT_OBJ) $B/libcontract.a $B/libruntime.a
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) $(LDFLAGS) -o $@ $^ -lcmocka $(LDLIBS)

$B/obj/tests/%.o: CPPFLAGS += -Itests/unit -Isdk -Itests/sim

$(SIM): $(patsubst %.c,$B/obj/%.o,$(wildcard tests/sim/*.c)) $B/libruntime.a
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# Plugins that do their worst, for the end-to-end tests.  Compilers see some of it coming.
VILLAIN_FLAGS := -O1 -g -Wall -Wextra -Wno-infinite-recursion $(if $(WERROR),-Werror) -D_GNU_SOURCE \
                 -Isdk/include -fPIC -fvisibility=hidden -shared -Wl,--version-script=sdk/plugin.map -pthread

$B/villains/%.so: tests/villains/%.c sdk/include/quiver/plugin.h
	@mkdir -p $(@D)
	$(call say,CC)$(CC) -std=c11 $(VILLAIN_FLAGS) -o $@ $<

$B/villains/%.so: tests/villains/%.cc sdk/include/quiver/plugin.h
	@mkdir -p $(@D)
	$(call say,CXX)$(CXX) -std=c++17 -w $(VILLAIN_FLAGS) -o $@ $<

# Plugins that tests look through.
$B/test-plugins/%.so: tests/plugins/%.c sdk/include/quiver/plugin.h
	@mkdir -p $(@D)
	$(call say,CC)$(CC) -std=c11 -O2 -g -Wall -Wextra -Wpedantic $(if $(WERROR),-Werror) -D_GNU_SOURCE -Isdk/include -fPIC \
	        -fvisibility=hidden -shared -Wl,--version-script=sdk/plugin.map -o $@ $<

# … in another version, to be reloaded.
$B/test-plugins/%-two.so: tests/plugins/%.c sdk/include/quiver/plugin.h
	@mkdir -p $(@D)
	$(call say,CC)$(CC) -std=c11 -O2 -g -Wall -Wextra -Wpedantic $(if $(WERROR),-Werror) -D_GNU_SOURCE -DBUILD='"two"' \
	        -Isdk/include -fPIC -fvisibility=hidden -shared -Wl,--version-script=sdk/plugin.map -o $@ $<

# C++ as it comes, with everything visible that keeps a library from ever being unloaded.
$B/test-plugins/statics.so $B/test-plugins/statics-two.so: tests/plugins/statics.cc sdk/include/quiver/plugin.h
	@mkdir -p $(@D)
	$(call say,CXX)$(CXX) -std=c++17 -O1 -g -Wall -Wextra $(if $(WERROR),-Werror) $(if $(findstring two,$@),-DBUILD='"two"') \
	        -Isdk/include -fPIC -shared -o $@ $<

# Other commands' arguments are not for the tests: run.py calls make itself.
RUN_TESTS := @$(PYTHON) tests/run.py $(if $(WERROR),--werror)

test: test-deps
	$(RUN_TESTS) $(ONLY:%=--only=%)

test-all: test-deps
	$(RUN_TESTS) --all $(ONLY:%=--only=%)

unit asan tsan contract sim fuzz e2e: test-deps
	$(RUN_TESTS) --only=$@

# What run.py asks for; SAN= chooses the folder.
villains: $(VILLAINS)

test-binaries: $(UNIT) $(SIM) $(CONTRACT) $(COORD_CONTRACT) $(TEST_PLUGINS) $B/libquiver.so.1 $B/tests/preload/world.so

fuzz-binaries: $(FUZZ)

$B/tests/fuzz/%: $B/obj/tests/fuzz/%.o $B/libruntime.a
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) $(LDFLAGS) -fsanitize=fuzzer -o $@ $^ $(LDLIBS)

# --- house ------------------------------------------------------------------------------------------------------------

C_FILES  := $(shell find runtime sdk plugins tests -name '*.c' -o -name '*.h' -o -name '*.cc' 2>/dev/null | sort)
# Templates are not yet plugins, and villains are wrong on purpose.
TIDY_SRC := $(filter-out sdk/templates/% tests/villains/%,$(filter %.c,$(C_FILES)))
# Not the tests: the analyzer does not know that cmocka's asserts do not return.
TIDY     := $(patsubst %,build/lint/%.ok,$(filter-out tests/%,$(TIDY_SRC)))

# The other compiler's opinion, without its code.
SYNTAX   := $(patsubst %.c,build/clang/%.ok,$(LIB_SRC) runtime/main.c $(wildcard sdk/mock/*.c plugins/*/*.c tests/*/*.c tests/*/*/*.c))
# Not the villains, which are wrong on purpose, nor what needs the libraries of others.
syntax: $(filter-out build/clang/tests/villains/% build/clang/tests/bench/peers/%,$(SYNTAX))

build/clang/%.ok: %.c $(filter %.h,$(C_FILES))
	@mkdir -p $(@D)
	@clang -fsyntax-only $(CPPFLAGS) $(CFLAGS) -Werror -Itests/unit -Isdk -Itests/sim -Itests/contract -Itests/bench $<
	@touch $@

lint: test-deps
	@$(MAKE) --no-print-directory -j$$(nproc) format-check tidy cppcheck

format-check:
	@clang-format --dry-run -Werror $(C_FILES)

format:
	clang-format -i $(C_FILES)

tidy: $(TIDY)

# What was clean stays so until it, a header or the rules change.
build/lint/%.ok: % .clang-tidy $(filter %.h,$(C_FILES))
	@mkdir -p $(@D)
	@echo "clang-tidy $<"
	@clang-tidy --quiet $< -- $(CPPFLAGS) -Itests/unit -Isdk -std=gnu11 2>$@.err || { cat $@.err; exit 1; }
	@rm -f $@.err
	@touch $@

cppcheck:
	@mkdir -p build/lint/cppcheck
	@cppcheck --quiet --std=c11 --enable=warning,performance,portability --inline-suppr --error-exitcode=1 \
	        --suppress=missingIncludeSystem --cppcheck-build-dir=build/lint/cppcheck -Iruntime -Isdk/include -Isdk \
	        $(TIDY_SRC)

run: build
	@echo "In another terminal:  build/quiver submit echo --wait world"
	@exec $(QUIVER) run -c etc/runtime.cfg

demo: build
	@$(PYTHON) tests/demo/demo.py

mutants: test-deps
	@$(PYTHON) tests/mutants/mutants.py

# ONLY= picks parts, LONG=1 adds the large backlog, PEERS=1 the same work on what people use today.
BENCH_DEPS := gnuplot-nox
# Debian's npm only where there is none: other packages of Node have one of their own, and cannot stand beside it.
PEER_DEPS  := beanstalkd gearman-job-server libgearman-dev ruby-sidekiq python3-celery python3-rq \
              $(if $(shell command -v npm),,nodejs npm)
BENCH      := $(patsubst tests/%.c,$B/tests/%,$(wildcard tests/bench/*.c))
PEER_BENCH := $(patsubst tests/%.c,$B/tests/%,$(wildcard tests/bench/peers/*.c))

bench: build test-deps $(BENCH) $(TEST_PLUGINS)
	$(call install_missing,$(BENCH_DEPS) $(if $(PEERS),$(PEER_DEPS)))
	@$(if $(PEERS),$(MAKE) --no-print-directory $(PEER_BENCH) $B/bench/node_modules/bullmq)
	@$(PYTHON) tests/bench/bench.py $(if $(ONLY),--only="$(ONLY)") $(if $(PEERS),--peers) $(if $(LONG),--long)

# What the producers share.
BENCH_LOAD := $(patsubst %.c,$B/obj/%.o,$(wildcard tests/bench/load/*.c))
$(BENCH): $B/tests/%: $B/obj/tests/%.o $(BENCH_LOAD) $B/libruntime.a
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)
$B/obj/tests/bench/%.o: CPPFLAGS += -Itests/bench
$B/tests/bench/peers/gearman: LDLIBS += -lgearman

$B/bench/node_modules/bullmq:
	@mkdir -p $B/bench
	@npm install --silent --no-audit --no-fund --prefix $B/bench bullmq ioredis

# Breaks a fleet of four hosts on purpose, and checks its history; tests/chaos/README.md says how to read it.  With
# SAN=asan the hosts are built with sanitizers, and all else as always.
ON  ?= sqlite
FOR ?= 60s
CHAOS_PARTS := build/quiver build/libquiver.so.1 build/tests/preload/world.so build/test-plugins/ledger.so \
               build/test-plugins/ledger-two.so
chaos: test-deps $(QUIVER)
	@$(MAKE) --no-print-directory SAN= $(CHAOS_PARTS)
	@QUIVER=$(QUIVER) $(PYTHON) tests/chaos/chaos.py --on $(ON) --for $(FOR) $(SEED:%=--seed %) $(if $(ONLY),--only="$(ONLY)")

# Takes one check after the other out of Quiver, and shows that chaos notices.  ONLY= picks some by their names.
chaos-proof: test-deps $(CHAOS_PARTS)
	@$(PYTHON) tests/chaos/proof.py $(if $(ONLY),"$(ONLY)")

MODEL_DEPS := spin gcc libc6-dev
model:
	$(call install_missing,$(MODEL_DEPS))
	@tests/model/run.sh build/model

clean:
	rm -rf build plugins/*.so

-include $(wildcard $B/obj/*/*.d $B/obj/*/*/*.d $B/obj/*/*/*/*.d)
