/* worker.h: the thread that does everything that touches the folder.
 *
 * It sleeps until the loop has a job, a bell rings, a process ends, or somebody's heartbeat is overdue; then it reads
 * what is new in the log, ends dead sessions, does the jobs in order, and hands back what came of it. */
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
        void (*handed)(void *self); /* there is something in `done`; called on the thread */
        void *self;

        /* between the threads, under the mutex */
        pthread_mutex_t mutex;
        struct job_list todo;
        struct job_list done;
        uint8_t token[TREE_NONCE_SIZE]; /* of the session, for the guard */

        /* the thread's */
        pthread_t thread;
        int wake_fd; /* written by the loop */
        int epoll_fd;
        int bell_fd;
        struct folder folder;
        struct replica replica;
        bool is_connected;
        bool is_opened; /* the loop was told */
        bool is_stopping;
        struct own_session own;
        struct peers peers;
        struct watches watches;
        struct job_list waiting; /* requests that are to be done */
        struct job_list beats;
        struct job_list out;  /* for the loop, when what was written is safe */
        uint64_t troubled_ms; /* since when the folder cannot be used; 0: it can */
        struct error told;    /* the last error that was logged */
};

/* Both threads. */
int worker_start(struct worker *worker, struct error *error);
void worker_post(struct worker *worker, struct job *job);
void worker_take(struct worker *worker, struct job_list *ret_list);
/* To be called after JOB_STOP came back. */
void worker_join(struct worker *worker);

/* connect.c: on the thread. */
int worker_connect(struct worker *worker, struct error *error);
/* Gives up everything but the jobs; the session ends as soon as another process looks. */
void worker_disconnect(struct worker *worker);
/* A new session, told to the loop. */
int worker_session_open(struct worker *worker, struct error *error);
void worker_note(struct worker *worker, struct job *note);
void worker_note_session(struct worker *worker, enum coord_state state, uint64_t session);

/* execute.c: on the thread.  Does what the job wants; a negative return is a failure to read or write, which is not the
 * job's fault. */
int worker_execute(struct worker *worker, struct job *job, struct error *error);

#endif
