/* reload.h: takes up new configuration and plugins while the host runs.
 *
 *         asked → read (on another thread: the whole file, every plugin's bytes) → planned → carried out → settled
 *
 * Nothing changes before all of it is known to be right: a mistake in the file, or a setting that only a restart can
 * change, and everything stays as it was.  Who asks while one is being read is served by the next; many who ask at once
 * by the same one.  A plugin that cannot be taken is refused by name, and the handler goes on as it is; the rest is
 * carried out. */
#ifndef QUIVER_HOST_HANDLER_RELOAD_H
#define QUIVER_HOST_HANDLER_RELOAD_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "host/control.h"
#include "host/handler/reload_history.h"

struct host;

/* Somebody who wants a reload. */
struct reload_asker {
        struct reload_asker *next;
        struct control_call *call; /* NULL: a signal */
        bool is_dry;               /* only say what would happen */
        bool is_patient;           /* answer when it is known how it went */
        uint32_t reload;           /* the one that served it */
        char by[64];
        json_t *plan; /* what was planned for each handler */
};

struct reload {
        uint32_t number;              /* of the latest */
        struct reload_job *job;       /* the one that is being read */
        struct reload_asker *askers;  /* wait for the next */
        struct reload_asker *waiters; /* wait for how it went */
        struct history history;
};

/* As soon as the host runs and nothing else is being read. */
void reload_ask(struct host *h, const char *by, struct control_call *call, bool is_dry, bool is_patient);
/* The host runs now: serves who has asked already. */
void reload_begin(struct host *h);
/* Something has settled: answers who waited for it. */
void reload_look(struct host *h);
/* The host ends: tells everybody. */
void reload_end(struct host *h);

/* Whether a reload is being read, or a new version of a handler has yet to serve or be refused. */
bool reload_is_busy(const struct host *h);

/* What the host says about its handlers' versions: adds "reloads", and "generations" to each handler. */
void reload_report(const struct host *h, json_t *document);

#endif
