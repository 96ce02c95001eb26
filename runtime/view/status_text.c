/* status_text.c: an app's status for people, on one screen. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "view/json.h"
#include "view/status.h"
#include "view/text.h"

/* Lines that are always there, with some to spare for pauses and hints. */
#define LINES_FIXED 14u
#define LINES_LEAST 3u

#define NAME_SHOWN 64u

static void put_desired(struct buffer *to, const struct status *status)
{
        const char *name;
        json_t *value;
        json_object_foreach(status->paused, name, value)
        {
                text_put_between(to, "PAUSED    ", *name ? name : "all handlers", ": ");
                text_put_between(to, "", json_string_value(value), *name ? " (quiver resume " : " (quiver resume");
                if (*name)
                        text_put_word(to, span_of_text(name));
                buffer_printf(to, ")\n");
        }
        json_object_foreach(status->desired, name, value)
        {
                text_put_between(to, "asked     ", name, ": ");
                text_put_between(to, "", json_string_value(value), "\n");
        }
}

/* --- members --- */

/* What waits there because the host has no handler for it. */
static void put_unserved(struct buffer *to, const json_t *names)
{
        size_t i;
        json_t *name;
        json_array_foreach(names, i, name)
        {
                if (json_is_string(name))
                        text_put_between(to, "          tasks of ", json_string_value(name),
                                " wait: it has no such handler; add it to its runtime.cfg and reload\n");
        }
}

/* What it is to give to another host, and cannot yet. */
static void put_pending_moves(struct buffer *to, const json_t *shards)
{
        size_t i;
        json_t *shard;
        if (!json_array_size(shards))
                return;
        buffer_printf(to, "          move pending, until the calls that run there end: shard%s",
                text_plural(json_array_size(shards)));
        json_array_foreach(shards, i, shard)
        {
                buffer_printf(to, "%s %" JSON_INTEGER_FORMAT, i ? "," : "", json_integer_value(shard));
        }
        buffer_put(to, "\n", 1);
}

static void put_members(struct buffer *to, const struct status *status, unsigned lines)
{
        size_t i;
        json_t *member;
        char age[UNITS_TEXT_MAX];
        json_array_foreach(status->members, i, member)
        {
                const char *state = view_json_get_text(member, "state");
                uint64_t shards = view_json_get_number(member, "shards");
                if (i >= lines) {
                        buffer_printf(to, "          … and %zu more\n", json_array_size(status->members) - i);
                        return;
                }
                text_put_between(to, "host      ", view_json_get_text(member, "name"), *state ? ", " : "");
                text_put_between(to, "", state, "");
                buffer_printf(to, ", %" PRIu64 " shard%s, heard of %s ago\n", shards, text_plural(shards),
                        units_format_ms(age, view_json_get_number(member, "age_ms")));
                put_unserved(to, json_object_get(member, "unserved"));
                put_pending_moves(to, json_object_get(member, "move_pending"));
        }
        if (!i && !status->owned)
                buffer_printf(to, "host      none is running\n");
}

/* --- handlers --- */

static void put_outage(struct buffer *to, const json_t *handler)
{
        char age[UNITS_TEXT_MAX];
        uint64_t lasted_ms = view_json_get_number(handler, "unavailable_ms");
        const char *why = view_json_get_text(handler, "unavailable");
        buffer_printf(
                to, "  unavailable%s%s", lasted_ms ? " for " : "", lasted_ms ? units_format_ms(age, lasted_ms) : "");
        text_put_between(to, *why ? ": " : "", why, "\n");
}

static void put_handler(struct buffer *to, const json_t *h)
{
        static const char *const columns[] = { "running", "done", "retried", "rejected" };
        char age[UNITS_TEXT_MAX];
        text_put_column(to, span_of_text(view_json_get_text(h, "name")), 20, NAME_SHOWN);
        buffer_put(to, " ", 1);
        text_put_column(to, span_of_text(view_json_get_text(h, "version")), 12, 12);
        buffer_put(to, " ", 1);
        text_put_column(to, span_of_text(view_json_get_text(h, "state")), 11, NAME_SHOWN);
        for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
                buffer_printf(to, " %10" PRIu64, view_json_get_number(h, columns[i]));
        buffer_printf(to, " %10" PRIu64 " %9s\n",
                view_json_get_number(h, "crashed") + view_json_get_number(h, "timed_out"),
                text_age(age, view_json_get_number(h, "oldest_ms")));
        if (json_object_get(h, "unavailable"))
                put_outage(to, h);
}

