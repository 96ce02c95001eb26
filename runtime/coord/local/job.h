/* job.h: the messages between the loop and the worker's thread.
 *
 * A job has its own copies of everything, so the loop can give up a request at any time: it only clears the job's
 * `request`. */
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
        struct arena_chunk *memory; /* owns everything that the job points to */
        int status;
        struct error error;

        /* REQUEST.  `request` is used by the loop only; NULL: nobody waits for it any more. */
        struct coord_request *request;
        unsigned op;
        uint64_t session; /* REQUEST: the session in which it was started, 0: any.  SESSION: which one */
        const char *path; /* GET, CHILDREN, CHANGED */
        bool watch;
        struct tree_change change; /* all other requests */
        struct span data;
        struct coord_stat stat;
        const char **names;
        uint32_t names_count;

        uint64_t at_ms;         /* BEAT: when the loop sent it */
        enum coord_state state; /* SESSION */
        char *url;              /* OPENED: malloc'd; the receiver frees it */
};

struct job *job_new(enum job_kind kind);
void job_free(struct job *job);
/* Copies a request that coord.c has checked. */
struct job *job_from_request(struct coord_request *request);
/* Fills in the reply of the job's request. */
void job_reply(struct job *job);

struct job_list {
        struct job *first;
        struct job **last; /* NULL: empty */
};

void job_add(struct job_list *list, struct job *job);
struct job *job_take(struct job_list *list);
/* Appends all jobs of `from` to `list`. */
void job_move(struct job_list *list, struct job_list *from);

#endif
