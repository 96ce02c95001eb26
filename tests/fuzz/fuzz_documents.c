/* Any documents in the place of those that hosts write about themselves into the store, and any desired state: JSON
 * with the members that are looked for and values that they should not have, or any bytes.  Commands, the page and
 * every host that is asked over HTTP read them.  What is shown is JSON that can be written and text that a terminal can
 * get, and what a predecessor's document says is remembered within its limits. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "choices.h"
#include "host/report/done_document.h"
#include "store/app.h"
#include "store/limit_override.h"
#include "view/alarm.h"
#include "view/done.h"
#include "view/json.h"
#include "view/members.h"
#include "view/problems.h"
#include "view/status.h"
#include "view/whereabouts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SHARDS    4u
#define DOCUMENTS 3u
#define DEPTH_MAX 5u
#define NOW_MS    UINT64_C(1763256000000)

/* --- documents ---------------------------------------------------------------------------------------------------- */

static const char *const names[] = { "name", "nonce", "state", "weight", "pid", "version", "machine", "started_ms",
        "seats", "shards", "fenced", "rates", "done", "retried", "failed", "handlers", "plugin", "generation", "hash",
        "waiting", "running", "oldest_ms", "unavailable", "unavailable_ms", "done_rate", "failed_rate", "run_p50_ms",
        "run_p99_ms", "versions", "at_ms", "outcome", "by", "limits", "kind", "rate", "per_ms", "burst", "concurrency",
        "granted", "refused", "in_use", "buckets", "started_rate", "closed", "schedules", "conflicts", "in_force",
        "differ", "http", "http_counts", "accepted", "requests", "reload", "unserved", "handlers_left_out", "lent",
        "borrowed", "id", "handler", "key", "since_ms", "progress", "attempt", "worker", "until_ms", "seat", "shard",
        "behind", "more", "tasks", "kept", "kinds", "is_last", "standby", "sees_store", "load", "start", "epoch",
        "holder", "suspect", "move_pending", "problem", "started", "crashed", "paused" };

static const char *const values[] = { "0", "1", "-1", "2", "\"a\"", "\"mail\"", "\"\"", "\"a-1\"", "null", "true",
        "9223372036854775807", "-9223372036854775808", "1e308", "0.1", "4294967296", "\"\\u001b[31m\"", "\"\\n\"",
        "\"00112233445566778899aabbccddeeff\"", "\"open\"", "\"quarantined\"", "\"host-a\"", "1763256000000",
        "\"\\u0000\"", "\"rate\"", "\"concurrency\"" };

#define CHOOSE_ONE(c, list) (list)[choose(c, sizeof(list) / sizeof((list)[0]))]

static void put_value(struct buffer *b, struct choices *c, unsigned depth);

static void put_object(struct buffer *b, struct choices *c, unsigned depth)
{
        buffer_printf(b, "{");
        for (unsigned i = 0, count = choose(c, 8); i < count; i++) {
                buffer_printf(b, "%s\"%s\":", i ? "," : "", CHOOSE_ONE(c, names));
                put_value(b, c, depth + 1);
        }
        buffer_printf(b, "}");
}

static void put_value(struct buffer *b, struct choices *c, unsigned depth)
{
        unsigned which = choose(c, depth < DEPTH_MAX ? 16 : 10);
        if (which < 10) {
                buffer_printf(b, "%s", CHOOSE_ONE(c, values));
        } else if (which < 13) {
                put_object(b, c, depth);
        } else {
                buffer_printf(b, "[");
                for (unsigned i = 0, count = choose(c, 8); i < count; i++) {
                        buffer_printf(b, "%s", i ? "," : "");
                        put_value(b, c, depth + 1);
                }
                buffer_printf(b, "]");
        }
}

/* One that is nearly right, so that what is in it meets. */
static void put_status(struct buffer *b, struct choices *c)
{
        buffer_printf(
                b, "{\"name\":\"%s\",\"running\":[[%u,", choose(c, 2) ? "host-a" : "host-b", choose(c, SHARDS + 2));
        put_value(b, c, 4);
        buffer_printf(b, "]],\"rates\":");
        put_object(b, c, 3);
        buffer_printf(b, ",\"unserved\":[\"mail\"],\"handlers\":[{\"name\":\"mail\",\"");
        buffer_printf(b, "%s\":", CHOOSE_ONE(c, names));
        put_value(b, c, 1);
        buffer_printf(b, "},");
        put_object(b, c, 2);
        buffer_printf(b, "],\"limits\":[{\"name\":\"api\",\"%s\":", CHOOSE_ONE(c, names));
        put_value(b, c, 3);
        buffer_printf(b, "}],\"%s\":", CHOOSE_ONE(c, names));
        put_value(b, c, 1);
        buffer_printf(b, "}");
}

