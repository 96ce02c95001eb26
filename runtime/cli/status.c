/* status.c: what the store knows: counts, owners, what people asked for. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "cli/command.h"
#include "cli/json.h"
#include "cli/open.h"
#include "cli/show.h"

#define SHARDS_SHOWN 10
#define NONCE_TEXT   (2 * STORE_NONCE_SIZE + 1)

static const struct option_spec specs[] = { OPTION_CONFIG_ROW, OPTION_JSON_ROW };

struct status {
        struct store_counts *counts; /* one per shard */
        struct qv_client_counts total;
        uint64_t desired_version;
        json_t *desired; /* name → value */
        json_t *members;
};

static const char *nonce_text(char text[NONCE_TEXT], const uint8_t nonce[STORE_NONCE_SIZE])
{
        for (size_t i = 0; i < STORE_NONCE_SIZE; i++)
                (void)snprintf(text + 2 * i, 3, "%02x", nonce[i]);
        return text;
}

/* --- asking ------------------------------------------------------------------------------------------------------- */

static void add_desired(void *self, const struct store_desired *item)
{
        char name[128];
        (void)snprintf(name, sizeof(name), "%.*s", (int)item->name.size, item->name.data);
        cli_json_span(self, name, item->value);
}

/* A document is what a host says about itself; what is no JSON object is shown as it is. */
static void add_member(void *self, const struct store_status *status)
{
        char nonce[NONCE_TEXT];
        json_t *member = json_loadb(status->document.data, status->document.size, 0, NULL);
        if (!json_is_object(member)) {
                json_decref(member);
                member = json_object();
                cli_json_span(member, "document", status->document);
        }
        (void)json_object_set_new(member, "nonce", json_string(nonce_text(nonce, status->nonce)));
        cli_json_number(member, "age_ms", status->age_ms);
        (void)json_array_append_new(self, member);
}

static int ask(struct cli_store *s, struct status *ret, struct error *error)
{
        uint32_t shards = s->info->shards;
        *ret = (struct status){
                .counts = calloc(shards, sizeof(*ret->counts)),
                .total = QV_CLIENT_COUNTS_INIT,
                .desired = json_object(),
                .members = json_array(),
        };
        if (!ret->counts)
                abort();
        int r = client_count(s->client, 0, shards, ret->counts, error);
        for (uint32_t i = 0; r == 0 && i < shards; i++)
                client_add_counts(&ret->total, &ret->counts[i]);
        if (r == 0)
                r = client_desired(s->client, add_desired, ret->desired, &ret->desired_version, error);
        if (r == 0)
                r = client_statuses(s->client, add_member, ret->members, error);
        return r;
}

static void status_free(struct status *status)
{
        free(status->counts);
        json_decref(status->desired);
        json_decref(status->members);
}

/* --- for programs ------------------------------------------------------------------------------------------------- */

static void set_counts(json_t *o, const struct qv_client_counts *c)
{
        cli_json_number(o, "queued", c->queued);
        cli_json_number(o, "delayed", c->delayed);
        cli_json_number(o, "in_flight", c->in_flight);
        cli_json_number(o, "parked", c->parked);
        cli_json_number(o, "dead", c->dead);
        cli_json_number(o, "results", c->results);
        cli_json_number(o, "oldest_ms", c->oldest_ms);
        cli_json_number(o, "submitted", c->submitted);
        cli_json_number(o, "done", c->done);
        cli_json_number(o, "dropped", c->dropped);
}

static json_t *shard_as_json(const struct store_counts *c)
{
        struct qv_client_counts sum = QV_CLIENT_COUNTS_INIT;
        char nonce[NONCE_TEXT];
        json_t *o = json_object();
        client_add_counts(&sum, c);
        cli_json_number(o, "shard", c->shard);
        (void)json_object_set_new(o, "owner", c->is_held ? json_string(nonce_text(nonce, c->holder)) : json_null());
        cli_json_number(o, "epoch", c->epoch);
        cli_json_number(o, "lease_left_ms", c->left_ms);
        set_counts(o, &sum);
        cli_json_number(o, "controls", c->controls);
        cli_json_number(o, "keys", c->keys);
        return o;
}

static void status_as_json(const struct cli_store *s, const struct status *status)
{
        json_t *o = json_object();
        json_t *shards = json_array();
        json_t *totals = json_object();
        json_t *desired = json_object();
        for (uint32_t i = 0; i < s->info->shards; i++)
                (void)json_array_append_new(shards, shard_as_json(&status->counts[i]));
        set_counts(totals, &status->total);
        cli_json_number(desired, "version", status->desired_version);
        (void)json_object_set(desired, "items", status->desired);
        (void)json_object_set_new(o, "app", json_string(s->info->app));
        (void)json_object_set_new(o, "store", cli_json_text(s->config.store.url.text));
        (void)json_object_set_new(o, "durability", json_string(s->info->durability));
        (void)json_object_set_new(
                o, "coordination", *s->info->coordination ? cli_json_text(s->info->coordination) : json_null());
        (void)json_object_set_new(o, "shards", shards);
        (void)json_object_set(o, "members", status->members);
        (void)json_object_set_new(o, "desired", desired);
        (void)json_object_set_new(o, "totals", totals);
        cli_json_print_wide(o);
}

