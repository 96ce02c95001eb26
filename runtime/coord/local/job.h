/* job.h: what the loop and the worker's thread say to each other.
 *
 * A job has its own copies of everything, so that the loop can give a request up at any time: it then only forgets whom
 * to tell. */
#ifndef QUIVER_COORD_LOCAL_JOB_H
#define QUIVER_COORD_LOCAL_JOB_H

#include <pthread.h>

#include "coord/driver.h"
#include "coord/local/tree.h"

enum job_kind {
        /* to the worker, and back when done */
        JOB_REQUEST,
        JOB_BEAT, /* the loop is alive */
        JOB_STOP,
        /* to the loop */
        JOB_OPENED,
        JOB_SESSION,
        JOB_CHANGED,
        JOB_LOOK,
};

struct job {
        struct job *next;
        enum job_kind kind;
        struct arena_chunk *memory; /* of everything that is pointed to */
        int status;
        struct error error;

        /* REQUEST.  `request` is the loop's alone; NULL: nobody waits for it any more. */
        struct coord_request *request;
        unsigned op;
        uint64_t session; /* under which it was started; 0: whichever there is.  SESSION: which */
        const char *path; /* GET, CHILDREN, CHANGED */
        bool watch;
        struct tree_change change; /* the others */
        struct span data;
        struct coord_stat stat;
        const char **names;
        uint32_t names_count;

        uint64_t at_ms;         /* BEAT: when the loop said so */
        enum coord_state state; /* SESSION */
        char *url;              /* OPENED: malloc'd; the receiver's */
};

struct job *job_new(enum job_kind kind);
void job_free(struct job *job);
/* From a request that coord.c has checked. */
struct job *job_from_request(struct coord_request *request);
/* Puts the reply where the request's owner will find it. */
void job_reply(struct job *job);

struct job_list {
        struct job *first;
        struct job **last; /* NULL: empty */
};

void job_add(struct job_list *list, struct job *job);
struct job *job_take(struct job_list *list);
/* All of `from`, after what is in `list`. */
void job_move(struct job_list *list, struct job_list *from);

#endif
