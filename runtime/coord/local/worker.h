/* worker.h: the thread that does everything that touches the folder.
 *
 * It sleeps until the loop posts a job, a bell rings, a process ends, or a heartbeat is overdue; then it reads the new
 * records of the log, ends dead sessions, does the jobs in order, and passes the results back. */
#ifndef QUIVER_COORD_LOCAL_WORKER_H
#define QUIVER_COORD_LOCAL_WORKER_H

#include "coord/local/job.h"
#include "coord/local/replica.h"
#include "coord/local/session.h"
#include "coord/local/watch.h"

struct worker {
        /* Set before the thread starts. */
        char *where;
        char *app;
        uint64_t session_ms;
        bool is_visitor;
        void (*handed)(void *self); /* `done` has jobs; called on the thread */
        void *self;

        /* shared by both threads, under the mutex */
        pthread_mutex_t mutex;
        struct job_list todo;
        struct job_list done;
        uint8_t token[TREE_NONCE_SIZE]; /* of the session, for the guard */

        /* used by the thread only */
        pthread_t thread;
        int wake_fd; /* written by the loop */
        int epoll_fd;
        int bell_fd;
        struct folder folder;
        struct replica replica;
        bool is_connected;
        bool is_opened; /* the open was reported to the loop */
        bool is_stopping;
        struct own_session own;
        struct peers peers;
        struct watches watches;
        struct job_list waiting; /* requests that are not carried out yet */
        struct job_list beats;
        struct job_list out;  /* for the loop, once what was written is synced */
        uint64_t troubled_ms; /* since when the folder cannot be used; 0: it can */
        struct error told;    /* the last error that was logged */
};

/* For the loop's thread. */
int worker_start(struct worker *worker, struct error *error);
void worker_post(struct worker *worker, struct job *job);
void worker_take(struct worker *worker, struct job_list *ret_list);
/* Call after JOB_STOP has come back. */
void worker_join(struct worker *worker);

/* connect.c: on the thread. */
int worker_connect(struct worker *worker, struct error *error);
/* Gives up everything except the jobs; the session ends as soon as another process looks. */
void worker_disconnect(struct worker *worker);
/* Opens a new session and reports it to the loop. */
int worker_session_open(struct worker *worker, struct error *error);
void worker_note(struct worker *worker, struct job *note);
void worker_note_session(struct worker *worker, enum coord_state state, uint64_t session);

/* execute.c: on the thread.  Carries out the job; a negative result is a failure to read or write the folder, not the
 * job's. */
int worker_execute(struct worker *worker, struct job *job, struct error *error);

#endif
