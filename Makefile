# One Makefile, no configure step.  build/ holds everything made; -MMD -MP keeps it right.
#
#   make run     start a host            make test    every test, from a bare Debian 12
#   make help    all targets
#
# How tests are built and run is in tests/tests.mk, benchmarks in tests/bench/bench.mk.

SHELL   := /bin/bash
VERSION := $(shell sed -n 's/^\#define QUIVER_VERSION *"\(.*\)"/\1/p' runtime/base/version.h)
PREFIX  ?= /usr/local
# Below PREFIX: where the client library goes; packages name the machine's own folder (lib/x86_64-linux-gnu).
LIBDIR  ?= lib
DESTDIR ?=

# SAN=asan (address + undefined), SAN=tsan and SAN=fuzz (clang's libFuzzer) build into a folder of their own.
SAN ?=
B   := build$(if $(SAN),/$(SAN))

CC         ?= cc
CXX        ?= c++
OBJCOPY    ?= objcopy
PKG_CONFIG ?= pkg-config
PYTHON     := /usr/bin/python3
# What is only tested is compiled faster.
OPT      ?= $(if $(SAN),-O1,-O2)
WARN     := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wformat=2 -Wvla -Wpointer-arith
# What makes a mistake in memory end in a crash instead of somebody else's code; as far as this compiler and machine know
# it.  Sanitizers bring checks of their own, and FORTIFY needs an optimiser.
known     = $(shell $(CC) -Werror $(1) -c -x c -o /dev/null /dev/null 2>/dev/null && echo '$(1)')
HARDEN   := $(if $(SAN),,-fstack-protector-strong $(call known,-fstack-clash-protection) $(call known,-fcf-protection=full) \
              $(call known,-mbranch-protection=standard) $(if $(filter -O0,$(OPT)),,-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3))
# A call of a function of the same file may be inlined although the objects also make a shared library, and a loop over
# bytes may do several at a time.
FASTER   := $(if $(SAN),,$(call known,-fno-semantic-interposition) $(call known,-fvect-cost-model=dynamic))
HARDEN_LD := -Wl,-z,relro,-z,now,-z,noexecstack
# No byte of what is built depends on the folder that it was built in.
PATHLESS := $(if $(SAN),,-ffile-prefix-map=$(CURDIR)=.)
# The ZooKeeper client and http_parser come without a file for pkg-config.  Where pkg-config is missing, the usual names are tried.
PACKAGES := libuv jansson libconfig sqlite3 hiredis zlib
PKG_LIBS := $(or $(shell $(PKG_CONFIG) --libs $(PACKAGES) 2>/dev/null),-luv -ljansson -lconfig -lsqlite3 -lhiredis -lz)
CPPFLAGS += -Iruntime -Isdk/include -D_GNU_SOURCE $(shell $(PKG_CONFIG) --cflags-only-I $(PACKAGES) 2>/dev/null)
CFLAGS   += -std=gnu11 $(OPT) $(if $(SAN),-g1,-g) $(PATHLESS) $(FASTER) $(HARDEN) $(WARN) $(if $(filter asan tsan,$(SAN)),-Wno-format-truncation) $(if $(WERROR),-Werror) -fno-omit-frame-pointer -pthread
LDFLAGS  += -pthread $(HARDEN_LD)
LDLIBS   += $(PKG_LIBS) -lzookeeper_mt -lhttp_parser -ldl -lm
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
# For a make of its own inside a rule: as many jobs as cores, unless the one above has jobs to share.
MAKE_PARALLEL := $(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc))

# The same with a line that counts instead of one per step; what the compiler says is shown.
BUILD_QUIETLY = set -o pipefail; $(MAKE_PARALLEL) build 2>&1 | awk -v all=$(words $(LIB_SRC) $(PLUGIN_SO)) -v terminal=$$([ -t 1 ] && echo 1) ' \
        /^  [A-Z]+ +[^ ]+$$/ { n++; if (terminal) printf "\rBuilding: %d of about %d steps", n, all + 5; fflush(); next } \
        /Nothing to be done|is up to date/ { next } \
        { if (terminal && n) print ""; print; fflush() } \
        END { if (n) printf "%sBuilt build/quiver and plugins/*.so in %d steps.\n", terminal ? "\r" : "", n }'

