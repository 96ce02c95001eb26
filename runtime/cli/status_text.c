/* status_text.c: `quiver status` for people, on one screen. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "cli/show.h"
#include "cli/status.h"

/* Lines that are always there, with some to spare for pauses and hints. */
#define LINES_FIXED 14u
#define LINES_LEAST 3u

static void print_desired(const struct status *status)
{
        const char *name;
        json_t *value;
        json_object_foreach(status->paused, name, value)
        {
                (void)printf("PAUSED    %s: %s (quiver resume%s%s)\n", *name ? name : "all handlers",
                        json_is_string(value) ? json_string_value(value) : "", *name ? " " : "", name);
        }
        json_object_foreach(status->desired, name, value)
        {
                (void)printf("asked     %s: %s\n", name, json_is_string(value) ? json_string_value(value) : "");
        }
}

/* What waits there because the host has no handler for it. */
static void print_unserved(const json_t *names)
{
        size_t i;
        json_t *name;
        json_array_foreach(names, i, name)
        {
                if (json_is_string(name))
                        (void)printf(
                                "          tasks of %s wait: it has no such handler; add it to its runtime.cfg and "
                                "reload\n",
                                json_string_value(name));
        }
}

/* What it is to give to another host, and cannot yet. */
static void print_pending_moves(const json_t *shards)
{
        size_t i;
        json_t *shard;
        if (!json_array_size(shards))
                return;
        (void)printf("          move pending, until the calls that run there end: shard%s",
                show_plural(json_array_size(shards)));
        json_array_foreach(shards, i, shard)
        {
                (void)printf("%s %" JSON_INTEGER_FORMAT, i ? "," : "", json_integer_value(shard));
        }
        (void)printf("\n");
}

static void print_members(const struct status *status, unsigned lines)
{
        size_t i;
        json_t *member;
        char age[UNITS_TEXT_MAX];
        json_array_foreach(status->members, i, member)
        {
                if (i >= lines) {
                        (void)printf("          … and %zu more\n", json_array_size(status->members) - i);
                        return;
                }
                const char *state = status_text(member, "state");
                (void)printf("host      %s%s%s, %" PRIu64 " shard%s, heard of %s ago\n", status_text(member, "name"),
                        *state ? ", " : "", state, status_number(member, "shards"),
                        show_plural(status_number(member, "shards")),
                        units_format_ms(age, status_number(member, "age_ms")));
                print_unserved(json_object_get(member, "unserved"));
                print_pending_moves(json_object_get(member, "move_pending"));
        }
        if (!i && !status->owned)
                (void)printf("host      none is running\n");
}

static void print_outage(const json_t *handler)
{
        char age[UNITS_TEXT_MAX];
        uint64_t lasted_ms = status_number(handler, "unavailable_ms");
        const char *why = status_text(handler, "unavailable");
        (void)printf("  unavailable%s%s%s%s\n", lasted_ms ? " for " : "",
                lasted_ms ? units_format_ms(age, lasted_ms) : "", *why ? ": " : "", why);
}

static void print_handlers(const struct status *status, unsigned lines)
{
        size_t i;
        json_t *h;
        char age[UNITS_TEXT_MAX];
        if (!json_array_size(status->handlers))
                return;
        (void)printf("\n%-20s %-12s %-11s %10s %10s %10s %10s %10s %9s\n", "handler", "version", "state", "running",
                "done", "retried", "rejected", "crashed", "oldest");
        json_array_foreach(status->handlers, i, h)
        {
                if (i >= lines) {
                        (void)printf("… and %zu more (--json has all)\n", json_array_size(status->handlers) - i);
                        return;
                }
                uint64_t oldest_ms = status_number(h, "oldest_ms");
                (void)printf("%-20s %-12.12s %-11s %10" PRIu64 " %10" PRIu64 " %10" PRIu64 " %10" PRIu64 " %10" PRIu64
                             " %9s\n",
                        status_text(h, "name"), status_text(h, "version"), status_text(h, "state"),
                        status_number(h, "running"), status_number(h, "done"), status_number(h, "retried"),
                        status_number(h, "rejected"), status_number(h, "crashed") + status_number(h, "timed_out"),
                        oldest_ms ? units_format_ms(age, oldest_ms) : "-");
                if (json_object_get(h, "unavailable"))
                        print_outage(h);
        }
}

/* --- shards --- */