/* --- for people --------------------------------------------------------------------------------------------------- */

static void print_desired(const struct status *status)
{
        const char *name;
        json_t *value;
        json_object_foreach(status->desired, name, value)
        {
                const char *why = json_is_string(value) ? json_string_value(value) : "";
                if (!strcmp(name, "pause"))
                        (void)printf("PAUSED    all handlers: %s (quiver resume)\n", why);
                else if (!strncmp(name, "pause.", 6))
                        (void)printf("PAUSED    %s: %s (quiver resume %s)\n", name + 6, why, name + 6);
                else
                        (void)printf("asked     %s: %s\n", name, why);
        }
}

static void print_members(const struct status *status)
{
        size_t i;
        json_t *member;
        char age[UNITS_TEXT_MAX];
        json_array_foreach(status->members, i, member)
        {
                const char *name = json_string_value(json_object_get(member, "name"));
                (void)printf("host      %s, heard of %s ago\n",
                        name ? name : json_string_value(json_object_get(member, "nonce")),
                        units_format_ms(age, (uint64_t)json_integer_value(json_object_get(member, "age_ms"))));
        }
}

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

/* The fullest, as many as go on a screen. */
static void print_shards(struct status *status, uint32_t shards)
{
        uint32_t busy = 0;
        qsort(status->counts, shards, sizeof(*status->counts), by_waiting);
        while (busy < shards && waiting(&status->counts[busy]))
                busy++;
        for (uint32_t i = 0; i < busy && i < SHARDS_SHOWN; i++) {
                const struct store_counts *c = &status->counts[i];
                struct qv_client_counts sum = QV_CLIENT_COUNTS_INIT;
                char name[16];
                char nonce[NONCE_TEXT];
                char owner[64] = "no owner";
                client_add_counts(&sum, c);
                (void)snprintf(name, sizeof(name), "%u", c->shard);
                if (c->is_held)
                        (void)snprintf(owner, sizeof(owner), "%.8s epoch %" PRIu64 "%s", nonce_text(nonce, c->holder),
                                c->epoch, c->left_ms ? "" : " (expired)");
                print_row(name, &sum, owner);
        }
        if (busy > SHARDS_SHOWN)
                (void)printf("… and %u shards more with something in them (--json has all)\n", busy - SHARDS_SHOWN);
}

static void status_as_text(const struct cli_store *s, struct status *status)
{
        uint32_t owned = 0;
        for (uint32_t i = 0; i < s->info->shards; i++)
                owned += status->counts[i].is_held && status->counts[i].left_ms;
        (void)printf("app       %s, %u shard%s, %u owned\n", s->info->app, s->info->shards,
                show_plural(s->info->shards), owned);
        (void)printf("store     %s\n", s->config.store.url.text);
        (void)printf("durable   %s\n", s->info->durability);
        print_desired(status);
        print_members(status);
        if (!json_array_size(status->members) && !owned)
                (void)printf("host      none is running\n");
        (void)printf("\n%-8s %10s %10s %10s %10s %10s %10s %9s  %s\n", "shard", "queued", "delayed", "in flight",
                "parked", "dead", "results", "oldest", "owner");
        print_row("all", &status->total, "");
        print_shards(status, s->info->shards);
        (void)printf("\n%" PRIu64 " submitted so far, %" PRIu64 " done, %" PRIu64 " dropped\n", status->total.submitted,
                status->total.done, status->total.dropped);
        if (status->total.dead)
                (void)printf("Dead tasks: quiver dead list\n");
        if (status->total.parked)
                (void)printf("Keys that wait: quiver key list\n");
}

int cmd_status(int argc, char **argv)
{
        struct options o = {
                .usage = "status [-c FILE] [--json]",
                .about = "Says what the store holds, shard by shard, who owns it, and what is paused.",
                .specs = specs,
                .count = sizeof(specs) / sizeof(specs[0]),
                .examples = "  quiver status\n"
                            "  quiver status --json | jq .totals.queued\n",
        };
        struct cli_words w = { 0 };
        struct cli_store s;
        struct status status;
        struct error error = { "" };
        options_start(&o, argc, argv);
        (void)cli_words_next(&w, &o);
        if (!w.is_over && w.count) {
                w.is_over = true;
                w.code = options_wrong(&o, "what is %s?", w.words[0]);
        }
        int code = w.is_over ? w.code : cli_open(&s, "status", w.config);
        if (w.is_over || code != EXIT_DONE)
                goto out;
        int r = ask(&s, &status, &error);
        if (r < 0)
                code = cli_fail("status", r, error.text);
        else if (w.has_json)
                status_as_json(&s, &status);
        else
                status_as_text(&s, &status);
        status_free(&status);
        cli_close(&s);
out:
        cli_words_free(&w);
        return code;
}