static void put_done(struct buffer *b, struct choices *c)
{
        buffer_printf(b, "{\"name\":\"host-a\",\"since_ms\":%s,\"kept\":%s,\"kinds\":[[\"mail\",3,\"9f0c1a2b\"],",
                CHOOSE_ONE(c, values), CHOOSE_ONE(c, values));
        put_value(b, c, 3);
        buffer_printf(b, "],\"tasks\":[[\"a-1\",0,2,4711,12000,40,12]");
        for (unsigned i = choose(c, 4); i; i--) {
                buffer_printf(b, ",[\"a-1\"");
                for (unsigned n = choose(c, 9); n; n--)
                        buffer_printf(b, ",%s", CHOOSE_ONE(c, values));
                buffer_printf(b, "]");
        }
        buffer_printf(b, "]}");
}

static void put_document(struct buffer *b, struct choices *c)
{
        switch (choose(c, 4)) {
        case 0:
                put_value(b, c, 0);
                break;
        case 1:
                put_done(b, c);
                break;
        case 2:
                buffer_put(b, c->data, c->size);
                break;
        default:
                put_status(b, c);
        }
        if (!choose(c, 16) && b->size)
                b->data[choose_number(c) % b->size] = choose_byte(c);
}

/* --- what is made of them ----------------------------------------------------------------------------------------- */

/* Takes it. */
static void demand_json(json_t *json)
{
        demand(json);
        char *text = json_dumps(json, JSON_ENCODE_ANY);
        demand(text);
        free(text);
        json_decref(json);
}

/* Takes it.  Whoever looks at a terminal sees what there is, and the terminal does nothing: our own colours are off. */
static void demand_text(struct buffer *text)
{
        for (size_t i = 0; i < text->size; i++) {
                unsigned char byte = (unsigned char)text->data[i];
                demand((byte >= ' ' && byte != 0x7f) || byte == '\n' || byte == '\t');
        }
        buffer_free(text);
}

static void look_at_status(struct choices *c, const struct store_status *documents, const struct store_desired *desired)
{
        static const struct store_info info = { .driver = "sqlite",
                .app = "shop",
                .coordination = "",
                .durability = "all",
                .refuses = "",
                .endangers = "",
                .shards = SHARDS };
        static const char *const alarms[] = { "oldest=5m", "dead@mail=1", "hosts=3", "waiting=1" };
        struct store_counts counts[SHARDS] = { 0 };
        struct status status;
        struct alarm alarm;
        struct buffer text = { 0 };
        for (uint32_t i = 0; i < SHARDS; i++) {
                counts[i] = (struct store_counts){
                        .shard = i, .is_held = true, .left_ms = choose(c, 2), .in_flight = choose(c, 4)
                };
                memset(counts[i].holder, (int)choose(c, 3), STORE_NONCE_SIZE);
        }
        status_init(&status, &info, "sqlite:q.db", counts);
        status.now_ms = NOW_MS;
        status_add_desired(&status, desired);
        for (unsigned i = 0; i < DOCUMENTS; i++)
                status_add_document(&status, &documents[i]);
        struct store_total total = { SPAN_TEXT("mail.done"), choose_number(c) };
        status_add_total(&status, &total);
        demand_json(status_as_json(&status));
        demand_json(problems_as_json(&status));
        status_as_text(&text, &status, &(struct status_screen){ .lines = choose(c, 2) ? 24 : 0 });
        demand_text(&text);
        demand(alarm_parse(CHOOSE_ONE(c, alarms), &alarm, NULL) == 0);
        (void)alarm_is_reached(&alarm, &status, &text);
        demand_text(&text);
        status_free(&status);
}

static void look_for_task(struct choices *c, const struct store_status *documents, const struct store_desired *desired)
{
        struct whereabouts w;
        struct buffer text = { 0 };
        struct store_counts shard = { .epoch = 3, .left_ms = 10, .is_held = true };
        struct store_key_info key = { .key = SPAN_TEXT("k"), .state = (enum store_key_state)choose(c, KEY_STATES) };
        struct store_listed task = { .state = (enum store_state)choose(c, STATES),
                .envelope = { .handler = SPAN_TEXT("mail"), .key = SPAN_TEXT("k") },
                .id = SPAN_TEXT("a-1"),
                .key = SPAN_TEXT("k") };
        memset(shard.holder, 1, STORE_NONCE_SIZE);
        whereabouts_init(&w);
        whereabouts_add_desired(&w, desired);
        for (unsigned i = 0; i < DOCUMENTS; i++) {
                whereabouts_add_status(&w, &documents[i]);
                whereabouts_add_running(&w, &documents[i]);
        }
        json_t *found = whereabouts_of(&w, &task, &(struct whereabouts_place){ &shard, &key });
        whereabouts_as_text(&text, found, NOW_MS);
        demand_text(&text);
        whereabouts_as_words(&text, found, NOW_MS);
        demand_text(&text);
        demand_json(found);
        (void)whereabouts_of_key(&w, SPAN_TEXT("k"));
        (void)whereabouts_handler_waits(&w, "mail", &text);
        buffer_free(&text);
        whereabouts_free(&w);
}

