/* reload.h: takes up new configuration and plugins while the host runs.
 *
 *         asked → read (on another thread: the whole file, every plugin's bytes) → planned → carried out → settled
 *
 * Nothing changes before the whole configuration is known to be right: after a mistake in the file, or a change that
 * needs a restart, everything stays as it was.  A caller that asks while a reload is being read is served by the next
 * one; callers that ask at the same time share one.  A plugin that cannot be loaded is refused by name, and its handler
 * continues as it is; the rest is carried out. */
#ifndef QUIVER_HOST_HANDLER_RELOAD_H
#define QUIVER_HOST_HANDLER_RELOAD_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "config/shared.h"
#include "host/handler/handlers.h"

/* Waits for an answer: exactly one of both functions is called, once.  `reply` takes ownership. */
struct reload_caller {
        void (*reply)(struct reload_caller *caller, json_t *reply);
        void (*refuse)(struct reload_caller *caller, const char *text);
};

/* What a reload tells its host. */
struct reload_events {
        /* Answers the order of that number. */
        void (*ordered)(void *self, uint32_t order, const json_t *reply);
        /* The configuration is right and in force from now on: takes a reference to it, and applies all settings except
         * the handlers' own, which follow. */
        void (*take)(void *self, struct shared_config *shared);
        /* The handlers have been adjusted, or their rollouts have begun. */
        void (*taken)(void *self);
};

/* A request for a reload. */
struct reload_asker {
        struct reload_asker *next;
        struct reload_caller *caller; /* gets the answer; NULL: a signal asked */
        uint32_t order;               /* the order that gets the answer (reload_order.h); 0: none */
        bool is_dry;                  /* only report what would happen */
        bool is_patient;              /* answer when the fate of the new versions is known */
        uint32_t reload;              /* the reload that serves it */
        char by[64];
        json_t *plan; /* the plan of each handler */
};

enum reload_state {
        RELOAD_NOT_YET, /* the host is starting: requests wait */
        RELOAD_SERVED,
        RELOAD_OVER, /* the host is stopping: requests are refused */
};

/* Counts of reloads since the host started, dry ones excluded. */
struct reload_counts {
        uint64_t taken;
        uint64_t partly;  /* the new version of a handler was refused or held back, the rest was taken */
        uint64_t refused; /* nothing was changed */
};

struct reload {
        enum reload_state state;
        struct reload_counts counts;
        uint32_t number;              /* number of the latest reload */
        struct reload_job *job;       /* the reload that is being read */
        struct reload_asker *askers;  /* served by the next reload */
        struct reload_asker *waiters; /* wait until the fate of the new versions is known */

        /* Set by the caller. */
        uv_loop_t *loop;
        const struct config *config; /* in force */
        struct handlers *handlers;
        const struct reload_events *events;
        void *self; /* passed to `events` */
};

/* Reloads as soon as the host runs and no other reload is being read.  `caller` NULL: nobody waits for an answer. */
void reload_ask(struct reload *r, const char *by, struct reload_caller *caller, bool is_dry, bool is_patient);
/* Answers `caller` as soon as the fate of every version that this reload brought is known. */
void reload_await(struct reload *r, uint32_t reload, struct reload_caller *caller);
/* The same two for an order, which is answered with events->ordered(). */
void reload_ask_ordered(struct reload *r, uint32_t order);
void reload_await_ordered(struct reload *r, uint32_t reload, uint32_t order);
/* The host runs now: serves requests that came before. */
void reload_begin(struct reload *r);
/* Called before the loop sleeps: answers callers whose reload is decided now. */
void reload_look(struct reload *r);
/* The host stops: refuses all callers that still wait. */
void reload_end(struct reload *r);

/* Whether a reload is being read, or a new version of a handler does not serve yet and is not refused. */
bool reload_is_busy(const struct reload *r);

/* Adds "reloads" to the status document, and "generations" to each of its handlers. */
void reload_report(const struct reload *r, json_t *document);

#endif