static void print_row(const char *name, const struct qv_client_counts *c, const char *owner)
{
        char age[UNITS_TEXT_MAX];
        (void)printf("%-8s %10" PRIu64 " %10" PRIu64 " %10" PRIu64 " %10" PRIu64 " %10" PRIu64 " %10" PRIu64
                     " %9s  %s\n",
                name, c->queued, c->delayed, c->in_flight, c->parked, c->dead, c->results,
                c->oldest_ms ? units_format_ms(age, c->oldest_ms) : "-", owner);
}

static uint64_t waiting(const struct store_counts *c)
{
        return c->queued[LANE_HIGH] + c->queued[LANE_NORMAL] + c->queued[LANE_LOW] + c->delayed + c->in_flight +
               c->parked + c->dead;
}

static int by_waiting(const void *a, const void *b)
{
        const struct store_counts *x = a;
        const struct store_counts *y = b;
        if (waiting(x) != waiting(y))
                return waiting(x) < waiting(y) ? 1 : -1;
        return (x->shard > y->shard) - (x->shard < y->shard);
}

/* Its name, if it says who it is. */
static const char *owner_name(const struct status *status, const char *nonce)
{
        size_t i;
        json_t *member;
        json_array_foreach(status->members, i, member)
        {
                if (!strcmp(status_text(member, "nonce"), nonce))
                        return status_text(member, "name");
        }
        return nonce;
}

static void print_shard(const struct status *status, const struct store_counts *c)
{
        struct qv_client_counts sum = QV_CLIENT_COUNTS_INIT;
        char name[16];
        char nonce[STATUS_NONCE_TEXT];
        char owner[128] = "no owner";
        client_add_counts(&sum, c);
        (void)snprintf(name, sizeof(name), "%u", c->shard);
        if (c->is_held)
                (void)snprintf(owner, sizeof(owner), "%.64s epoch %" PRIu64 "%s",
                        owner_name(status, status_nonce(nonce, c->holder)), c->epoch, c->left_ms ? "" : " (expired)");
        print_row(name, &sum, owner);
}

/* The fullest. */
static void print_shards(struct status *status, unsigned lines)
{
        uint32_t busy = 0;
        qsort(status->counts, status->shards, sizeof(*status->counts), by_waiting);
        while (busy < status->shards && waiting(&status->counts[busy]))
                busy++;
        for (uint32_t i = 0; i < busy && i < lines; i++)
                print_shard(status, &status->counts[i]);
        if (busy > lines)
                (void)printf("… and %u shards more with something in them (--json has all)\n", busy - lines);
}

/* --- all --- */

static unsigned at_least(unsigned lines)
{
        return lines > LINES_LEAST ? lines : LINES_LEAST;
}

void status_print_text(const struct cli_store *s, struct status *status, unsigned lines)
{
        unsigned room = lines > LINES_FIXED ? lines - LINES_FIXED : 0;
        const struct qv_client_counts *total = &status->total;
        (void)printf("app       %s, %u shard%s, %u owned\n", s->info->app, status->shards, show_plural(status->shards),
                status->owned);
        (void)printf("store     %s, coordination %s\n", s->config.store.url.text,
                *s->info->coordination ? s->info->coordination : "unknown");
        (void)printf("durable   %s\n", s->info->durability);
        if (*s->info->refuses)
                (void)printf("refuses   %s\n", s->info->refuses);
        print_desired(status);
        print_members(status, at_least(room / 5));
        print_handlers(status, at_least(2 * room / 5));
        (void)printf("\n%-8s %10s %10s %10s %10s %10s %10s %9s  %s\n", "shard", "queued", "delayed", "in flight",
                "parked", "dead", "results", "oldest", "owner");
        print_row("all", total, "");
        print_shards(status, at_least(2 * room / 5));
        (void)printf("\n%" PRIu64 " submitted so far, %" PRIu64 " done, %" PRIu64
                     " dropped; now %.1f done, %.1f retried, "
                     "%.1f failed per second\n",
                total->submitted, total->done, total->dropped,
                json_number_value(json_object_get(status->rates, "done")),
                json_number_value(json_object_get(status->rates, "retried")),
                json_number_value(json_object_get(status->rates, "failed")));
        if (total->dead)
                (void)printf("Dead tasks: quiver dead list\n");
        if (total->parked)
                (void)printf("Keys that wait: quiver key list\n");
}