# --- what is made -----------------------------------------------------------------------------------------------------

LIB_SRC  := $(sort $(filter-out runtime/main.c,$(shell find runtime -name '*.c')))
# The threads that TSan looks at, and the bytes that fuzzers write, meet only some of it.
ifeq ($(SAN),tsan)
LIB_SRC  := $(wildcard runtime/base/*.c runtime/base/*/*.c runtime/ring/*.c)
endif
ifeq ($(SAN),fuzz)
LIB_SRC  := $(wildcard runtime/base/*.c runtime/base/*/*.c runtime/config/*.c runtime/ring/*.c runtime/task/*.c runtime/id/*.c runtime/worker/*.c runtime/client/http_answer.c runtime/client/work_json.c runtime/host/last_run.c runtime/store/*.c \
              runtime/store/*/*.c runtime/store/*/*/*.c runtime/coord/*.c runtime/host/membership/assign*.c runtime/host/membership/*_doc.c) runtime/host/membership/load.c \
            $(addprefix runtime/coord/local/,log.c replica.c tree.c) $(addprefix runtime/host/shard/,claimed.c window.c window_keys.c pending_outcome.c) $(addprefix runtime/trace/,context.c headers.c otlp.c export.c) $(addprefix runtime/host/lend/,lend_message.c seat_outcome.c) \
            $(addprefix runtime/coord/redis/,op.c reply.c request.c session.c watch.c) $(filter-out %/open.c %/end_session.c,$(wildcard runtime/coord/etcd/*.c)) runtime/cli/dump/dump_read.c $(wildcard runtime/redis/*.c) runtime/http/reader.c runtime/http/json_line.c runtime/http/json_line_value.c \
              $(wildcard runtime/view/*.c) $(addprefix runtime/look/,look.c limit_act.c results_act.c status_look.c) runtime/host/report/done_document.c runtime/host/shard/done_tasks.c \
              $(addprefix runtime/host/pool/,line_reader.c oom.c stderr_tail.c)
LIB_SRC  := $(filter-out %_io.c,$(LIB_SRC)) $(wildcard runtime/schedule/*.c runtime/tls/*.c)
endif
LIB_OBJ  := $(LIB_SRC:%.c=$B/obj/%.o) $(if $(filter tsan,$(SAN)),,$B/obj/embedded.o) $(if $(SAN:asan=),,$B/obj/page.o)
MOCK_OBJ := $(patsubst %.c,$B/obj/%.o,$(wildcard sdk/mock/*.c))
QUIVER   := $B/quiver

PLUGINS  := $(filter-out common,$(patsubst plugins/%/,%,$(wildcard plugins/*/)))
PLUGIN_SO := $(PLUGINS:%=plugins/%.so)
# What handlers that start processes share.
PLUGIN_SRC_exec := $(wildcard plugins/common/*.[ch])
PLUGIN_SRC_pipe := $(PLUGIN_SRC_exec)
PLUGIN_SRC_sql  := $(wildcard plugins/common/command.[ch])
PLUGIN_LIBS_sql := -lsqlite3 -lpq -ljansson
PLUGIN_SRC_webhook  := $(wildcard $(addprefix plugins/common/,bytes.[ch] base64.[ch]))
PLUGIN_LIBS_webhook := -lcurl -lcrypto

.DEFAULT_GOAL := build
.PHONY: help deps build run demo test bench plugins install uninstall clean

help:
	@sed -n 's/^#@ \?//p' Makefile etc/packages/packages.mk tests/tests.mk tests/bench/bench.mk
	@echo "settings: SAN=asan|tsan|fuzz  WERROR=1  V=1 (show commands)  CC=clang  PREFIX=$(PREFIX)  DESTDIR="

# --- packages ---------------------------------------------------------------------------------------------------------

# Only the targets that a newcomer types install anything; build takes the libraries as it finds them.
DEPS := gcc make libc6-dev pkg-config libuv1-dev libjansson-dev libconfig-dev libsqlite3-dev libhiredis-dev zlib1g-dev \
        uthash-dev libpq-dev libzookeeper-mt-dev libhttp-parser-dev libcurl4-openssl-dev libssl-dev

# $(call install_missing,PACKAGES): one dpkg-query; apt-get only if something is not there.
define install_missing
@command -v dpkg-query >/dev/null || { \
        echo "make deps: this is not Debian.  Install the equivalents of: $(1)" >&2; exit 0; }; \
missing=$$(comm -23 <(printf '%s\n' $(1) | sort -u) \
        <(dpkg-query -W -f='$${db:Status-Abbrev} $${Package}\n' $(1) 2>/dev/null | sed -n 's/^.i *//p' | sort -u)); \
[ -z "$$missing" ] && exit 0; \
sudo=; [ "$$(id -u)" = 0 ] || sudo=sudo; \
[ -z "$$sudo" ] || command -v sudo >/dev/null || { \
        echo "make deps: needs root or sudo; as root: apt-get install" $$missing >&2; exit 1; }; \
echo "Installing from Debian ($$(wc -w <<< "$$missing") and what they need):" $$missing; \
$$sudo apt-get update -q >/dev/null && \
DEBIAN_FRONTEND=noninteractive $$sudo apt-get install -qy --no-install-recommends $$missing | \
        awk '/^Setting up / { n++; if (n % 20 == 0) printf "  %d packages set up\n", n; fflush() }'; \
exit $${PIPESTATUS[0]}
endef

#@ make deps       install what is missing from Debian (run and test do it themselves)
deps:
	$(call install_missing,$(DEPS))

# --- build ------------------------------------------------------------------------------------------------------------

#@ make build      build/quiver and plugins/*.so (the default)
build: $(if $(wildcard $(QUIVER)),,have-libraries) $(QUIVER) plugins

# A compiler that misses a header does not say which package has it; nor does it help to see that a hundred times.
HEADERS := errno.h uv.h jansson.h libconfig.h sqlite3.h hiredis/hiredis.h zlib.h uthash.h zookeeper/zookeeper.h \
           http_parser.h curl/curl.h openssl/ssl.h
.PHONY: have-libraries
have-libraries:
	@for header in $(HEADERS); do \
	        echo "#include <$$header>" | $(CC) $(CPPFLAGS) -E - >/dev/null 2>&1 || { \
	        echo "make build: <$$header> is not installed; as root: make deps (make run and make test do it themselves)" >&2; exit 1; }; \
	done

# Other flags make other objects.
FLAGS := $(filter-out -Werror,$(CC) $(CPPFLAGS) $(CFLAGS) $(HARDEN_LD))
$B/flags: FORCE
	@mkdir -p $B
	@echo '$(FLAGS)' | cmp -s - $@ || echo '$(FLAGS)' > $@
FORCE:

$B/obj/%.o: %.c $B/flags
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(CPPFLAGS) $(CFLAGS) -fPIC -MMD -MP -c -o $@ $<

# Files that are part of the binary, as C text: scripts for Redis, what `quiver new` and `quiver init` write, the
# description of the API.
EMBEDDED := $(wildcard runtime/coord/redis/lua/*.lua $(patsubst %,runtime/store/redis/lua/%/*.lua,shard admin records) sdk/templates/* sdk/pipe/*/quiver_pipe.*) etc/runtime.cfg etc/openapi.json
$B/embedded.c: $(EMBEDDED) Makefile $(wildcard runtime/*/redis/lua/lib/*.lua) runtime/base/embed.awk
	@mkdir -p $(@D)
	$(call say,TEXT)awk -f runtime/base/embed.awk $(EMBEDDED) > $@.new
	@mv $@.new $@

# The page in the browser.
PAGE := $(wildcard runtime/http/page/*)
$B/page.c: $(PAGE) Makefile runtime/base/embed_files.sh
	@mkdir -p $(@D)
	$(call say,TEXT)runtime/base/embed_files.sh $(PAGE) > $@.new
	@mv $@.new $@

$B/obj/embedded.o $B/obj/page.o: $B/obj/%.o: $B/%.c $B/flags
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(CPPFLAGS) $(CFLAGS) -fPIC -c -o $@ $<

# A library anew each time: an object whose source is gone must not stay in it.
$B/libruntime.a: $(LIB_OBJ)
# The fake host that plugin authors test against.  A library of its own: it shares no code with the runtime.
$B/libquiver-mock.a: $(MOCK_OBJ)
$B/%.a:
	@rm -f $@
	$(call say,AR)$(AR) rcs $@ $^

# Programs are linked under another name and then renamed: a make beside one that runs must not leave half a file at its place.
$(QUIVER): $B/obj/runtime/main.o $B/libruntime.a
	$(call say,LINK)$(CC) -pie $(LDFLAGS) -o $@.new $^ $(LDLIBS)
	@mv $@.new $@

# The client library, out of what it needs of the runtime.  Both forms show nothing but qv_client_*: whoever links with
# them has names of their own.  The number after .so changes when a program that was built before would break.
CLIENT_OBJ  := $(patsubst %.c,$B/obj/%.o,$(wildcard runtime/client/*.c))

$B/libquiver.so.1: $(CLIENT_OBJ) $B/libruntime.a sdk/client.map
	$(call say,CC)$(CC) $(LDFLAGS) -shared -Wl,-soname,$(@F) -Wl,--version-script=sdk/client.map -Wl,--as-needed \
	        $(if $(SAN),,-Wl,-z,defs) -o $@.new $(CLIENT_OBJ) $B/libruntime.a $(PKG_LIBS) -lzookeeper_mt -lm
	@mv $@.new $@

$B/libquiver.a: $(CLIENT_OBJ) $B/libruntime.a
	@rm -f $@
	$(call say,LD)$(LD) -r -o $B/obj/libquiver.o $^
	$(call say,TRIM)$(OBJCOPY) --wildcard --keep-global-symbol='qv_client_*' $B/obj/libquiver.o
	$(call say,AR)$(AR) rcs $@ $B/obj/libquiver.o

plugins: $(PLUGIN_SO)

# A stock plugin is a folder of C files.  Installed by rename: a host may have the old file open.
.SECONDEXPANSION:
plugins/%.so: $$(wildcard plugins/%/*.[ch]) $$(PLUGIN_SRC_$$*) sdk/include/quiver/plugin.h sdk/plugin.map
	$(call say,CC)$(CC) -std=c11 -O2 -g $(PATHLESS) $(HARDEN) -Wall -Wextra -Wpedantic $(if $(WERROR),-Werror) -D_GNU_SOURCE -Isdk/include \
	        -fPIC -fvisibility=hidden -shared $(HARDEN_LD) -Wl,--version-script=sdk/plugin.map -Wl,-z,defs -o $@.new $(filter %.c,$^) \
	        -pthread $(PLUGIN_LIBS_$*)
	@mv $@.new $@

#@ make run        start a host with the embedded default: no server needed
run: deps
	@$(BUILD_QUIETLY)
	@host=$$$$; (while sleep 0.2; kill -0 $$host 2>/dev/null; do \
	        $(QUIVER) status -c etc/runtime.cfg --fail-if unowned=1 >/dev/null 2>&1 && { \
	                echo "Ready.  In another terminal:  $(QUIVER) submit echo --wait world"; \
	                page=$$($(QUIVER) page -c etc/runtime.cfg 2>/dev/null) && echo "In a browser:  $$page"; exit; }; \
	done) & exec $(QUIVER) run -c etc/runtime.cfg

#@ make clean      remove build/ and the built plugins
clean:
	rm -rf build plugins/*.so

# --- install ----------------------------------------------------------------------------------------------------------

# The manual and the completion of shells come from the tables that --help prints: the program itself writes them.
COMMANDS  := $(shell sed -n 's/^        { "\([a-z]*\)", cmd_[a-z]*, ".*/\1/p' runtime/main.c)
MAN       := $(if $(shell command -v scdoc),$B/man/quiver.1 $(COMMANDS:%=$B/man/quiver-%.1))
COMPLETION := $B/completion/quiver.bash $B/completion/_quiver $B/completion/quiver.fish

#@ make man        pages of the manual in build/man/ (with Debian's scdoc; make install takes them along if it is there)
.PHONY: man man-deps
man: man-deps
	@$(MAKE_PARALLEL) man-pages
man-deps:
	$(call install_missing,$(DEPS) scdoc)
.PHONY: man-pages
man-pages: $(MAN)

$B/man/quiver.1: $(QUIVER)
	@mkdir -p $(@D)
	@$(QUIVER) help --man | scdoc > $@
$B/man/quiver-%.1: $(QUIVER)
	@mkdir -p $(@D)
	@$(QUIVER) help $* --man | scdoc > $@
$B/completion/quiver.bash $B/completion/quiver.fish: $B/completion/quiver.%: $(QUIVER)
	@mkdir -p $(@D)
	@$(QUIVER) help --completion $* > $@
$B/completion/_quiver: $(QUIVER)
	@mkdir -p $(@D)
	@$(QUIVER) help --completion zsh > $@

DOCS      := README.md LICENSE $(wildcard etc/*.md) sdk/README.md sdk/pipe/README.md
EXAMPLES  := $(wildcard sdk/examples/*.c) plugins/echo/echo.c plugins/exec/exec.c
# What goes where under PREFIX: mode:from:to, or link:to what:to.  uninstall removes exactly this.
INSTALLED := 755:$(QUIVER):bin/quiver \
             $(foreach h,$(notdir $(wildcard sdk/include/quiver/*.h)),644:sdk/include/quiver/$h:include/quiver/$h) \
             644:sdk/plugin.mk:share/quiver/plugin.mk \
             644:sdk/plugin.map:share/quiver/plugin.map \
             644:$B/quiver.service:lib/systemd/system/quiver.service \
             644:etc/quiver.sysusers:lib/sysusers.d/quiver.conf \
             644:etc/quiver.tmpfiles:lib/tmpfiles.d/quiver.conf \
             644:$B/quiver.logrotate:share/quiver/quiver.logrotate \
             644:$B/runtime.cfg:share/quiver/runtime.cfg \
             644:etc/cluster.cfg:share/quiver/cluster.cfg \
             644:etc/openapi.json:share/quiver/openapi.json \
             644:etc/alerts.yml:share/quiver/alerts.yml \
             644:etc/grafana.json:share/quiver/grafana.json \
             644:etc/quiver.socket:lib/systemd/system/quiver.socket \
             644:etc/nginx.conf:share/quiver/nginx.conf \
             $(foreach d,$(DOCS),644:$d:share/doc/quiver/$d) \
             $(foreach e,$(EXAMPLES),644:$e:share/doc/quiver/examples/$(notdir $e)) \
             644:$B/libquiver-mock.a:$(LIBDIR)/libquiver-mock.a \
             644:$B/libquiver.a:$(LIBDIR)/libquiver.a \
             755:$B/libquiver.so.1:$(LIBDIR)/libquiver.so.1 \
             link:libquiver.so.1:$(LIBDIR)/libquiver.so \
             644:$B/quiver-client.pc:$(LIBDIR)/pkgconfig/quiver-client.pc \
             644:$B/quiver-plugin.pc:$(LIBDIR)/pkgconfig/quiver-plugin.pc \
             644:$B/quiver-mock.pc:$(LIBDIR)/pkgconfig/quiver-mock.pc \
             $(foreach w,$(wildcard sdk/pipe/*/quiver_pipe.*),644:$w:share/quiver/$(w:sdk/%=%)) \
             644:$B/completion/quiver.bash:share/bash-completion/completions/quiver \
             644:$B/completion/_quiver:share/zsh/site-functions/_quiver \
             644:$B/completion/quiver.fish:share/fish/vendor_completions.d/quiver.fish \
             $(foreach m,$(MAN),644:$m:share/man/man1/$(notdir $m)) \
             $(foreach p,$(PLUGINS),644:plugins/$p.so:lib/quiver/plugins/$p.so)
# Folders that are Quiver's own; removed if nothing else is left in them.
OWN_DIRS  := $(addprefix share/doc/quiver/,sdk/pipe etc sdk examples) share/doc/quiver include/quiver $(patsubst sdk/%/,share/quiver/%,$(wildcard sdk/pipe/*/)) share/quiver/pipe share/quiver lib/quiver/plugins lib/quiver

# With PREFIX in them, and the sample with the folders that the unit makes.
PLACED    := $B/quiver.service $B/quiver.logrotate $B/runtime.cfg
.PHONY: $(PLACED)
$(PLACED): $B/%: etc/%
	@mkdir -p $(@D)
	@sed -e 's|/usr/local|$(PREFIX)|g' -e 's|"../var"|"/var/lib/quiver"|' -e 's|:../var|:/var/lib/quiver|' \
	        -e 's|"../plugins"|"$(PREFIX)/lib/quiver/plugins"|' $< > $@

PC        := $B/quiver-plugin.pc $B/quiver-mock.pc $B/quiver-client.pc
# Made anew each time: PREFIX may have changed.
.PHONY: $(PC)
$(PC): $B/%.pc: sdk/%.pc.in
	@mkdir -p $(@D)
	@sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@VERSION@|$(VERSION)|' $< > $@

# Every file by rename: a host may have the old one open, and must not see half of the new one.
#@ make install    into PREFIX, DESTDIR honoured; make uninstall takes it back
install: build $B/libquiver-mock.a $B/libquiver.a $B/libquiver.so.1 $(PC) $(PLACED) $(MAN) $(COMPLETION)
	@for entry in $(INSTALLED); do \
	        IFS=: read -r mode from to <<< "$$entry"; \
	        to="$(DESTDIR)$(PREFIX)/$$to"; \
	        if [ "$$mode" = link ]; then ln -sf "$$from" "$$to.new"; else install -D -m "$$mode" "$$from" "$$to.new"; fi && \
	                mv -fT "$$to.new" "$$to" || exit 1; \
	        echo "$$to"; \
	done
	@if [ -n "$(DESTDIR)" ]; then exit 0; \
	elif [ "$$(id -u)" = 0 ] && command -v ldconfig >/dev/null && ldconfig && ldconfig -p | grep -q '$(PREFIX)/$(LIBDIR)/libquiver.so'; then \
	        echo "libquiver.so is known to the loader."; \
	else \
	        echo "The loader does not search $(PREFIX)/$(LIBDIR): programs that use libquiver.so need LD_LIBRARY_PATH=$(PREFIX)/$(LIBDIR),"; \
	        echo "or, as root: echo $(PREFIX)/$(LIBDIR) > /etc/ld.so.conf.d/quiver.conf && ldconfig"; \
	fi; \
	echo "A folder to begin with: $(PREFIX)/bin/quiver init FOLDER.  Under systemd: $(PREFIX)/lib/systemd/system/quiver.service says how."

uninstall:
	@for entry in $(INSTALLED); do rm -f "$(DESTDIR)$(PREFIX)/$${entry##*:}"; done
	@for dir in $(OWN_DIRS); do rmdir "$(DESTDIR)$(PREFIX)/$$dir" 2>/dev/null || true; done

include etc/packages/packages.mk tests/tests.mk tests/bench/bench.mk
-include $(shell find $B/obj -name '*.d' 2>/dev/null)