static void look_for_done(const struct store_status *documents)
{
        struct done_search search;
        struct done_tasks done;
        struct buffer text = { 0 };
        done_search_init(&search, SPAN_TEXT("a-1"), NOW_MS);
        done_tasks_init(&done, 4, 1000);
        for (unsigned i = 0; i < DOCUMENTS; i++) {
                done_search_add(&search, &documents[i]);
                done_document_read(&done, documents[i].document, documents[i].age_ms, 1000);
        }
        if (search.found) {
                done_as_text(&text, search.found);
                demand_text(&text);
        }
        done_search_missing(&text, &search);
        demand_text(&text);
        for (uint32_t i = 0; i < done.count; i++) {
                const struct done_task *task = done_tasks_get(&done, i);
                demand(task && task->id_size && task->id_size <= TASK_ID_MAX && task->handler_size <= TASK_HANDLER_MAX);
        }
        char *written = done_document_make(&done, "host-a", UINT64_C(3600000), false, 2000, STORE_RUNNING_MAX);
        demand(strlen(written) <= STORE_RUNNING_MAX);
        struct done_tasks again;
        done_tasks_init(&again, 4, 2000);
        done_document_read(&again, span_of_text(written), 0, 2000);
        demand(again.count <= done.count); /* what is too old is left out */
        done_tasks_free(&again);
        free(written);
        done_tasks_free(&done);
        done_search_free(&search);
}

static void look_at_members(const struct store_status *documents)
{
        static const char *const nodes[] = { "00112233445566778899aabbccddeeff-0000000001" };
        struct membership_view view = { 0 };
        struct buffer text = { 0 };
        membership_view_set_leader(&view, nodes, 1);
        for (unsigned i = 0; i < DOCUMENTS; i++) {
                membership_view_add_member(&view, "host-a.00112233445566778899aabbccddeeff", documents[i].document);
                membership_view_add_document(&view, &documents[i]);
        }
        membership_view_set_assignment(&view, documents[0].document);
        membership_view_set_moves(&view, documents[1].document);
        membership_as_text(&text, &view, &(struct membership_screen){ .moves_max = 5, .now_ms = NOW_MS });
        demand_text(&text);
        demand_json(membership_as_json(&view));
        membership_view_free(&view);
}

static void read_override(struct span text)
{
        struct limit_override override, again;
        struct buffer written = { 0 };
        if (!limit_override_read(text, &override))
                return;
        limit_override_put(&written, &override);
        demand(limit_override_read((struct span){ (const char *)written.data, written.size }, &again));
        demand(!memcmp(&override, &again, sizeof(again)));
        buffer_free(&written);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static const char *const wishes[] = { "pause", "pause.mail", "drain.host-a", "limit.api", "reload.1", "",
                "pause." };
        struct choices c = { data, size };
        struct buffer texts[DOCUMENTS + 1] = { 0 };
        struct store_status documents[DOCUMENTS] = { 0 };
        for (unsigned i = 0; i <= DOCUMENTS; i++)
                put_document(&texts[i], &c);
        for (unsigned i = 0; i < DOCUMENTS; i++) {
                memset(documents[i].nonce, (int)choose(&c, 3), STORE_NONCE_SIZE);
                documents[i].age_ms = choose(&c, 2) ? 1000 : choose_number(&c);
                documents[i].document = (struct span){ (const char *)texts[i].data, texts[i].size };
        }
        struct store_desired desired = { span_of_text(CHOOSE_ONE(&c, wishes)),
                choose(&c, 2) ? SPAN_TEXT("version=7 rate=20 until=1763256000001")
                              : (struct span){ (const char *)texts[DOCUMENTS].data, texts[DOCUMENTS].size } };
        read_override(desired.value);
        look_at_status(&c, documents, &desired);
        look_for_task(&c, documents, &desired);
        look_for_done(documents);
        look_at_members(documents);
        for (unsigned i = 0; i <= DOCUMENTS; i++)
                buffer_free(&texts[i]);
        return 0;
}
