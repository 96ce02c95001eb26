/* run_while_held.h: a command that runs while a lock is held, or while we lead, and not a moment longer: it, and all
 * that it has started, is gone before the lock is given back.  Two processes see to it: front.h. */
#ifndef QUIVER_CLI_LOCK_RUN_WHILE_HELD_H
#define QUIVER_CLI_LOCK_RUN_WHILE_HELD_H

#include "cli/lock/front.h"
#include "cli/lock/tree.h"
#include "coord/lock.h"

#define HELD_SIGNALS        4
#define HELD_FOREVER        UINT32_MAX
#define HELD_UNSET          UINT64_MAX
#define HELD_TTL_MAX_MS     300000u
#define HELD_BACKOFF_MAX_MS 3600000u

struct held {
        /* given */
        const char *name;
        char **argv; /* the command, ended by NULL */
        bool is_election;
        bool is_try;
        bool has_retries; /* tries, instead of waiting in order */
        bool is_verbose;
        uint32_t retries;  /* that are left, or HELD_FOREVER */
        uint32_t limit;    /* as lock_set_limit() takes it */
        uint64_t ttl_ms;   /* of the session; 0: as the settings have it */
        uint64_t wait_ms;  /* for it, or for the coordination; 0: as the settings have it, and 0 there: for ever */
        uint64_t grace_ms; /* from SIGTERM to SIGKILL; HELD_UNSET: as the settings have it */
        uint64_t backoff_ms, backoff_max_ms; /* 0: as the settings have it */
        int busy_code;                       /* if it could not be had */

        struct cli_tree tree;
        bool is_open;
        struct lock lock;
        struct queue queue; /* of an election */
        uint64_t token;
        bool has_session;
        bool is_held;
        bool was_lost; /* while the command ran, which is being stopped */
        bool is_over;
        int code;
        pid_t pid;        /* of the command; 0: does not run */
        pid_t group;      /* of the last that did */
        int status;       /* how it ended, while what it has started is killed: */
        bool is_sweeping; /* not before all of it is gone may another one begin, or the lock be free */
        bool has_immortal;
        bool has_left; /* the queue, at the end */
        struct front front;
        bool is_front_gone;
        bool is_front_stopped; /* for a session's time */
        bool is_stepping_down; /* for that reason, as soon as the command is gone */
        unsigned front_stops;  /* looks in a row that found it stopped */
        uv_poll_t front_poll;
        uint32_t tries;    /* in vain, so far */
        uint64_t asked_ms; /* when it was first wanted */
        uv_timer_t wait_timer, kill_timer, sweep_timer, front_timer, retry_timer;
        uv_signal_t signals[HELD_SIGNALS];
};

/* Opens the tree, waits, runs the command, and returns its exit code, 128 + N if signal N ended it. */
int held_run(struct held *held, const char *command, const char *given_config);

#endif
