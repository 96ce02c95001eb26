/* status_text.c: an app's status as text: as much as fits on a screen, or everything. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/numbers.h"
#include "view/json.h"
#include "view/limits.h"
#include "view/status.h"
#include "view/table.h"
#include "view/text.h"

/* Lines that are always shown, with some to spare for pauses and hints. */
#define LINES_FIXED 14u
#define LINES_LEAST 3u

#define NAME_SHOWN    32u
#define VERSION_SHOWN 16u
#define ERROR_SHOWN   60u

static void put_desired(struct buffer *to, const struct status *status, bool has_color)
{
        const char *name;
        json_t *value;
        json_object_foreach(status->paused, name, value)
        {
                tone_begin(to, TONE_WARN, has_color);
                buffer_printf(to, "PAUSED");
                tone_end(to, TONE_WARN, has_color);
                text_put_between(to, "    ", *name ? name : "all handlers", ": ");
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

/* The names of tasks that wait because the host has no handler for them. */
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

/* Shards that the host must give to another host but cannot yet. */
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

static void put_member(struct buffer *to, const struct status *status, const json_t *member, bool has_color)
{
        char age[UNITS_TEXT_MAX];
        const char *state = view_json_get_text(member, "state");
        const char *machine = view_json_get_text(member, "machine");
        const char *version = view_json_get_text(member, "version");
        uint64_t shards = view_json_get_number(member, "shards");
        uint64_t seats = view_json_get_number(member, "seats");
        uint64_t pid = view_json_get_number(member, "pid");
        enum tone tone = !strcmp(state, "running") || !strcmp(state, "standby") ? TONE_PLAIN : TONE_WARN;
        (void)status;
        text_put_between(to, "host      ", view_json_get_text(member, "name"), *state ? ", " : "");
        tone_begin(to, tone, has_color);
        text_put_between(to, "", state, "");
        tone_end(to, tone, has_color);
        buffer_printf(to, ", %" PRIu64 " shard%s", shards, text_plural(shards));
        if (seats)
                buffer_printf(to, ", %" PRIu64 " seat%s", seats, text_plural(seats));
        if (pid)
                buffer_printf(to, ", pid %" PRIu64, pid);
        if (*machine)
                text_put_between(to, " on ", machine, "");
        if (*version)
                text_put_between(to, ", version ", version, "");
        buffer_printf(to, ", heard of %s ago\n", units_format_ms(age, view_json_get_number(member, "age_ms")));
        put_unserved(to, json_object_get(member, "unserved"));
        put_pending_moves(to, json_object_get(member, "move_pending"));
}

/* Refusals are shown with what to do about them. */
static void put_http(struct buffer *to, const json_t *http)
{
        static const struct {
                const char *name;
                const char *says;
        } kinds[] = {
                { "refused", "connections refused (http.connections)" },
                { "limited", "requests refused: too many wait, or too many bytes" },
                { "malformed", "malformed" },
                { "forbidden", "forbidden" },
                { "timed_out", "timed out" },
        };
        if (!json_is_object(http))
                return;
        buffer_printf(to, "          http: %" PRIu64 " connections, %" PRIu64 " requests",
                view_json_get_number(http, "accepted"), view_json_get_number(http, "requests"));
        for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
                uint64_t count = view_json_get_number(http, kinds[i].name);
                if (count)
                        buffer_printf(to, ", %" PRIu64 " %s", count, kinds[i].says);
        }
        buffer_put(to, "\n", 1);
}

static void put_members(struct buffer *to, const struct status *status, unsigned lines, bool has_color)
{
        size_t i;
        json_t *member;
        json_array_foreach(status->members, i, member)
        {
                if (i >= lines) {
                        buffer_printf(to, "          … and %zu more\n", json_array_size(status->members) - i);
                        return;
                }
                put_member(to, status, member, has_color);
                put_http(to, json_object_get(member, "http_counts"));
        }
        if (!i && !status->owned)
                buffer_printf(to, "host      none is running\n");
}

/* --- handlers --- */

static enum tone tone_of(const char *state)
{
        static const char *const bad[] = { "unavailable", "refused", "quarantined", "unserved" };
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                if (!strcmp(state, bad[i]))
                        return TONE_BAD;
        return !strcmp(state, "open") ? TONE_PLAIN : TONE_WARN;
}

static void note_outage(struct table *table, const json_t *handler)
{
        char age[UNITS_TEXT_MAX];
        struct buffer line = { 0 };
        uint64_t lasted_ms = view_json_get_number(handler, "unavailable_ms");
        const char *why = view_json_get_text(handler, "unavailable");
        buffer_printf(
                &line, "  unavailable%s%s", lasted_ms ? " for " : "", lasted_ms ? units_format_ms(age, lasted_ms) : "");
        text_put_between(&line, *why ? ": " : "", why, "\n");
        table_note(table, buffer_text(&line));
        buffer_free(&line);
}

static void note_refusal(struct table *table, const json_t *handler)
{
        struct buffer line = { 0 };
        text_put_between(&line, "  refused: ", view_json_get_text(handler, "refused"), "\n");
        table_note(table, buffer_text(&line));
        buffer_free(&line);
}

static void add_handler(struct table *table, const json_t *h)
{
        char waiting[32];
        const char *state = view_json_get_text(h, "state");
        uint64_t dead = view_json_get_number(h, "dead");
        table_row(table);
        table_put_text(table, TONE_PLAIN, view_json_get_text(h, "name"));
        table_put_text(table, TONE_PLAIN, view_json_get_text(h, "version"));
        table_put_text(table, tone_of(state), state);
        (void)snprintf(waiting, sizeof(waiting), "%s%" PRIu64, json_object_get(h, "estimated") ? "~" : "",
                view_json_get_number(h, "waiting"));
        table_put_text(table, TONE_PLAIN, waiting);
        table_put_number(table, TONE_PLAIN, view_json_get_number(h, "running"));
        table_put_number(table, TONE_PLAIN, view_json_get_number(h, "done"));
        table_put_number(table, TONE_PLAIN, view_json_get_number(h, "retried"));
        table_put_number(table, TONE_PLAIN, view_json_get_number(h, "later"));
        table_put_number(table, TONE_PLAIN, view_json_get_number(h, "rejected"));
        table_put_number(table, TONE_PLAIN, view_json_get_number(h, "crashed") + view_json_get_number(h, "timed_out"));
        table_put_number(table, dead ? TONE_BAD : TONE_PLAIN, dead);
        table_put_age(table, TONE_PLAIN, view_json_get_number(h, "oldest_ms"));
        if (json_object_get(h, "unavailable"))
                note_outage(table, h);
        if (json_object_get(h, "refused"))
                note_refusal(table, h);
}

static void put_handlers(struct buffer *to, const struct status *status, unsigned lines, bool has_color)
{
        static const char *const numbers[] = { "waiting", "running", "done", "retried", "later", "rejected", "crashed",
                "dead", "oldest" };
        struct table table = { .has_color = has_color };
        size_t i;
        json_t *handler;
        if (!json_array_size(status->handlers))
                return;
        table_text_column(&table, "handler", NAME_SHOWN);
        table_text_column(&table, "version", VERSION_SHOWN);
        table_text_column(&table, "state", NAME_SHOWN);
        for (size_t n = 0; n < sizeof(numbers) / sizeof(numbers[0]); n++)
                table_number_column(&table, numbers[n]);
        json_array_foreach(status->handlers, i, handler)
        {
                if (i < lines)
                        add_handler(&table, handler);
        }
        buffer_put(to, "\n", 1);
        table_print(&table, to);
        table_free(&table);
        if (i > lines)
                buffer_printf(to, "… and %zu more (--json has all)\n", json_array_size(status->handlers) - lines);
}

/* --- shards --- */

/* How many tasks a shard has, for choosing the shards to show. */
static uint64_t fullness(const struct store_counts *c)
{
        return store_counts_queued(c) + c->delayed + c->in_flight + store_counts_parked(c) + c->dead;
}

static int by_fullness(const void *a, const void *b)
{
        const struct store_counts *x = *(const struct store_counts *const *)a;
        const struct store_counts *y = *(const struct store_counts *const *)b;
        if (fullness(x) != fullness(y))
                return fullness(x) < fullness(y) ? 1 : -1;
        return (x->shard > y->shard) - (x->shard < y->shard);
}

/* The owner's name, from its document or its lease. */
static const char *owner_name(const struct status *status, const char *nonce, const char *host)
{
        size_t i;
        json_t *member;
        json_array_foreach(status->members, i, member)
        {
                if (!strcmp(view_json_get_text(member, "nonce"), nonce))
                        return view_json_get_text(member, "name");
        }
        return *host ? host : nonce;
}

static void add_counts(
        struct table *table, const struct store_counts *c, uint64_t waiting, uint64_t running, uint64_t oldest_ms)
{
        table_put_number(table, TONE_PLAIN, waiting);
        table_put_number(table, TONE_PLAIN, running);
        table_put_number(table, TONE_PLAIN, c->delayed);
        table_put_number(table, c->dead ? TONE_BAD : TONE_PLAIN, c->dead);
        table_put_number(table, TONE_PLAIN, c->results);
        table_put_age(table, TONE_PLAIN, oldest_ms);
}

static void add_shard(struct table *table, const struct status *status, const struct store_counts *c)
{
        char nonce[2 * STORE_NONCE_SIZE + 1];
        char epoch[64];
        struct buffer owner = { 0 };
        table_row(table);
        table_put_number(table, TONE_PLAIN, c->shard);
        add_counts(table, c, status_shard_waiting(status, c->shard), status->shards[c->shard].running,
                status->shards[c->shard].oldest_ms);
        if (!c->is_held) {
                table_put_text(table, TONE_BAD, "no owner");
                return;
        }
        (void)snprintf(epoch, sizeof(epoch), " epoch %" PRIu64 "%s", c->epoch, c->left_ms ? "" : " (expired)");
        buffer_printf(
                &owner, "%s%s", owner_name(status, units_hex(nonce, c->holder, STORE_NONCE_SIZE), c->host), epoch);
        table_put_text(table, c->left_ms ? TONE_PLAIN : TONE_BAD, buffer_text(&owner));
        buffer_free(&owner);
}

/* Shows the fullest shards. */
static void put_shards(struct buffer *to, const struct status *status, unsigned lines, bool has_color)
{
        static const char *const numbers[] = { "waiting", "running", "delayed", "dead", "results", "oldest" };
        const struct store_counts **fullest = memory_zero(status->info->shards + 1, sizeof(struct store_counts *));
        struct table table = { .has_color = has_color };
        uint32_t count = 0;
        for (uint32_t i = 0; i < status->info->shards; i++)
                if (fullness(&status->counts[i]))
                        fullest[count++] = &status->counts[i];
        qsort(fullest, count, sizeof(struct store_counts *), by_fullness);
        table_text_column(&table, "shard", 0);
        for (size_t n = 0; n < sizeof(numbers) / sizeof(numbers[0]); n++)
                table_number_column(&table, numbers[n]);
        table_text_column(&table, "owner", 0);
        table_row(&table);
        table_put_text(&table, TONE_PLAIN, "all");
        add_counts(&table, &status->total, status_waiting(status), status->running, status->oldest_ms);
        for (uint32_t i = 0; i < count && i < lines; i++)
                add_shard(&table, status, fullest[i]);
        buffer_put(to, "\n", 1);
        table_print(&table, to);
        table_free(&table);
        if (count > lines)
                buffer_printf(to, "… and %u shards more with something in them (--json has all)\n", count - lines);
        free(fullest);
}

/* --- the dead --- */

static int by_tasks(const void *a, const void *b)
{
        uint64_t x = view_json_get_number(*(json_t *const *)a, "tasks");
        uint64_t y = view_json_get_number(*(json_t *const *)b, "tasks");
        return (x < y) - (x > y);
}

/* Shows the largest groups. */
static void put_dead(struct buffer *to, const struct status *status, unsigned lines)
{
        size_t count = json_array_size(status->dead);
        json_t **groups = memory_zero(count + 1, sizeof(json_t *));
        if (status->total.dead)
                buffer_printf(to, "Dead tasks: quiver dead list\n");
        for (size_t i = 0; i < count; i++)
                groups[i] = json_array_get(status->dead, i);
        qsort(groups, count, sizeof(json_t *), by_tasks);
        for (size_t i = 0; i < count && i < lines; i++) {
                const char *handler = view_json_get_text(groups[i], "handler");
                const char *error = view_json_get_text(groups[i], "error");
                buffer_printf(to, "  %" PRIu64 " ", view_json_get_number(groups[i], "tasks"));
                text_put_between(to, "", *handler ? handler : "others", "");
                text_put_between(to, *handler ? " " : "", view_json_get_text(groups[i], "reason"), *error ? ": " : "");
                (void)text_put_column(to, span_of_text(error), 0, ERROR_SHOWN);
                buffer_put(to, "\n", 1);
        }
        if (count > lines)
                buffer_printf(to, "  … and %zu kinds more\n", count - lines);
        free(groups);
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

static void put_keys(struct buffer *to, const struct status *status)
{
        const char *least = status->are_keys_cut ? "at least " : "";
        if (status->held_keys)
                buffer_printf(
                        to, "Keys that wait for a person: %s%" PRIu64 " (quiver key list)\n", least, status->held_keys);
        if (status->parked_keys)
                buffer_printf(to, "Keys that wait for a retry: %s%" PRIu64 " (quiver key list)\n", least,
                        status->parked_keys);
}

void status_as_text(struct buffer *to, const struct status *status, const struct status_screen *screen)
{
        const struct store_info *info = status->info;
        const struct store_counts *total = &status->total;
        bool has_color = screen->has_color;
        unsigned lines = screen->lines ? screen->lines : UINT32_MAX;
        unsigned room = lines > LINES_FIXED ? lines - LINES_FIXED : 0;
        unsigned some = screen->lines ? room / 5 : UINT32_MAX / 2;
        buffer_printf(to, "app       %s, %u shard%s, %u owned\n", info->app, info->shards, text_plural(info->shards),
                status->owned);
        buffer_printf(to, "store     %s, coordination %s\n", status->store,
                *info->coordination ? info->coordination : "unknown");
        buffer_printf(to, "durable   %s\n", info->durability);
        if (*info->refuses)
                buffer_printf(to, "refuses   %s\n", info->refuses);
        put_desired(to, status, has_color);
        put_members(to, status, at_least(some), has_color);
        put_handlers(to, status, at_least(2 * some), has_color);
        if (json_array_size(status->limits)) {
                buffer_printf(to, "\n");
                limits_as_text(to, status->limits, has_color);
        }
        put_shards(to, status, at_least(2 * some), has_color);
        buffer_printf(to,
                "\n%" PRIu64 " submitted so far, %" PRIu64 " done, %" PRIu64
                " dropped; now %.1f done, %.1f retried, %.1f failed per second\n",
                total->submitted, total->done, total->dropped, rate_of(status, "done"), rate_of(status, "retried"),
                rate_of(status, "failed"));
        if (total->merged)
                buffer_printf(to, "%" PRIu64 " were merged into others that waited\n", total->merged);
        if (total->results_dropped)
                buffer_printf(to, "%" PRIu64 " results were dropped: too many or too old (store.results)\n",
                        total->results_dropped);
        put_dead(to, status, screen->lines ? LINES_LEAST : UINT32_MAX);
        put_keys(to, status);
}
