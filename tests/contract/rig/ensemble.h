/* ensemble.h: real servers of one kind for tests, one or three that replicate, on free loopback ports.
 *
 * Each is a process of its own with its data in a temporary folder; none outlives the test program. */
#ifndef QUIVER_TESTS_CONTRACT_ENSEMBLE_H
#define QUIVER_TESTS_CONTRACT_ENSEMBLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define ENSEMBLE_MAX 3

struct ensemble;

/* What servers of one kind need. */
struct ensemble_kind {
        const char *name;      /* of the kind, and the scheme of its URL */
        const char *data;      /* what holds the servers' data in the folder, as a pattern of the shell */
        bool is_in_memory;     /* the folder is where a test does not wait for the disk, if there is such a place */
        bool (*is_here)(void); /* whether it is installed; NULL: tests fail if it is not */
        /* Writes what one server reads at its start; NULL: nothing. */
        void (*prepare)(const struct ensemble *e, unsigned server);
        /* In the child: becomes the server.  Returns if that fails. */
        void (*execute)(const struct ensemble *e, unsigned server);
        bool (*serves)(const struct ensemble *e, unsigned server);
        bool (*leads)(const struct ensemble *e, unsigned server);
};

struct ensemble {
        const struct ensemble_kind *kind;
        char folder[64]; /* with N.log of each server */
        unsigned count;
        bool has_tls;
        struct ensemble_server {
                uint16_t port, peer_port, election_port;
                pid_t pid; /* 0: not running */
        } servers[ENSEMBLE_MAX];
};

/* Makes the folder and chooses the ports; what is needed before the servers start can be put there. */
void ensemble_init(struct ensemble *e, const struct ensemble_kind *kind, unsigned count);
/* Returns when they serve; ends the test program, with the servers' logs, if they do not. */
void ensemble_start(struct ensemble *e);
/* Kills them and removes the folder. */
void ensemble_stop(struct ensemble *e);

/* "KIND://127.0.0.1:…,127.0.0.1:…/ROOT" of all servers. */
void ensemble_url(const struct ensemble *e, const char *root, char *ret_url, size_t size);

void ensemble_kill(struct ensemble *e, unsigned server);
/* Starts one that was killed, on its old ports and data; returns at once. */
void ensemble_restart(struct ensemble *e, unsigned server);
/* SIGSTOP and SIGCONT: it accepts connections, since the kernel does, and never answers. */
void ensemble_pause(struct ensemble *e, unsigned server);
void ensemble_resume(struct ensemble *e, unsigned server);
/* Forgets all data: killed, wiped and started again. */
void ensemble_wipe(struct ensemble *e);

/* Waits until every server that runs serves. */
void ensemble_wait(struct ensemble *e);
/* Which one leads; -1: none does. */
int ensemble_leader(const struct ensemble *e);
/* Ends the test program, with the servers' logs. */
__attribute__((noreturn)) void ensemble_give_up(const struct ensemble *e, const char *what);

#endif
