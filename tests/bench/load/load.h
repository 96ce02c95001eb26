/* load.h: which tasks a producer of the benchmarks submits, and when.  The same for every store.
 *
 * Keys are uniform, and tasks are numbered from 0: task n of a load always has the same key, so that whoever waits for
 * them knows how many go to each shard. */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include <stddef.h>
#include <stdint.h>

#define LOAD_KEY_SIZE 32u

struct load {
        const char *app;
        const char *only;  /* the only key; NULL: key-0, key-1, … */
        const char *avoid; /* no key is in the shard of this one; NULL: all shards get some */
        unsigned tasks;
        unsigned keys;
        unsigned shards;
        unsigned payload_bytes;
        unsigned rate; /* tasks a second; 0: as fast as they are taken */
        unsigned step; /* tasks sent at once, at most */
        unsigned feed; /* not 0: lines of standard input say how many more to send; the last is followed by its end */
        unsigned threads; /* that submit at once, where the program can */
        unsigned stamp;   /* one of so many carries the time at which it was submitted; 0: none */
};

/* Prints what went wrong and ends the program. */
__attribute__((noreturn)) void load_die(const char *what, const char *why);

/* Takes --tasks, --keys, --shards, --payload, --rate, --feed, --step, --stamp, --threads, --app, --key and --avoid
 * out of the words. */
void load_options(int argc, char **argv, struct load *load);

/* The key of task `number`.  Returns its size. */
unsigned load_key(const struct load *load, unsigned number, char ret_key[LOAD_KEY_SIZE], uint32_t *ret_shard);

/* The payload of task `number`, never freed.  Those that carry the time share a buffer, which has that of the last
 * call: tasks that are sent together are of one moment. */
const char *load_payload(const struct load *load, unsigned number);

/* How many are to be sent now that `sent` were, since `start_ns`: sleeps until it is time for the next.  0: no more. */
unsigned load_due(const struct load *load, unsigned sent, uint64_t start_ns);

double load_seconds_since(uint64_t start_ns);

#endif
