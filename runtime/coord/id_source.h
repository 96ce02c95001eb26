/* id_source.h: the unique ids of a process: a generator, and the slot that the process holds for it.
 *
 * A recipe above slot.h, without I/O of its own.  The slot is taken when the first id is asked for, and its horizon is
 * moved while ids are asked for.  So a process that gives no ids costs nothing. */
#ifndef QUIVER_COORD_ID_SOURCE_H
#define QUIVER_COORD_ID_SOURCE_H

#include "coord/slot.h"
#include "id/generator.h"

/* A request for ids.  Zero it and set the upper part; done() is called exactly once, on the loop, perhaps inside
 * id_source_ask(). */
struct id_ask {
        void (*done)(struct id_ask *ask);
        uint32_t want;        /* at most; at least 1 */
        uint64_t deadline_ms; /* by clock_boot_ms() */

        /* 0, and 1 to `want` ids; -EBUSY: no slot is free; -EDOM: the clock is far behind the last id; -EOVERFLOW: the
         * clock is outside the layout's times; -EBADMSG; -ETIMEDOUT; -ECANCELED. */
        int status;
        struct error error;
        struct id_block block;

        struct id_ask *prev, *next;
};

struct id_source_options {
        const struct id_layout *layout;
        const char *nonce; /* see slot.h */
        uint32_t fixed;    /* the slot's number, or SLOT_ANY */
        uint64_t horizon_ms;
        const char *says;
        void (*due_changed)(void *self); /* due_ms has changed; NULL: the owner reads it before it sleeps */
        void *self;
};

struct id_source {
        struct id_generator generator;
        struct slot slot;
        uint64_t horizon_ms;
        uint64_t from_ms; /* start of the slot's grant */
        bool is_taking;   /* the slot was asked for */
        struct id_ask *asks;
        uint64_t due_ms; /* when id_source_tick() is due; UINT64_MAX: never */
        void (*due_changed)(void *self);
        void *self;
        void (*released)(void *self);
        void *released_self;
};

/* `session` is the tree's session; 0: none yet. */
void id_source_open(
        struct id_source *source, struct coord *coord, const struct id_source_options *options, uint64_t session);
/* Call after the tree was closed.  Asks that still wait are finished. */
void id_source_free(struct id_source *source);

void id_source_ask(struct id_source *source, struct id_ask *ask);
/* Moves the horizon if less than half of it is left.  For callers that use the generator directly. */
void id_source_top_up(struct id_source *source);
bool id_source_wants_more(const struct id_source *source);

/* Gives the slot back; no ask may follow.  released() is called when that is done, or at once if there is no slot. */
void id_source_release(struct id_source *source, void (*released)(void *self), void *self);

void id_source_tick(struct id_source *source, uint64_t now_ms);
/* The owner of the tree passes the tree's events on to these. */
void id_source_session(struct id_source *source, enum coord_state state, uint64_t session);
void id_source_look(struct id_source *source);

/* The error of a verdict other than ID_GIVEN and ID_WAIT: -errno with the text set. */
int id_verdict_error(enum id_verdict verdict, const struct id_generator *generator, const struct id_block *block,
        struct error *error);

#endif
