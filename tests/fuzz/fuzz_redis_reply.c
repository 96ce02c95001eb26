/* Whatever a Redis answers to owners and to whoever looks: the store's driver reads nothing outside of it, every
 * request ends once, and what it hands out is in range: a window takes it. */
#include "redis_server.h"

const char *const shapes[] = {
        "inniniditi[seoi]it",        /* acquire; its first is 0: granted */
        "i[seoi]t",                  /* in flight */
        "itnidzznnnsp.",             /* advance, nothing asked for */
        "itnid[nhhs]xnnnspp",        /* advance with controls, troubles, a block */
        "btnidzznnnun.",             /* advance, tasks that stand in their list */
        "btnidzznnnun.sn.",          /* the same, of two lanes */
        "idiin",                     /* renew */
        "nnnnnnnnnnnnnnnnnnihnint.", /* count */
        "ni[nseonehhn]",             /* list: rows are lists, made of the same */
        "nn[nseonehhn]tn",           /* find */
        "nnnnn",                     /* dead */
        "nnp",                       /* outbox */
        "n",
        "idp",
        ".ni[h]nn",
};
const size_t shapes_count = sizeof(shapes) / sizeof(shapes[0]);

static void look_at_tasks(const struct store_task *tasks, uint32_t count)
{
        demand(count <= STORE_CALL_TASKS);
        for (uint32_t i = 0; i < count; i++) {
                const struct store_task *t = &tasks[i];
                demand(t->seq <= STORE_SEQ_MAX && t->envelope.lane < LANES && t->key.size && t->envelope.id.size);
                demand(t->note.checkpoint.size <= NOTE_CHECKPOINT_MAX && t->envelope.reply_ms <= TASK_NUMBER_MAX);
                look_at(t->key);
                look_at(t->envelope.payload);
                look_at(t->note.events);
                (void)window_add(&window, t, (uint32_t)t->seq % 3);
        }
}

static void on_acquired(struct store_request *request)
{
        const struct store_acquire *a = (const struct store_acquire *)request;
        done_count++;
        if (request->status || a->grant != STORE_GRANTED)
                return;
        look_at_tasks(a->page.tasks, a->page.tasks_count);
        look_at_due(a->next_due_ms);
        look_at_due(a->next_schedule_ms);
        demand(a->call <= TASK_NUMBER_MAX && a->left_ms <= TASK_NUMBER_MAX && a->stored_epoch <= TASK_NUMBER_MAX);
}

static void on_paged(struct store_request *request)
{
        const struct store_in_flight *p = (const struct store_in_flight *)request;
        done_count++;
        if (!request->status)
                look_at_tasks(p->page.tasks, p->page.tasks_count);
}

/* The tasks that the last advance brought, by seq. */
static uint64_t brought[STORE_CALL_TASKS];
static uint32_t brought_count;

static void on_advanced(struct store_request *request)
{
        const struct store_advance *a = (const struct store_advance *)request;
        done_count++;
        brought_count = 0;
        if (request->status || a->verdict != STORE_OK)
                return;
        for (uint32_t i = 0; i < a->tasks_count; i++)
                brought[brought_count++] = a->tasks[i].seq;
        look_at_tasks(a->tasks, a->tasks_count);
        look_at_due(a->next_due_ms);
        demand(a->controls_count <= STORE_CALL_CONTROLS && a->wanted <= STORE_WANTED_FIRM);
        for (uint32_t i = 0; i < a->controls_count; i++) {
                demand(a->controls[i].verb < CONTROLS && a->controls[i].seq <= STORE_SEQ_MAX);
                look_at(a->controls[i].key);
                (void)window_find(&window, a->controls[i].key, a->controls[i].seq);
        }
}

static void on_listed(struct store_request *request)
{
        const struct store_list *l = (const struct store_list *)request;
        done_count++;
        for (uint32_t i = 0; i < l->tasks_count && !request->status; i++) {
                demand(l->tasks[i].envelope.lane < LANES);
                look_at(l->tasks[i].id);
                look_at(l->tasks[i].key);
                look_at(l->tasks[i].envelope.payload);
        }
}

static void on_found(struct store_request *request)
{
        const struct store_find *f = (const struct store_find *)request;
        done_count++;
        if (f->request.status < 0)
                return;
        demand(f->is_end || f->cursor.major || f->cursor.minor); /* or it would be asked for ever */
        demand(!f->task || f->is_end);
}

static void on_keys(struct store_request *request)
{
        const struct store_keys *k = (const struct store_keys *)request;
        done_count++;
        for (uint32_t i = 0; i < k->keys_count && !request->status; i++) {
                demand(k->keys[i].state < KEY_STATES);
                look_at(k->keys[i].name);
                look_at(k->keys[i].head);
        }
}

static void on_woken(struct store_request *request)
{
        const struct store_wake *w = (const struct store_wake *)request;
        done_count++;
        demand(request->status || w->woken <= STORE_CALL_TASKS);
}

static void on_names(struct store_request *request)
{
        const struct store_names *n = (const struct store_names *)request;
        done_count++;
        for (uint32_t i = 0; i < n->names_count && !request->status; i++)
                demand(store_name_is_good(n->names[i]));
}

