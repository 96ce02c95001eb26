# plugin.mk: builds a Quiver plugin that exports its table and nothing else.  A whole Makefile is:
#
#         NAME = mine
#         SRC  = mine.c helper.cc        # C (.c), C++ (.cc, .cpp), or both
#         TEST = test_mine.c             # linked with SRC and the mock host; optional
#         PKGS = libcurl jansson         # libraries that pkg-config knows; optional
#         include .../plugin.mk
#
# targets:   all (NAME.so), test, try, install, clean
# settings:  CFLAGS CXXFLAGS CPPFLAGS LDFLAGS LDLIBS; SAN=1: test with sanitizers; PLUGINS: folder of install; QUIVER
#
# It works where it lies: in Quiver's source tree, or in PREFIX/share/quiver.

ifndef NAME
$(error plugin.mk: set NAME, the plugin's name, before the include)
endif
ifndef SRC
$(error plugin.mk: set SRC, the plugin's source files, before the include)
endif

QV_SDK := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
ifneq ($(wildcard $(QV_SDK)/include/quiver/plugin.h),)
QV_INCLUDE  := $(QV_SDK)/include
QV_MOCK_SRC := $(wildcard $(QV_SDK)/mock/*.c)
PLUGINS     ?= $(abspath $(QV_SDK)/../plugins)
QUIVER      ?= $(abspath $(QV_SDK)/../build/quiver)
else
QV_PREFIX   := $(abspath $(QV_SDK)/../..)
QV_INCLUDE  := $(QV_PREFIX)/include
# In lib/, or where Debian's packages have it: in the folder of the compiler's machine.
QV_MOCK_LIB := $(firstword $(wildcard $(QV_PREFIX)/lib/$(shell $(CC) -print-multiarch 2>/dev/null)/libquiver-mock.a) \
                           $(QV_PREFIX)/lib/libquiver-mock.a)
PLUGINS     ?= $(QV_PREFIX)/lib/quiver/plugins
QUIVER      ?= $(QV_PREFIX)/bin/quiver
endif

# A library that is missing is named before a compiler complains about its header.
ifneq ($(strip $(PKGS)),)
PKG_CONFIG ?= pkg-config
QV_PKGS    := $(shell $(PKG_CONFIG) --print-errors --errors-to-stdout --exists $(PKGS) || echo "pkg-config failed")
ifneq ($(strip $(QV_PKGS)),)
$(error plugin.mk: PKGS = $(PKGS): $(QV_PKGS).  Install the development packages (Debian: libcurl4-openssl-dev libpq-dev \
        libsqlite3-dev libjansson-dev libssl-dev, and pkg-config))
endif
QV_PKG_CFLAGS := $(shell $(PKG_CONFIG) --cflags $(PKGS))
QV_PKG_LIBS   := $(shell $(PKG_CONFIG) --libs $(PKGS))
endif

CFLAGS   ?= -O2 -g -Wall -Wextra
CXXFLAGS ?= -O2 -g -Wall -Wextra

# The linker is the C++ compiler's as soon as one file wants it.
QV_IS_CXX := $(filter-out %.c,$(SRC))
QV_LINK   := $(if $(QV_IS_CXX),$(CXX),$(CC))
QV_LINK_T := $(if $(filter-out %.c,$(SRC) $(TEST)),$(CXX),$(CC))

# GCC makes inline statics of C++ unique in the whole process, whatever else says that they are private; Clang does not,
# and does not know the option.
QV_UNIQUE  := $(if $(QV_IS_CXX),$(shell $(CXX) -fno-gnu-unique -E -x c++ /dev/null >/dev/null 2>&1 && \
                                        echo -fno-gnu-unique))
# What makes a mistake in memory end in a crash, as far as the compilers know it.  FORTIFY needs an optimiser, and leaves
# alone what CFLAGS or the system say about it.
qv_known    = $(shell $(CC) -Werror $(1) -c -x c -o /dev/null /dev/null 2>/dev/null && \
                      $(CXX) -Werror $(1) -c -x c++ -o /dev/null /dev/null 2>/dev/null && echo '$(1)')
QV_HARDEN  := -fstack-protector-strong $(call qv_known,-fstack-clash-protection) $(call qv_known,-fcf-protection=full) \
              $(call qv_known,-mbranch-protection=standard)
QV_FORTIFY  = $(if $(filter -O1 -O2 -O3 -Os,$(1)),$(if $(findstring _FORTIFY_SOURCE,$(1) $(CPPFLAGS)),, \
                      -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2))
QV_SHARED  := -fPIC -pthread -fvisibility=hidden $(QV_HARDEN)
QV_CXX     := -std=gnu++17
# No symbol left open, all of them bound at load: what is missing is found by the linker, not by a task.
QV_LDFLAGS := -shared -pthread -Wl,--version-script=$(QV_SDK)/plugin.map -Wl,-z,defs \
              -Wl,-z,relro,-z,now,-z,noexecstack

# Tests have objects of their own: they are no shared library, and may be built with sanitizers.
QV_T       := build/test$(if $(SAN),-san)
QV_SAN     := -pthread $(if $(SAN),-fsanitize=address -fsanitize=undefined -fno-omit-frame-pointer)
QV_MOCK    := $(if $(QV_MOCK_SRC),$(patsubst $(QV_SDK)/mock/%.c,$(QV_T)/mock/%.o,$(QV_MOCK_SRC)),$(QV_MOCK_LIB))

QV_OBJ     := $(SRC:%=build/%.o)
QV_TEST    := $(QV_T)/run
QV_TESTOBJ := $(SRC:%=$(QV_T)/%.o) $(TEST:%=$(QV_T)/%.o)

.DEFAULT_GOAL := all
.PHONY: all test try install clean

all: $(NAME).so

# By rename: a host may have the old file open.
$(NAME).so: $(QV_OBJ) $(QV_SDK)/plugin.map
	$(QV_LINK) $(QV_LDFLAGS) $(LDFLAGS) -o $@.new $(QV_OBJ) $(QV_PKG_LIBS) $(LDLIBS)
	@mv -f $@.new $@

ifeq ($(strip $(TEST)),)
test: all
	@echo "$(NAME): no TEST is set in the Makefile; nothing to test"
else
test: $(QV_TEST)
	./$(QV_TEST)
endif

$(QV_TEST): $(QV_TESTOBJ) $(QV_MOCK)
	$(QV_LINK_T) $(QV_SAN) $(LDFLAGS) -o $@ $^ $(QV_PKG_LIBS) $(LDLIBS)

try: all
	$(QUIVER) try ./$(NAME).so --payload "hello world"

install: all
	install -d $(DESTDIR)$(PLUGINS)
	install -m 644 $(NAME).so $(DESTDIR)$(PLUGINS)/.$(NAME).so.new
	mv -f $(DESTDIR)$(PLUGINS)/.$(NAME).so.new $(DESTDIR)$(PLUGINS)/$(NAME).so

clean:
	rm -rf build $(NAME).so

# $(call QV_COMPILE,COMPILER AND ITS FLAGS)
define QV_COMPILE
@mkdir -p $(@D)
$(1) -I$(QV_INCLUDE) $(QV_PKG_CFLAGS) -MMD -MP $(CPPFLAGS) -c -o $@ $<
endef

$(QV_T)/%.c.o: %.c
	$(call QV_COMPILE,$(CC) $(QV_SAN) $(CFLAGS))
$(QV_T)/%.cc.o: %.cc
	$(call QV_COMPILE,$(CXX) $(QV_CXX) $(QV_SAN) $(CXXFLAGS))
$(QV_T)/%.cpp.o: %.cpp
	$(call QV_COMPILE,$(CXX) $(QV_CXX) $(QV_SAN) $(CXXFLAGS))
$(QV_T)/mock/%.o: $(QV_SDK)/mock/%.c
	$(call QV_COMPILE,$(CC) -std=gnu11 -D_GNU_SOURCE -g $(QV_SAN))

build/%.c.o: %.c
	$(call QV_COMPILE,$(CC) $(QV_SHARED) $(call QV_FORTIFY,$(CFLAGS)) $(CFLAGS))
build/%.cc.o: %.cc
	$(call QV_COMPILE,$(CXX) $(QV_CXX) $(QV_SHARED) $(QV_UNIQUE) $(call QV_FORTIFY,$(CXXFLAGS)) $(CXXFLAGS))
build/%.cpp.o: %.cpp
	$(call QV_COMPILE,$(CXX) $(QV_CXX) $(QV_SHARED) $(QV_UNIQUE) $(call QV_FORTIFY,$(CXXFLAGS)) $(CXXFLAGS))

-include $(QV_OBJ:.o=.d) $(QV_TESTOBJ:.o=.d) $(patsubst %.o,%.d,$(filter %.o,$(QV_MOCK)))
