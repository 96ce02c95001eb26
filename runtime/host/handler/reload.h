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

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "config/shared.h"
#include "host/handler/handlers.h"

/* Who waits for an answer: one of both is called, exactly once.  `reply` is taken. */
struct reload_caller {
        void (*reply)(struct reload_caller *caller, json_t *reply);
        void (*refuse)(struct reload_caller *caller, const char *text);
};

/* What a reload needs its host for. */
struct reload_events {
        /* Answers the order of that number. */
        void (*ordered)(void *self, uint32_t order, const json_t *reply);
        /* The configuration is right, and in force from now on: takes a share of it, and those settings that are not a
         * handler's own.  The handlers follow. */
        void (*take)(void *self, struct shared_config *shared);
        /* All handlers have followed, or are about to. */
        void (*taken)(void *self);
};

/* Somebody who wants a reload. */
struct reload_asker {
        struct reload_asker *next;
        struct reload_caller *caller; /* to be answered; NULL: a signal */
        uint32_t order;               /* to be answered; 0: none (reload_order.h) */
        bool is_dry;                  /* only say what would happen */
        bool is_patient;              /* answer when it is known how it went */
        uint32_t reload;              /* the one that served it */
        char by[64];
        json_t *plan; /* what was planned for each handler */
};

enum reload_state {
        RELOAD_NOT_YET, /* The host is starting: who asks has to wait. */
        RELOAD_SERVED,
        RELOAD_OVER, /* The host is stopping: who asks is refused. */
};

/* Reloads that were not dry, since the host started. */
struct reload_counts {
        uint64_t taken;
        uint64_t partly;  /* A handler's new version was refused or held back; the rest was taken. */
        uint64_t refused; /* Nothing was changed. */
};

struct reload {
        enum reload_state state;
        struct reload_counts counts;
        uint32_t number;              /* of the latest */
        struct reload_job *job;       /* the one that is being read */
        struct reload_asker *askers;  /* wait for the next */
        struct reload_asker *waiters; /* wait for how it went */

        /* Set by the caller. */
        uv_loop_t *loop;
        const struct config *config; /* in force */
        struct handlers *handlers;
        const struct reload_events *events;
        void *self; /* theirs */
};

/* As soon as the host runs and nothing else is being read.  `caller` NULL: nobody waits for an answer. */
void reload_ask(struct reload *r, const char *by, struct reload_caller *caller, bool is_dry, bool is_patient);
/* Answers `caller` as soon as it is known what became of every version that the reload of that number brought. */
void reload_await(struct reload *r, uint32_t reload, struct reload_caller *caller);
/* Both for an order, which is answered with events->ordered(). */
void reload_ask_ordered(struct reload *r, uint32_t order);
void reload_await_ordered(struct reload *r, uint32_t reload, uint32_t order);
/* The host runs now: serves who has asked already. */
void reload_begin(struct reload *r);
/* Before the loop sleeps: answers who waited for a reload that is decided now. */
void reload_look(struct reload *r);
/* The host ends: tells everybody. */
void reload_end(struct reload *r);

/* Whether a reload is being read, or a new version of a handler has yet to serve or be refused. */
bool reload_is_busy(const struct reload *r);

/* What the host says about its handlers' versions: adds "reloads", and "generations" to each handler. */
void reload_report(const struct reload *r, json_t *document);

#endif
