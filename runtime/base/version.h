/* version.h: what `quiver --version` says. */
#ifndef QUIVER_BASE_VERSION_H
#define QUIVER_BASE_VERSION_H

#include <quiver/plugin.h>

#define QUIVER_VERSION   "0.2.0"
#define QUIVER_ABI_MAJOR QV_ABI_MAJOR
#define QUIVER_ABI_MINOR QV_ABI_MINOR

#endif
