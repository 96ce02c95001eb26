/* destinations.h: which destinations are in trouble, so that their tasks do not hold the seats of others.
 *
 * A destination is scheme, name and port.  One that cannot be reached is closed for a second, then for twice as long
 * each time, a minute at most; one that was reached and said nothing three times in a row, too.  While it is closed,
 * its tasks are put off without a connection.  After that one of them tries, and the others wait for what becomes of
 * it.
 *
 * Plain data, no clock, no lock: the seats of a process share it, and whoever calls holds their lock. */
#ifndef QUIVER_WEBHOOK_DESTINATIONS_H
#define QUIVER_WEBHOOK_DESTINATIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DESTINATION_NAME 320 /* bytes of a name, its NUL included */
#define DESTINATIONS_MAX 512 /* in trouble at once; beyond that the one that opens first is forgotten */

struct destination {
        char name[DESTINATION_NAME];
        unsigned failures;  /* in a row; one to a connection counts as DESTINATION_CLOSES */
        uint64_t wait_ms;   /* how long it was closed last */
        uint64_t closed_ms; /* until then */
        uint64_t trying_ms; /* until then a task tries whether it is back; 0: none */
};

struct destinations {
        struct destination *list[DESTINATIONS_MAX];
        size_t count;
};

#define DESTINATION_CLOSES      3
#define DESTINATION_WAIT_MS     1000
#define DESTINATION_WAIT_MAX_MS 60000

void destinations_free(struct destinations *d);

/* Whether a task may go there now: 0, or for how many milliseconds it has to wait.  Whoever may go says how it ended
 * with one of the calls below, within try_ms. */
uint64_t destinations_ask(struct destinations *d, const char *name, uint64_t now_ms, uint64_t try_ms);

/* It answered, whatever it said. */
void destinations_answered(struct destinations *d, const char *name);
/* It was not reached, or said nothing. */
void destinations_failed(struct destinations *d, const char *name, bool is_down, uint64_t now_ms);
/* It said for how long it is not to be asked. */
void destinations_close(struct destinations *d, const char *name, uint64_t wait_ms, uint64_t now_ms);
/* The task was stopped before anything was known. */
void destinations_stopped(struct destinations *d, const char *name);

#endif
