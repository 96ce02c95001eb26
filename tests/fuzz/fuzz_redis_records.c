/* Whatever a Redis answers to submits, and about results, mailboxes, rooms, limits, schedules, workers and what is
 * loaded: the store's driver reads nothing outside of it, every request ends once, and what it hands out is in range.
 */
#include "redis_server.h"

const char *const shapes[] = {
        "nnnnn",               /* dead */
        "nteehpo",             /* consume */
        "n[ag]i",              /* submit, with what is remembered */
        "inenenen",            /* mail */
        "ininntententen",      /* room read */
        "ihnnnnnnhnnnnnn",     /* rooms */
        "whntwhnt",            /* wanting */
        "nnnni",               /* limit take */
        "lnntn[rqrq]",         /* limit look */
        "nwnnntsnnewnnntsnne", /* schedules */
        "nnnntsnn",            /* fires */
        "n", "nn",             /* report, schedule set */
        "nin",                 /* load */
        "ivngavnga",           /* what is remembered of submits */
};
const size_t shapes_count = sizeof(shapes) / sizeof(shapes[0]);

static void on_consumed(struct store_request *request)
{
        const struct store_consume *c = (const struct store_consume *)request;
        done_count++;
        for (uint32_t i = 0; i < c->results_count && !request->status; i++)
                look_at(c->results[i].data);
}

static void on_submitted(struct store_request *request)
{
        const struct store_submit *s = (const struct store_submit *)request;
        done_count++;
        for (uint32_t i = 0; i < s->items_count && !request->status; i++) {
                demand(strlen(s->items[i].id) <= TASK_ID_MAX);
                demand(!s->items[i].is_repeat || (!s->items[i].status && s->items[i].idempotency.size));
        }
}

static void start_results(unsigned which)
{
        static struct store_consume consume;
        static struct store_commit commit;
        static struct store_reply reply;
        static struct store_submission items[2];
        static struct store_submit submit;
        static const uint64_t numbers_held[2] = { 1, 2 };
        static bool held[2];
        switch (which) {
        case 0:
                consume = (struct store_consume){ .request.done = on_consumed, .lease_ms = 1000, .results_max = 64 };
                store_consume(store, &consume);
                break;
        case 1:
                commit = (struct store_commit){
                        .request.done = on_done, .numbers = numbers_held, .numbers_count = 2, .held = held
                };
                store_commit(store, &commit);
                break;
        case 2:
                reply = (struct store_reply){ .request.done = on_done, .id = SPAN_TEXT("a-1") };
                store_reply(store, &reply);
                break;
        default:
                for (unsigned i = 0; i < 2; i++) {
                        uint8_t options = take_byte();
                        items[i] = (struct store_submission){ .envelope = { .key = SPAN_TEXT("k"),
                                                                      .handler = SPAN_TEXT("work"),
                                                                      .lane = LANE_NORMAL,
                                                                      .unique_ms = options & 1 ? 1000 : 0 },
                                .idempotency = options & 2 ? SPAN_TEXT("name") : SPAN_TEXT("") };
                }
                submit = (struct store_submit){ .request.done = on_submitted, .items = items, .items_count = 2 };
                store_submit(store, &submit);
        }
}

static void on_mail(struct store_request *request)
{
        const struct store_mail_take *t = (const struct store_mail_take *)request;
        done_count++;
        demand(request->status || t->messages_count <= t->messages_max);
        for (uint32_t i = 0; i < t->messages_count && !request->status; i++) {
                demand(t->messages[i].number <= TASK_NUMBER_MAX);
                look_at(t->messages[i].bytes);
        }
}

static void on_wanting(struct store_request *request)
{
        const struct store_wanting_list *l = (const struct store_wanting_list *)request;
        done_count++;
        for (uint32_t i = 0; i < l->items_count && !request->status; i++)
                demand(l->items[i].tasks <= TASK_NUMBER_MAX && !task_handler_check(l->items[i].handler, NULL));
}