static void put_handlers(struct buffer *to, const struct status *status, unsigned lines)
{
        size_t i;
        json_t *handler;
        if (!json_array_size(status->handlers))
                return;
        buffer_printf(to, "\n%-20s %-12s %-11s %10s %10s %10s %10s %10s %9s\n", "handler", "version", "state",
                "running", "done", "retried", "rejected", "crashed", "oldest");
        json_array_foreach(status->handlers, i, handler)
        {
                if (i >= lines) {
                        buffer_printf(to, "… and %zu more (--json has all)\n", json_array_size(status->handlers) - i);
                        return;
                }
                put_handler(to, handler);
        }
}

/* --- shards --- */

static void put_counts(struct buffer *to, const char *name, const struct store_counts *c)
{
        char age[UNITS_TEXT_MAX];
        buffer_printf(to,
                "%-8s %10" PRIu64 " %10" PRIu64 " %10" PRIu64 " %10" PRIu64 " %10" PRIu64 " %10" PRIu64 " %9s  ", name,
                store_counts_queued(c), c->delayed, c->in_flight, c->parked, c->dead, c->results,
                text_age(age, c->oldest_ms));
}

static uint64_t waiting(const struct store_counts *c)
{
        return store_counts_queued(c) + c->delayed + c->in_flight + c->parked + c->dead;
}

static int by_waiting(const void *a, const void *b)
{
        const struct store_counts *x = *(const struct store_counts *const *)a;
        const struct store_counts *y = *(const struct store_counts *const *)b;
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
                if (!strcmp(view_json_get_text(member, "nonce"), nonce))
                        return view_json_get_text(member, "name");
        }
        return nonce;
}

static void put_shard(struct buffer *to, const struct status *status, const struct store_counts *c)
{
        char name[16];
        char nonce[2 * STORE_NONCE_SIZE + 1];
        (void)snprintf(name, sizeof(name), "%u", c->shard);
        put_counts(to, name, c);
        if (!c->is_held) {
                buffer_printf(to, "no owner\n");
                return;
        }
        text_put_column(
                to, span_of_text(owner_name(status, units_hex(nonce, c->holder, STORE_NONCE_SIZE))), 0, NAME_SHOWN);
        buffer_printf(to, " epoch %" PRIu64 "%s\n", c->epoch, c->left_ms ? "" : " (expired)");
}

/* The fullest. */
static void put_shards(struct buffer *to, const struct status *status, unsigned lines)
{
        const struct store_counts **fullest = memory_zero(status->info->shards + 1, sizeof(struct store_counts *));
        uint32_t count = 0;
        for (uint32_t i = 0; i < status->info->shards; i++)
                if (waiting(&status->counts[i]))
                        fullest[count++] = &status->counts[i];
        qsort(fullest, count, sizeof(struct store_counts *), by_waiting);
        for (uint32_t i = 0; i < count && i < lines; i++)
                put_shard(to, status, fullest[i]);
        if (count > lines)
                buffer_printf(to, "… and %u shards more with something in them (--json has all)\n", count - lines);
        free(fullest);
}

/* --- all --- */

static unsigned at_least(unsigned lines)
{
        return max_u64(lines, LINES_LEAST);
}

static double rate_of(const struct status *status, const char *name)
{
        return json_number_value(json_object_get(status->rates, name));
}

void status_as_text(struct buffer *to, const struct status *status, unsigned lines)
{
        const struct store_info *info = status->info;
        const struct store_counts *total = &status->total;
        unsigned room = lines > LINES_FIXED ? lines - LINES_FIXED : 0;
        buffer_printf(to, "app       %s, %u shard%s, %u owned\n", info->app, info->shards, text_plural(info->shards),
                status->owned);
        buffer_printf(to, "store     %s, coordination %s\n", status->store,
                *info->coordination ? info->coordination : "unknown");
        buffer_printf(to, "durable   %s\n", info->durability);
        if (*info->refuses)
                buffer_printf(to, "refuses   %s\n", info->refuses);
        put_desired(to, status);
        put_members(to, status, at_least(room / 5));
        put_handlers(to, status, at_least(2 * room / 5));
        buffer_printf(to, "\n%-8s %10s %10s %10s %10s %10s %10s %9s  %s\n", "shard", "queued", "delayed", "in flight",
                "parked", "dead", "results", "oldest", "owner");
        put_counts(to, "all", total);
        buffer_put(to, "\n", 1);
        put_shards(to, status, at_least(2 * room / 5));
        buffer_printf(to,
                "\n%" PRIu64 " submitted so far, %" PRIu64 " done, %" PRIu64
                " dropped; now %.1f done, %.1f retried, %.1f failed per second\n",
                total->submitted, total->done, total->dropped, rate_of(status, "done"), rate_of(status, "retried"),
                rate_of(status, "failed"));
        if (total->dead)
                buffer_printf(to, "Dead tasks: quiver dead list\n");
        if (total->parked)
                buffer_printf(to, "Keys that wait: quiver key list\n");
}
