# Tarball, Debian's packages, container image.  Included by the Makefile at the top, from where all paths count.

#@ make dist       build/dist/quiver-VERSION.tar.xz, the same bytes each time, and a list of what it links (SPDX)
#@ make deb        Debian's packages in build/deb/, checked by lintian; what they need to be built is installed
#@ make image      a container image in build/image/, out of these packages and Debian's (mmdebstrap)
#@ make reproducible  builds twice, in two folders, and compares

DEB_DEPS   := $(DEPS) debhelper dpkg-dev fakeroot scdoc lintian xz-utils
IMAGE_DEPS := mmdebstrap python3
.PHONY: dist dist-tarball deb image sbom reproducible

# A make inside a rule that must not hear of settings of this one.
CLEAN_ENV  := env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u MAKEOVERRIDES -u PREFIX -u DESTDIR -u SAN
SHIPPED    := build/libquiver.so.1 build/libquiver.a build/libquiver-mock.a
JOBS       := $(shell nproc)

dist: dist-tarball
	@$(MAKE_PARALLEL) sbom
	@cp build/quiver.spdx.json $(DIST)/quiver-$(VERSION).spdx.json
	@cd $(DIST) && sha256sum quiver-$(VERSION).*

DIST     ?= build/dist
XZ_LEVEL ?= -6
dist-tarball:
	@rm -rf $(DIST)
	@etc/packages/stage.sh $(DIST)/quiver-$(VERSION)
	@set -o pipefail; . $(DIST)/quiver-$(VERSION)/.release && tar -C $(DIST) --sort=name --owner=0 --group=0 --numeric-owner \
	        --mode=a+rX,u+w,go-w --mtime=@$$epoch --format=gnu -cf - quiver-$(VERSION) | xz -T1 $(XZ_LEVEL) > $(DIST)/quiver-$(VERSION).tar.xz
	@rm -r $(DIST)/quiver-$(VERSION)

# What the binary, the client library and the stock plugins link, by Debian's packages.
sbom: build build/libquiver.so.1
	@etc/packages/sbom.py $(VERSION) build/quiver build/libquiver.so.1 $(PLUGIN_SO) > build/quiver.spdx.json.new
	@mv build/quiver.spdx.json.new build/quiver.spdx.json

deb:
	$(call install_missing,$(DEB_DEPS))
	@rm -rf build/deb
	@etc/packages/stage.sh build/deb/quiver-$(VERSION)
	@mv build/deb/quiver-$(VERSION)/etc/debian build/deb/quiver-$(VERSION)/debian
	@cd build/deb/quiver-$(VERSION) && $(CLEAN_ENV) dpkg-buildpackage -us -uc -b -j$(JOBS) > ../build.log 2>&1 || { \
	        tail -40 ../build.log; echo "the rest is in build/deb/build.log"; exit 1; }
	@rm -rf build/deb/quiver-$(VERSION)
	@lintian --allow-root --display-info --fail-on error,warning,info build/deb/*.changes
	@ls build/deb/*.deb

image:
	$(call install_missing,$(IMAGE_DEPS))
	@[ -n "$$(ls build/deb/quiver_$(VERSION)_*.deb 2>/dev/null)" ] || $(MAKE) --no-print-directory deb
	@etc/packages/image.py $(VERSION) build/deb build/image

reproducible:
	@rm -rf build/reproducible
	@for to in a another-folder; do \
	        etc/packages/stage.sh build/reproducible/$$to && \
	        $(CLEAN_ENV) $(MAKE) --no-print-directory -C build/reproducible/$$to -j$(JOBS) build $(SHIPPED) > build/reproducible/$$to.log 2>&1 || { \
	                tail -20 build/reproducible/$$to.log; exit 1; }; \
	done
	@cd build/reproducible/a && sha256sum build/quiver $(SHIPPED) plugins/*.so > ../sums
	@cd build/reproducible/another-folder && sha256sum -c ../sums
	@rm -rf build/reproducible/a build/reproducible/another-folder