static void on_room_read(struct store_request *request)
{
        const struct store_room_read *r = (const struct store_room_read *)request;
        done_count++;
        if (request->status)
                return;
        demand(r->entries_count <= r->entries_max && r->first <= r->last + 1);
        for (uint32_t i = 0; i < r->entries_count; i++) {
                demand(r->entries[i].number <= TASK_NUMBER_MAX && r->entries[i].at_ms <= TASK_NUMBER_MAX);
                look_at(r->entries[i].bytes);
        }
}

static void on_rooms(struct store_request *request)
{
        const struct store_room_list *l = (const struct store_room_list *)request;
        done_count++;
        for (uint32_t i = 0; i < l->rooms_count && !request->status; i++) {
                demand(l->rooms[i].first <= l->rooms[i].last + 1);
                look_at(l->rooms[i].name);
        }
}

static struct store_limit_item limit_item;

static void on_limit_taken(struct store_request *request)
{
        done_count++;
        demand(request->status ||
                (limit_item.granted <= limit_item.want && limit_item.left_ms <= STORE_LIMIT_LEASE_MS));
}

static void on_limit_look(struct store_request *request)
{
        const struct store_limit_look *l = (const struct store_limit_look *)request;
        done_count++;
        for (uint32_t i = 0; i < l->listed && !request->status; i++) {
                demand(l->values[i].held <= TASK_NUMBER_MAX && l->values[i].tokens <= STORE_LIMIT_MAX);
                look_at(l->values[i].value);
        }
}

static void look_at_schedule(const struct store_schedule *s)
{
        demand(s->state <= SCHEDULE_DELETED && s->version <= TASK_NUMBER_MAX && s->fired <= TASK_NUMBER_MAX);
        look_at_due(s->next_ms);
        look_at(s->definition);
}

static void on_schedules(struct store_request *request)
{
        const struct store_schedule_list *l = (const struct store_schedule_list *)request;
        done_count++;
        demand(request->status || l->schedules_count <= STORE_SCHEDULES_MAX);
        for (uint32_t i = 0; i < l->schedules_count && !request->status; i++)
                look_at_schedule(&l->schedules[i]);
}

static void on_fired(struct store_request *request)
{
        const struct store_fires *f = (const struct store_fires *)request;
        done_count++;
        if (request->status || f->verdict != STORE_OK)
                return;
        demand(f->fires[0].fired <= STORE_FIRE_STALE);
        look_at_schedule(&f->fires[0].stored);
}

static void on_schedule_set(struct store_request *request)
{
        const struct store_schedule_set *s = (const struct store_schedule_set *)request;
        done_count++;
        demand(request->status || s->change <= SCHEDULE_STALE);
}

/* Limits and schedules. */
static void start_shared(unsigned which)
{
        static struct store_limit_take take;
        static struct store_limit_look look;
        static struct store_schedule_list list;
        static struct store_schedule_set set;
        static struct store_fire fire;
        static struct store_fires fires;
        switch (which) {
        case 0:
                limit_item = (struct store_limit_item){ .want = 3 };
                take = (struct store_limit_take){ .request.done = on_limit_taken,
                        .limit = { .name = SPAN_TEXT("api"), .version = 1, .concurrency = 5, .values_max = 9 },
                        .lease_ms = 1000,
                        .items = &limit_item,
                        .items_count = 1 };
                store_limit_take(store, &take);
                break;
        case 1:
                look = (struct store_limit_look){
                        .request.done = on_limit_look, .name = SPAN_TEXT("api"), .page_values = 9
                };
                store_limit_look(store, &look);
                break;
        case 2:
                list = (struct store_schedule_list){ .request.done = on_schedules };
                store_schedule_list(store, &list);
                break;
        case 3:
                set = (struct store_schedule_set){ .request.done = on_schedule_set,
                        .verb = SCHEDULE_PUT,
                        .name = SPAN_TEXT("work"),
                        .version = 1,
                        .definition = SPAN_TEXT("{}"),
                        .next_ms = 1000 };
                store_schedule_set(store, &set);
                break;
        default:
                fire = (struct store_fire){
                        .name = SPAN_TEXT("work"), .version = 1, .expected_ms = 1000, .next_ms = STORE_NEVER
                };
                fires = (struct store_fires){
                        .request.done = on_fired, .lease = lease, .call = 5, .fires = &fire, .fires_count = 1
                };
                store_fires(store, &fires);
        }
}

