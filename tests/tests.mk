# How tests are built and run.  Included by the Makefile at the top, from where all paths count.

#@ make demo       watch a small scenario run and check itself
#@ make test       unit, sanitizer, fuzz and end-to-end tests; last line: N passed, N failed
#@                 one suite: make unit | asan | tsan | contract | sim | fuzz | e2e; some of it: make test ONLY=ring
#@ make test-all   the same and the long runs
#@ make chaos      break a fleet on purpose and check its history: ON=sqlite|redis|redis+zookeeper|redis+etcd|sentinel|cluster
#@                 OVER=http FOR=60s SEED=N SAN=asan; make chaos-proof: that it notices when a check is missing
#@ make scale      1000 hosts and 4096 shards in fake time: what agreeing costs, how soon it settles; HOSTS=N SHARDS=N
#@ make mutants    remove each check in turn, and see which test notices
#@ make model      check the model of the lease, and that it fails without each of its checks (two minutes)
#@ make lint       clang-format, clang-tidy, cppcheck, tests/lint; make format: apply clang-format

TEST_DEPS := $(DEPS) g++ clang clang-format clang-tidy cppcheck libclang-rt-14-dev libcmocka-dev python3 \
             python3-pytest procps valgrind nodejs ruby postgresql iproute2 redis-server redis-sentinel redis-tools \
             python3-redis zookeeper default-jre-headless python3-kazoo etcd-server etcd-client python3-jsonschema stunnel4 openssl \
             xz-utils curl chromium chromium-driver python3-selenium python3-pyte python3-croniter scdoc node-redis ruby-redis
# These are large (Prometheus 332 MB; Go 240 MB; npm, which fetches axe-core); without them the tests that need them are skipped.
# Packages are built, installed and booted with what comes last.
ALL_DEPS  := $(TEST_DEPS) prometheus nginx-light npm golang-go python3-pip python3-setuptools mypy node-typescript zsh fish \
             $(DEB_DEPS) $(IMAGE_DEPS) debootstrap systemd systemd-container skopeo logrotate
DEMO_DEPS := $(DEPS) python3

.PHONY: test-deps all-deps demo-deps test test-all unit asan tsan contract sim fuzz e2e test-binaries fuzz-binaries villains syntax \
        lint structure format format-check tidy cppcheck mutants scale chaos chaos-parts chaos-proof model

test-deps:
	$(call install_missing,$(TEST_DEPS))

all-deps:
	$(call install_missing,$(ALL_DEPS))

# run.py calls make itself, so that it can tell what does not build from what fails.
RUN_TESTS := @$(PYTHON) tests/run.py $(if $(WERROR),--werror)

test: test-deps
	$(RUN_TESTS) $(ONLY:%=--only=%)

test-all: all-deps
	$(RUN_TESTS) --all $(ONLY:%=--only=%)

unit asan tsan contract sim fuzz e2e: test-deps
	$(RUN_TESTS) --only=$@

demo-deps:
	$(call install_missing,$(DEMO_DEPS))

demo: demo-deps
	@$(BUILD_QUIETLY)
	@$(PYTHON) tests/demo/demo.py

# --- test programs ----------------------------------------------------------------------------------------------------

