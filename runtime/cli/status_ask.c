/* status_ask.c: everything that a store can say at once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "cli/json.h"
#include "cli/status.h"

const char *status_nonce(char text[STATUS_NONCE_TEXT], const uint8_t nonce[STORE_NONCE_SIZE])
{
        return units_hex(text, nonce, STORE_NONCE_SIZE);
}

static void add_desired(void *self, const struct store_desired *item)
{
        struct status *status = self;
        char name[128];
        (void)snprintf(name, sizeof(name), "%.*s", (int)item->name.size, item->name.data);
        if (!strcmp(name, "pause"))
                cli_json_span(status->paused, "", item->value);
        else if (!strncmp(name, "pause.", 6))
                cli_json_span(status->paused, name + 6, item->value);
        else
                cli_json_span(status->desired, name, item->value);
}

static void add_document(void *self, const struct store_status *found)
{
        const struct status *status = self;
        char nonce[STATUS_NONCE_TEXT];
        json_t *document = json_loadb(found->document.data, found->document.size, 0, NULL);
        if (!json_is_object(document)) {
                json_decref(document);
                document = json_object();
        }
        (void)json_object_set_new(document, "nonce", json_string(status_nonce(nonce, found->nonce)));
        cli_json_number(document, "age_ms", found->age_ms);
        (void)json_array_append_new(status->documents, document);
}

int status_ask(struct cli_store *s, struct status *ret, struct error *error)
{
        *ret = (struct status){
                .shards = s->info->shards,
                .counts = calloc(s->info->shards, sizeof(*ret->counts)),
                .total = QV_CLIENT_COUNTS_INIT,
                .paused = json_object(),
                .desired = json_object(),
                .documents = json_array(),
        };
        if (!ret->counts)
                abort();
        uint64_t version;
        int r = client_count(s->client, 0, ret->shards, ret->counts, error);
        for (uint32_t i = 0; r == 0 && i < ret->shards; i++) {
                client_add_counts(&ret->total, &ret->counts[i]);
                ret->owned += ret->counts[i].is_held && ret->counts[i].left_ms;
        }
        if (r == 0)
                r = client_desired(s->client, add_desired, ret, &version, error);
        if (r == 0)
                r = client_statuses(s->client, add_document, ret, error);
        if (r == 0)
                status_merge(ret);
        return r;
}

void status_free(struct status *status)
{
        free(status->counts);
        json_decref(status->paused);
        json_decref(status->desired);
        json_decref(status->documents);
        json_decref(status->members);
        json_decref(status->handlers);
        json_decref(status->rates);
}