static void start_room(unsigned which)
{
        static struct store_room_append append;
        static struct store_room_read read;
        static struct store_room_truncate truncate;
        static struct store_room_list list;
        static const struct span entry = SPAN_TEXT("x");
        switch (which) {
        case 0:
                append = (struct store_room_append){
                        .request.done = on_done, .name = SPAN_TEXT("room"), .entries = &entry, .entries_count = 1
                };
                store_room_append(store, &append);
                break;
        case 1:
                truncate = (struct store_room_truncate){ .request.done = on_done, .name = SPAN_TEXT("room") };
                store_room_truncate(store, &truncate);
                break;
        case 2:
                list = (struct store_room_list){ .request.done = on_rooms, .page_rooms = 3 };
                store_room_list(store, &list);
                break;
        default:
                read = (struct store_room_read){
                        .request.done = on_room_read, .name = SPAN_TEXT("room"), .entries_max = 3, .follow_ms = 1000
                };
                store_room_read(store, &read);
        }
}

/* What hosts say to each other. */
static void start_mail(unsigned which)
{
        static struct store_post post;
        static struct store_mail_take take;
        static struct store_wanting_list list;
        switch (which) {
        case 0:
                post = (struct store_post){ .request.done = on_done, .bytes = SPAN_TEXT("hello") };
                store_post(store, &post);
                break;
        case 1:
                take = (struct store_mail_take){ .request.done = on_mail, .messages_max = 3 };
                store_mail_take(store, &take);
                break;
        default:
                list = (struct store_wanting_list){ .request.done = on_wanting };
                store_wanting_list(store, &list);
        }
}

/* --- what a worker says; what another store had --- */

static void on_report(struct store_request *request)
{
        const struct store_report *r = (const struct store_report *)request;
        done_count++;
        demand(request->status || r->left_ms <= STORE_START_MAX_MS);
}

static void on_imported(struct store_request *request)
{
        const struct store_import *i = (const struct store_import *)request;
        done_count++;
        demand(request->status || (i->taken <= TASK_NUMBER_MAX && i->names_left <= i->names_count));
}

static void on_remembered(struct store_request *request)
{
        const struct store_remembered_list *l = (const struct store_remembered_list *)request;
        done_count++;
        demand(request->status || l->names_count + l->unreadable <= l->page_names);
        for (uint32_t i = 0; i < l->names_count && !request->status; i++)
                demand(idempotency_is_fit(&l->names[i]));
        if (!request->status)
                look_at(l->next);
}

static void start_moving(unsigned which)
{
        static struct store_report report;
        static struct store_import import;
        static struct store_remembered_list list;
        static const struct store_remembered name = { .scope = SPAN_TEXT("n\nk"),
                .id = SPAN_TEXT("a-1"),
                .digest = SPAN_TEXT("01234567890123456789012345678901"),
                .left_ms = 1 };
        switch (which) {
        case 0:
                report = (struct store_report){ .request.done = on_report,
                        .verb = CONTROL_HEARTBEAT,
                        .id = SPAN_TEXT("a-1"),
                        .seq = 1,
                        .start = SPAN_TEXT("worker/7.1"),
                        .data = SPAN_TEXT("x") };
                store_report(store, &report);
                break;
        case 1:
                import = (struct store_import){ .request.done = on_imported,
                        .source = SPAN_TEXT("dump"),
                        .number = 1,
                        .names = &name,
                        .names_count = 1 };
                store_import(store, &import);
                break;
        default:
                list = (struct store_remembered_list){ .request.done = on_remembered, .page_names = 3 };
                store_remembered_list(store, &list);
        }
}

static void start(uint8_t choice)
{
        switch (choice % 8) {
        case 0:
        case 1:
                start_results(take_byte() % 4);
                break;
        case 2:
                start_mail(take_byte() % 3);
                break;
        case 3:
        case 4:
                start_shared(take_byte() % 5);
                break;
        case 5:
                start_room(take_byte() % 4);
                break;
        default:
                start_moving(take_byte() % 3);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        fuzz_one(data, size, start);
        return 0;
}