UNIT_ROOMS := $(patsubst %/,%,$(wildcard tests/unit/*/))
UNIT_SRC := $(wildcard tests/unit/*/test_*.c)
# Programs are named without the room of their source.
UNIT     := $(patsubst %.c,$B/tests/unit/%,$(notdir $(UNIT_SRC)))
# A contract suite is several files; what is not a test_*.c of its own is a library for them.
CONTRACT_SRC := $(wildcard tests/contract/*/test_*.c)
CONTRACT     := $(patsubst %.c,$B/tests/contract/%,$(notdir $(CONTRACT_SRC)))
COORD_CONTRACT := $(filter $B/tests/contract/test_coord%,$(CONTRACT))
contract_obj  = $(patsubst %.c,$B/obj/%.o,$(filter-out $(CONTRACT_SRC),$(wildcard $(1:%=tests/contract/%/*.c))))
SIM      := $B/tests/sim/test_sim
SCALE    := $B/tests/scale/scale
# Several end-to-end tests use them at once: none of these should find them half built.
E2E_PROGRAMS := $(addprefix $B/tests/e2e/support/,owner follower)
FUZZ     := $(patsubst tests/%.c,$B/tests/%,$(wildcard tests/fuzz/fuzz_*.c))
TEST_PLUGINS := $(patsubst tests/plugins/%.c,$B/test-plugins/%.so,$(wildcard tests/plugins/*.c)) \
                $(addprefix $B/test-plugins/,ledger-two.so statics.so statics-two.so)
VILLAINS := $(patsubst tests/villains/%.c,$B/villains/%.so,$(wildcard tests/villains/*.c)) \
            $(patsubst tests/villains/%.cc,$B/villains/%.so,$(wildcard tests/villains/*.cc))

scale:
	@$(MAKE_PARALLEL) $(SCALE)
	@$(SCALE) $(or $(HOSTS),1000) $(or $(SHARDS),4096)

# What run.py asks for; SAN= chooses the folder.
villains: $(VILLAINS)
test-binaries: $(UNIT) $(SIM) $(SCALE) $(CONTRACT) $(TEST_PLUGINS) $B/libquiver.so.1 $B/tests/preload/world.so \
               $B/tests/quiver-lacking $(E2E_PROGRAMS)
fuzz-binaries: $(FUZZ)

# Objects of tests are kept for the next make.
.SECONDARY:

TEST_INCLUDES := -Itests/unit $(addprefix -I,$(UNIT_ROOMS)) -Isdk -Itests/sim -Itests/scale -Itests/contract/rig -Itests/contract/store
$B/obj/tests/%.o: CPPFLAGS += $(TEST_INCLUDES)

define link_test
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) $(LDFLAGS) -o $@.new $(filter %.o,$^) $(filter-out $B/libruntime.a,$(filter %.a,$^)) $B/libruntime.a $(TEST_LIBS) $(LDLIBS)
	@mv $@.new $@
endef
$B/tests/%: $B/obj/tests/%.o $B/libruntime.a
	$(link_test)
$(foreach source,$(UNIT_SRC),$(eval $B/tests/unit/$(basename $(notdir $(source))): $B/obj/$(source:.c=.o)))
$(foreach source,$(CONTRACT_SRC),$(eval $B/tests/contract/$(basename $(notdir $(source))): $B/obj/$(source:.c=.o)))
$(UNIT) $(CONTRACT): $B/libruntime.a
	$(link_test)
$(UNIT) $(CONTRACT): TEST_LIBS := -lcmocka
$(FUZZ): TEST_LIBS := -fsanitize=fuzzer
$B/tests/fuzz/fuzz_pipe: $(patsubst %.c,$B/obj/%.o,plugins/pipe/frame.c plugins/common/bytes.c plugins/common/base64.c)
# Its servers are behind the calls of the system.
$B/tests/fuzz/fuzz_redis_servers: TEST_LIBS += -Wl,--wrap=socket,--wrap=connect,--wrap=uv_getaddrinfo,--wrap=uv_freeaddrinfo,--wrap=uv_cancel

# The way an author does it: the plugin's own source, the mock, and the test.
CHILD_OBJ := $(patsubst %.c,$B/obj/%.o,$(wildcard plugins/common/*.c))
$B/tests/unit/test_mock $B/tests/unit/test_mock_services $B/tests/unit/test_mock_faults: $B/obj/plugins/echo/echo.o $B/libquiver-mock.a
$B/tests/unit/test_mock_seats: $B/libquiver-mock.a
$B/tests/unit/test_exec: $B/obj/plugins/exec/exec.o $(CHILD_OBJ) $B/libquiver-mock.a
$B/tests/unit/test_pipe: $(patsubst %.c,$B/obj/%.o,$(wildcard plugins/pipe/*.c)) $(CHILD_OBJ) $B/libquiver-mock.a
SQL_TESTS := $(addprefix $B/tests/unit/,test_sql test_sql_input)
$(SQL_TESTS): $(patsubst %.c,$B/obj/%.o,$(wildcard plugins/sql/*.c)) $B/obj/plugins/common/command.o $B/libquiver-mock.a
$(SQL_TESTS): LDLIBS += -lpq
WEBHOOK_TESTS := $(addprefix $B/tests/unit/,test_webhook test_webhook_answers test_webhook_parts)
$(WEBHOOK_TESTS): $(patsubst %.c,$B/obj/%.o,$(wildcard plugins/webhook/*.c)) $(CHILD_OBJ) $B/libquiver-mock.a
$(WEBHOOK_TESTS): LDLIBS += -lcurl -lcrypto

$B/libcontract.a: $(call contract_obj,rig store redis)
$(CONTRACT): $B/libcontract.a
$(COORD_CONTRACT): $(call contract_obj,coord)
$(CONTRACT): | $B/tests/preload/clock.so

$(SIM): $(patsubst %.c,$B/obj/%.o,$(wildcard tests/sim/*.c))
$(SCALE): $(patsubst %.c,$B/obj/%.o,$(wildcard tests/scale/*.c))
$(SCALE): TEST_LIBS := -Wl,--wrap=coord_open

# A build of its own: it lacks a feature, since its table stands before the library's.
$B/tests/quiver-lacking: $B/obj/runtime/main.o $B/obj/tests/lacking/features.o $B/libruntime.a
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) $(LDFLAGS) -o $@.new $^ $(LDLIBS)
	@mv $@.new $@

# Loaded into servers, so never with a sanitizer.
$B/tests/preload/%.so: tests/preload/%.c
	@mkdir -p $(@D)
	$(call say,CC)$(CC) -std=gnu11 -O2 -g $(WARN) $(if $(WERROR),-Werror) -D_GNU_SOURCE -fPIC -shared -o $@ $<

# Plugins that do their worst, for the end-to-end tests.  Compilers see some of it coming.
VILLAIN_FLAGS := -O1 -g -Wall -Wextra -Wno-infinite-recursion $(if $(WERROR),-Werror) -D_GNU_SOURCE \
                 -Isdk/include -fPIC -fvisibility=hidden -shared -Wl,--version-script=sdk/plugin.map -pthread

$B/villains/%.so: tests/villains/%.c sdk/include/quiver/plugin.h
	@mkdir -p $(@D)
	$(call say,CC)$(CC) -std=c11 $(VILLAIN_FLAGS) -o $@ $<

$B/villains/%.so: tests/villains/%.cc sdk/include/quiver/plugin.h
	@mkdir -p $(@D)
	$(call say,CXX)$(CXX) -std=c++17 -w $(VILLAIN_FLAGS) -o $@ $<

# Plugins that tests look through; NAME-two.so is another version of NAME.so, to be reloaded.
TEST_PLUGIN = $(CC) -std=c11 -O2 -g -Wall -Wextra -Wpedantic $(if $(WERROR),-Werror) -D_GNU_SOURCE -Isdk/include -fPIC \
              -fvisibility=hidden -shared -Wl,--version-script=sdk/plugin.map -o $@ $<
$B/test-plugins/%.so: tests/plugins/%.c sdk/include/quiver/plugin.h
	@mkdir -p $(@D)
	$(call say,CC)$(TEST_PLUGIN)

$B/test-plugins/%-two.so: tests/plugins/%.c sdk/include/quiver/plugin.h
	@mkdir -p $(@D)
	$(call say,CC)$(TEST_PLUGIN) -DBUILD='"two"'

# C++ as it comes, with everything visible that keeps a library from ever being unloaded.
$B/test-plugins/statics.so $B/test-plugins/statics-two.so: tests/plugins/statics.cc sdk/include/quiver/plugin.h
	@mkdir -p $(@D)
	$(call say,CXX)$(CXX) -std=c++17 -O1 -g -Wall -Wextra $(if $(WERROR),-Werror) $(if $(findstring two,$@),-DBUILD='"two"') \
	        -Isdk/include -fPIC -shared -o $@ $<

# --- what machines can see in the source ------------------------------------------------------------------------------

C_FILES  := $(shell find runtime sdk plugins tests -name '*.c' -o -name '*.h' -o -name '*.cc' 2>/dev/null | sort)
# Templates are not yet plugins, and villains are wrong on purpose.
TIDY_SRC := $(filter-out sdk/templates/% tests/villains/%,$(filter %.c,$(C_FILES)))
# Not the tests: the analyzer does not know that cmocka's asserts do not return.
TIDY     := $(patsubst %,build/lint/%.ok,$(filter-out tests/%,$(TIDY_SRC)))

# The other compiler's opinion, without its code: it need not know how the first one is told to optimise.
SYNTAX   := $(patsubst %.c,build/clang/%.ok,$(LIB_SRC) runtime/main.c $(wildcard sdk/mock/*.c plugins/*/*.c tests/*/*.c tests/*/*/*.c))
# Not the villains, which are wrong on purpose, nor what needs the libraries of others.
syntax: $(filter-out build/clang/tests/villains/% build/clang/tests/bench/peers/%,$(SYNTAX))

build/clang/%.ok: %.c $(filter %.h,$(C_FILES))
	@mkdir -p $(@D)
	@clang -fsyntax-only $(CPPFLAGS) $(filter-out $(FASTER),$(CFLAGS)) -Werror $(TEST_INCLUDES) -Itests/bench $<
	@touch $@

lint: test-deps
	@$(MAKE_PARALLEL) structure format-check tidy cppcheck

# Who may include whom, one definition per struct, comments that name files which exist.
structure:
	@$(PYTHON) tests/lint/structure.py

format-check:
	@clang-format --dry-run -Werror $(C_FILES)

format:
	clang-format -i $(C_FILES)

tidy: $(TIDY)

# What was clean stays so until it, a header or the rules change.
build/lint/%.ok: % .clang-tidy $(filter %.h,$(C_FILES))
	@mkdir -p $(@D)
	@echo "clang-tidy $<"
	@clang-tidy --quiet $< -- $(CPPFLAGS) $(TEST_INCLUDES) -std=gnu11 2>$@.err || { cat $@.err; exit 1; }
	@rm -f $@.err
	@touch $@

cppcheck:
	@mkdir -p build/lint/cppcheck
	@cppcheck --quiet --std=c11 --enable=warning,performance,portability --inline-suppr --error-exitcode=1 \
	        --suppress=missingIncludeSystem --cppcheck-build-dir=build/lint/cppcheck -Iruntime -Isdk/include -Isdk \
	        $(TIDY_SRC)

# --- long runs --------------------------------------------------------------------------------------------------------

mutants: test-deps
	@$(PYTHON) tests/mutants/mutants.py

# Breaks a fleet of four hosts on purpose, and checks its history; tests/chaos/README.md says how to read it.  With
# SAN=asan the hosts are built with sanitizers, and all else as always.
ON  ?= sqlite
FOR ?= 60s
chaos-parts: build/quiver build/libquiver.so.1 build/tests/preload/world.so build/test-plugins/ledger.so \
             build/test-plugins/ledger-two.so
chaos: test-deps
	@$(MAKE_PARALLEL) SAN= chaos-parts
	@$(if $(SAN),$(MAKE_PARALLEL) $(QUIVER))
	@QUIVER=$(QUIVER) $(PYTHON) tests/chaos/chaos.py --on $(ON) $(OVER:%=--over %) --for $(FOR) $(SEED:%=--seed %) $(if $(ONLY),--only="$(ONLY)")

# Takes one check after the other out of Quiver, and shows that chaos notices.  ONLY= picks some by their names.
chaos-proof: test-deps
	@$(MAKE_PARALLEL) chaos-parts
	@$(PYTHON) tests/chaos/proof.py $(if $(ONLY),"$(ONLY)")

MODEL_DEPS := spin gcc libc6-dev
model:
	$(call install_missing,$(MODEL_DEPS))
	@tests/model/run.sh build/model