/* The driver knows which tasks stand in their lists: it begins with none, and hears of some. */
static void grant(void)
{
        static struct store_acquire acquire;
        acquire = (struct store_acquire){ .request.done = on_done, .lease = lease };
        is_granting = true;
        store_acquire(store, &acquire);
        answer_all();
        is_granting = false;
        demand(!acquire.request.status && acquire.grant == STORE_GRANTED);
        done_count = 0;
}

/* Several calls in a row, each of which says of some of what the last one brought that it is done. */
static void advance_often(void)
{
        static struct store_advance advance;
        static struct store_outcome outcomes[STORE_CALL_TASKS];
        grant();
        brought_count = 0;
        for (unsigned call = 3; call < 8; call++) {
                uint32_t count = 0;
                for (uint32_t i = 0; i < brought_count; i++)
                        if (take_byte() & 1)
                                outcomes[count++] = (struct store_outcome){ .task = { .seq = brought[i] } };
                advance = (struct store_advance){ .request.done = on_advanced,
                        .lease = lease,
                        .call = call,
                        .outcomes = outcomes,
                        .outcomes_count = count,
                        .want = { 256, 256, 256 } };
                store_advance(store, &advance);
                answer_all();
                demand(done_count == 1);
                done_count = 0;
        }
        done_count = 1;
}

static void start_owner(unsigned which)
{
        static struct store_acquire acquire;
        static struct store_in_flight page;
        static struct store_advance advance;
        static struct store_outcome outcome;
        static struct store_renewal renewals[3];
        static struct store_renew renew;
        static struct store_release release;
        static struct store_forward forward;
        static struct store_wake wake;
        static struct store_names names;
        switch (which) {
        case 0:
                acquire = (struct store_acquire){ .request.done = on_acquired, .lease = lease, .page_tasks = 256 };
                store_acquire(store, &acquire);
                break;
        case 1:
                page = (struct store_in_flight){ .request.done = on_paged, .lease = lease };
                store_in_flight(store, &page);
                break;
        case 2:
                outcome = (struct store_outcome){ .task = { .seq = 1, .id = SPAN_TEXT("a-1"), .key = SPAN_TEXT("k") } };
                advance = (struct store_advance){ .request.done = on_advanced,
                        .lease = lease,
                        .call = 3,
                        .outcomes = &outcome,
                        .outcomes_count = 1,
                        .want = { 256, 256, 256 } };
                store_advance(store, &advance);
                break;
        case 3:
                for (unsigned i = 0; i < 3; i++)
                        renewals[i].lease = lease;
                renew = (struct store_renew){ .request.done = on_done, .items = renewals, .items_count = 3 };
                store_renew(store, &renew);
                break;
        case 4:
                release = (struct store_release){ .request.done = on_done, .lease = lease, .call = 4 };
                store_release(store, &release);
                break;
        case 5:
                wake = (struct store_wake){
                        .request.done = on_woken, .lease = lease, .call = 5, .name = SPAN_TEXT("handler:h"), .max = 3
                };
                store_wake(store, &wake);
                break;
        case 6:
                names = (struct store_names){ .request.done = on_names, .lease = lease };
                store_names(store, &names);
                break;
        default:
                forward = (struct store_forward){ .request.done = on_done, .lease = lease };
                store_forward(store, &forward);
        }
}

static void start_admin(unsigned which)
{
        static struct store_counts counts[SHARDS];
        static struct store_count count;
        static struct store_list list;
        static struct store_find find;
        static struct store_keys keys;
        static struct store_dead dead;
        static struct store_fsck fsck;
        static struct store_cancel cancel;
        static struct store_status_list statuses;
        static struct store_desired_get desired;
        switch (which) {
        case 0:
                count = (struct store_count){ .request.done = on_done, .shards = SHARDS, .counts = counts };
                store_count(store, &count);
                break;
        case 1:
                list = (struct store_list){ .request.done = on_listed, .state = take_byte() % STATES };
                store_list(store, &list);
                break;
        case 2:
                find = (struct store_find){ .request.done = on_found, .id = SPAN_TEXT("a-1") };
                store_find(store, &find);
                break;
        case 3:
                keys = (struct store_keys){ .request.done = on_keys };
                store_keys(store, &keys);
                break;
        case 4:
                dead = (struct store_dead){ .request.done = on_done };
                store_dead(store, &dead);
                break;
        case 5:
                fsck = (struct store_fsck){ .request.done = on_done };
                store_fsck(store, &fsck);
                break;
        case 6:
                cancel =
                        (struct store_cancel){ .request.done = on_done, .id = SPAN_TEXT("a-1"), .key = SPAN_TEXT("k") };
                store_cancel(store, &cancel);
                break;
        case 7:
                statuses = (struct store_status_list){ .request.done = on_done };
                store_status_list(store, &statuses);
                break;
        default:
                desired = (struct store_desired_get){ .request.done = on_done };
                store_desired_get(store, &desired);
        }
}

/* Owners read most. */
static void start(uint8_t choice)
{
        unsigned which = choice & 31;
        if (which == 16 || which == 17)
                advance_often();
        else if (which < 23)
                start_owner(which % 8);
        else
                start_admin(which - 23);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        fuzz_one(data, size, start);
        return 0;
}
