/* status_json.c: `quiver status --json`. */
#include "cli/json.h"
#include "cli/status.h"

/* What a shard and the whole have in common. */
static void set_counts(json_t *o, const struct qv_client_counts *c)
{
        cli_json_number(o, "queued", c->queued);
        cli_json_number(o, "delayed", c->delayed);
        cli_json_number(o, "in_flight", c->in_flight);
        cli_json_number(o, "parked", c->parked);
        cli_json_number(o, "dead", c->dead);
        cli_json_number(o, "oldest_ms", c->oldest_ms);
}

static json_t *shard_of(const struct store_counts *c)
{
        struct qv_client_counts sum = QV_CLIENT_COUNTS_INIT;
        char nonce[STATUS_NONCE_TEXT];
        json_t *o = json_object();
        client_add_counts(&sum, c);
        cli_json_number(o, "shard", c->shard);
        (void)json_object_set_new(o, "owner", c->is_held ? json_string(status_nonce(nonce, c->holder)) : json_null());
        cli_json_number(o, "epoch", c->epoch);
        set_counts(o, &sum);
        return o;
}

static json_t *totals_of(const struct cli_store *s, const struct status *status)
{
        json_t *o = json_object();
        set_counts(o, &status->total);
        cli_json_number(o, "results", status->total.results);
        cli_json_number(o, "submitted", status->total.submitted);
        cli_json_number(o, "done", status->total.done);
        cli_json_number(o, "dropped", status->total.dropped);
        cli_json_number(o, "owned", status->owned);
        (void)json_object_set(o, "paused", status->paused);
        (void)json_object_set(o, "desired", status->desired);
        (void)json_object_set_new(o, "durability", json_string(s->info->durability));
        if (*s->info->refuses)
                (void)json_object_set_new(o, "refuses", json_string(s->info->refuses));
        return o;
}

void status_print_json(const struct cli_store *s, const struct status *status, bool is_wide)
{
        const char *coordination = s->info->coordination;
        json_t *o = json_object();
        json_t *shards = json_array();
        for (uint32_t i = 0; i < status->shards; i++)
                (void)json_array_append_new(shards, shard_of(&status->counts[i]));
        (void)json_object_set_new(o, "app", json_string(s->info->app));
        (void)json_object_set_new(o, "store", cli_json_text(s->config.store.url.text));
        (void)json_object_set_new(o, "coordination", *coordination ? cli_json_text(coordination) : json_null());
        (void)json_object_set_new(o, "shards", shards);
        (void)json_object_set(o, "members", status->members);
        (void)json_object_set(o, "handlers", status->handlers);
        (void)json_object_set_new(o, "totals", totals_of(s, status));
        (void)json_object_set(o, "rates", status->rates);
        if (is_wide)
                cli_json_print_wide(o);
        else
                cli_json_print(o);
}
