#include "load.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "task/id.h"

#define STEP_BYTES (1u << 20) /* of payload in one step, at most */
#define TICK_NS    NS_PER_MS  /* between two steps of a load that is paced, at least */

void load_die(const char *what, const char *why)
{
        (void)fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, why);
        exit(1);
}

double load_seconds_since(uint64_t start_ns)
{
        return (double)(clock_boot_ns() - start_ns) / (double)NS_PER_S;
}

/* --- options ------------------------------------------------------------------------------------------------------ */

static unsigned number_of(const char *name, const char *text)
{
        char *end;
        unsigned long value = strtoul(text, &end, 10);
        if (*end || end == text || value > UINT32_MAX)
                load_die(name, "is a number");
        return (unsigned)value;
}

static void finish(struct load *load)
{
        unsigned most = load->payload_bytes ? STEP_BYTES / load->payload_bytes : load->step;
        if (!load->tasks || !load->keys || !load->shards)
                load_die("--tasks, --keys and --shards", "are at least 1");
        if (load->step > most)
                load->step = most;
        if (!load->step)
                load->step = 1;
}

void load_options(int argc, char **argv, struct load *load)
{
        const struct {
                const char *name;
                unsigned *number;
                const char **text;
        } known[] = { { "tasks", &load->tasks, NULL }, { "keys", &load->keys, NULL }, { "shards", &load->shards, NULL },
                { "payload", &load->payload_bytes, NULL }, { "rate", &load->rate, NULL }, { "feed", &load->feed, NULL },
                { "step", &load->step, NULL }, { "stamp", &load->stamp, NULL }, { "threads", &load->threads, NULL },
                { "app", NULL, &load->app }, { "key", NULL, &load->only }, { "avoid", NULL, &load->avoid } };
        enum { KNOWN = sizeof(known) / sizeof(*known) };
        struct option options[KNOWN + 1] = { 0 };
        int place;
        for (int i = 0; i < KNOWN; i++)
                options[i] = (struct option){ known[i].name, required_argument, NULL, i };
        while ((place = getopt_long(argc, argv, "", options, NULL)) >= 0) {
                if (place >= KNOWN)
                        exit(2); /* getopt has said why */
                if (known[place].text)
                        *known[place].text = optarg;
                else
                        *known[place].number = number_of(known[place].name, optarg);
        }
        finish(load);
}

/* --- tasks -------------------------------------------------------------------------------------------------------- */

static uint32_t shard_of(const struct load *load, const char *key, size_t size)
{
        return shard_of_key((struct span){ key, size }, load->shards);
}

/* Writes "key-N".  Not with printf, which costs a producer more than all else that it does for a task: on a machine of
 * two cores that would be measured as Quiver's. */
static unsigned put_key(char to[LOAD_KEY_SIZE], unsigned number)
{
        char digits[10];
        unsigned count = 0;
        unsigned size = 4;
        memcpy(to, "key-", size);
        do
                digits[count++] = (char)('0' + number % 10);
        while (number /= 10);
        while (count)
                to[size++] = digits[--count];
        to[size] = 0;
        return size;
}

unsigned load_key(const struct load *load, unsigned number, char ret_key[LOAD_KEY_SIZE], uint32_t *ret_shard)
{
        uint32_t avoided = load->avoid ? shard_of(load, load->avoid, strlen(load->avoid)) : UINT32_MAX;
        uint64_t next = number;
        unsigned size;
        do {
                size = load->only ? (unsigned)snprintf(ret_key, LOAD_KEY_SIZE, "%s", load->only)
                                  : put_key(ret_key, (unsigned)(next++ * UINT64_C(7919) % load->keys));
                *ret_shard = shard_of(load, ret_key, size);
        } while (*ret_shard == avoided);
        return size;
}

static char *filled(size_t size)
{
        char *bytes = malloc(size + 1);
        if (!bytes)
                load_die("payload", "out of memory");
        memset(bytes, 'x', size);
        return bytes;
}

const char *load_payload(const struct load *load, unsigned number)
{
        static char *plain;
        static char *stamped;
        if (!plain) {
                plain = filled(load->payload_bytes);
                stamped = filled(load->payload_bytes);
        }
        if (!load->stamp || number % load->stamp)
                return plain;
        struct timespec now;
        char stamp[24];
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        int size = snprintf(stamp, sizeof(stamp), "%lld ", (long long)now.tv_sec * 1000000000 + now.tv_nsec);
        if ((unsigned)size > load->payload_bytes)
                load_die("--stamp", "needs payloads of 20 bytes");
        memcpy(stamped, stamp, (size_t)size);
        return stamped;
}

/* --- pace --------------------------------------------------------------------------------------------------------- */

static unsigned fed(unsigned sent, unsigned most)
{
        static unsigned allowed;
        char line[32];
        while (allowed <= sent && fgets(line, sizeof(line), stdin))
                allowed += (unsigned)strtoul(line, NULL, 10);
        return allowed - sent < most ? allowed - sent : most;
}

unsigned load_due(const struct load *load, unsigned sent, uint64_t start_ns)
{
        unsigned left = load->tasks - sent;
        unsigned most = left < load->step ? left : load->step;
        if (load->feed)
                return fed(sent, most);
        if (!load->rate)
                return most;
        uint64_t gap_ns = NS_PER_S / load->rate > TICK_NS ? NS_PER_S / load->rate : TICK_NS;
        for (;;) {
                uint64_t passed_ns = clock_boot_ns() - start_ns;
                uint64_t ticks = passed_ns / gap_ns;
                /* Rounded up: a gap is that of one task, or of several. */
                uint64_t due = (ticks * gap_ns * load->rate + NS_PER_S - 1) / NS_PER_S;
                if (due > sent)
                        return due - sent < most ? (unsigned)(due - sent) : most;
                (void)usleep((useconds_t)(((ticks + 1) * gap_ns - passed_ns) / 1000 + 1));
        }
}
