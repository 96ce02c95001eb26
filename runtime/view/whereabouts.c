#include "view/whereabouts.h"

#include <inttypes.h>
#include <string.h>

#include "base/numbers.h"
#include "base/units.h"
#include "store/names.h"
#include "view/json.h"
#include "view/text.h"

#define NONCE_TEXT (2 * STORE_NONCE_SIZE + 1)

/* Fields of a running task in a host's document that are passed on. */
static const char *const running_texts[] = { "host", "hash", "worker", "seat" };
static const char *const running_numbers[] = { "pid", "generation", "attempt", "since_ms", "until_ms" };

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

void whereabouts_init(struct whereabouts *w)
{
        *w = (struct whereabouts){ .hosts = json_object(),
                .running = json_object(),
                .by_key = json_object(),
                .handlers = json_object(),
                .unserved = json_object(),
                .paused = json_object(),
                .limited = json_object() };
}

void whereabouts_free(struct whereabouts *w)
{
        json_decref(w->hosts);
        json_decref(w->running);
        json_decref(w->by_key);
        json_decref(w->handlers);
        json_decref(w->unserved);
        json_decref(w->paused);
        json_decref(w->limited);
        *w = (struct whereabouts){ 0 };
}

/* --- gathering --- */

static void set_by_text(json_t *to, struct span name, json_t *value)
{
        json_t *text = view_json_text_span(name);
        (void)json_object_set_new(to, json_string_value(text), value);
        json_decref(text);
}

static json_t *get_by_text(const json_t *from, struct span name)
{
        json_t *text = view_json_text_span(name);
        json_t *found = json_object_get(from, json_string_value(text));
        json_decref(text);
        return found;
}

void whereabouts_add_desired(struct whereabouts *w, const struct store_desired *item)
{
        static const struct span all = SPAN_TEXT("pause");
        static const struct span one = SPAN_TEXT("pause.");
        if (span_is(item->name, all))
                (void)json_object_set_new(w->paused, "", view_json_text_span(item->value));
        else if (item->name.size > one.size && !memcmp(item->name.data, one.data, one.size))
                set_by_text(w->paused, (struct span){ item->name.data + one.size, item->name.size - one.size },
                        view_json_text_span(item->value));
}

static json_t *read_document(const struct store_status *document)
{
        struct span text = document->document;
        return json_loadb(text.size ? text.data : "", text.size, 0, NULL);
}

/* Tasks that wait for the limit in windows belong to one of its handlers. */
static void add_limit(struct whereabouts *w, const json_t *limit)
{
        size_t i;
        const json_t *handler;
        if (!view_json_get_number(limit, "waiting"))
                return;
        json_array_foreach(json_object_get(limit, "handlers"), i, handler)
        {
                if (json_is_string(handler))
                        view_json_set_text(w->limited, json_string_value(handler), view_json_get_text(limit, "name"));
        }
}

void whereabouts_add_status(struct whereabouts *w, const struct store_status *document)
{
        char nonce[NONCE_TEXT];
        json_t *said = read_document(document);
        const char *name = view_json_get_text(said, "name");
        size_t i;
        json_t *item;
        (void)units_hex(nonce, document->nonce, STORE_NONCE_SIZE);
        view_json_set_text(w->hosts, nonce, *name ? name : nonce);
        json_array_foreach(json_object_get(said, "unserved"), i, item)
        {
                if (json_is_string(item))
                        (void)json_object_set_new(w->unserved, json_string_value(item), json_true());
        }
        json_array_foreach(json_object_get(said, "limits"), i, item)
        {
                add_limit(w, item);
        }
        json_array_foreach(json_object_get(said, "handlers"), i, item)
        {
                const char *handler = view_json_get_text(item, "name");
                json_t *list = json_object_get(w->handlers, handler);
                if (!*handler)
                        continue;
                if (!list) {
                        list = json_array();
                        (void)json_object_set_new(w->handlers, handler, list);
                }
                view_json_set_text(item, "host", *name ? name : nonce);
                view_json_number(item, "age_ms", document->age_ms);
                (void)json_array_append(list, item);
        }
        json_decref(said);
}

void whereabouts_add_running(struct whereabouts *w, const struct store_status *document)
{
        char nonce[NONCE_TEXT];
        json_t *said = read_document(document);
        const char *name = view_json_get_text(said, "name");
        size_t i;
        json_t *task;
        (void)units_hex(nonce, document->nonce, STORE_NONCE_SIZE);
        w->more += view_json_get_number(said, "more");
        json_array_foreach(json_object_get(said, "tasks"), i, task)
        {
                const char *id = view_json_get_text(task, "id");
                if (!*id)
                        continue;
                view_json_set_text(task, "host", *name ? name : nonce);
                (void)json_object_set(w->running, id, task);
                (void)json_object_set(w->by_key, view_json_get_text(task, "key"), task);
        }
        json_decref(said);
}

const json_t *whereabouts_running(const struct whereabouts *w)
{
        return w->running;
}

const json_t *whereabouts_of_key(const struct whereabouts *w, struct span key)
{
        return get_by_text(w->by_key, key);
}

/* --- why a task waits --- */

static bool is_paused(const struct whereabouts *w, const char *handler, struct buffer *why)
{
        const json_t *one = json_object_get(w->paused, handler);
        const json_t *all = json_object_get(w->paused, "");
        if (!one && !all)
                return false;
        text_put_between(why, one ? "" : "everything is paused: ", one ? handler : json_string_value(all), "");
        if (one)
                text_put_between(why, " is paused: ", json_string_value(one), "");
        buffer_printf(why, " (quiver resume");
        if (one) {
                buffer_put(why, " ", 1);
                text_put_word(why, span_of_text(handler));
        }
        buffer_put(why, ")", 1);
        return true;
}

static void put_outage(struct buffer *why, const json_t *said, const char *handler, const char *state)
{
        char age[UNITS_TEXT_MAX];
        const char *text = view_json_get_text(said, "unavailable");
        uint64_t since_ms = view_json_get_number(said, "unavailable_ms");
        text_put_between(why, "", handler, " is ");
        buffer_printf(why, "%s", state);
        text_put_between(why, " on ", view_json_get_text(said, "host"), "");
        if (since_ms)
                buffer_printf(why, " for %s", units_format_ms(age, since_ms + view_json_get_number(said, "age_ms")));
        text_put_between(why, *text ? ": " : "", text, "");
}

bool whereabouts_handler_waits(const struct whereabouts *w, const char *handler, struct buffer *why)
{
        size_t i;
        const json_t *said;
        if (is_paused(w, handler, why))
                return true;
        json_array_foreach(json_object_get(w->handlers, handler), i, said)
        {
                const char *state = view_json_get_text(said, "state");
                if (!strcmp(state, "unavailable") || !strcmp(state, "quarantined") || !strcmp(state, "refused")) {
                        put_outage(why, said, handler, state);
                        return true;
                }
        }
        if (!json_object_get(w->handlers, handler) && json_object_size(w->hosts)) {
                text_put_between(why, "no host serves ", handler, "; add it to runtime.cfg and reload");
                return true;
        }
        return false;
}

static const char *owner_of(const struct whereabouts *w, const struct store_counts *shard)
{
        char nonce[NONCE_TEXT];
        if (!shard || !shard->is_held || !shard->left_ms)
                return NULL;
        (void)units_hex(nonce, shard->holder, STORE_NONCE_SIZE);
        const char *name = view_json_get_text(w->hosts, nonce);
        if (*name)
                return name;
        return *shard->host ? shard->host : "a host";
}

/* Adds the task of the same key that runs before it. */
static void set_behind(json_t *o, const struct whereabouts *w, const struct store_listed *task)
{
        const json_t *before = task->key.size ? get_by_text(w->by_key, task->key) : NULL;
        const char *id = view_json_get_text(before, "id");
        if (*id && !span_is(task->id, span_of_text(id)))
                view_json_set_text(o, "behind", id);
}

static void put_seats(struct buffer *why, const struct whereabouts *w, const char *handler)
{
        const char *limit = view_json_get_text(w->limited, handler);
        if (*limit) {
                text_put_between(why, "limit ", limit, "");
                text_put_between(why, ", or a free seat of ", handler, "");
                return;
        }
        uint64_t running = 0;
        bool is_remote = false;
        size_t i;
        const json_t *said;
        json_array_foreach(json_object_get(w->handlers, handler), i, said)
        {
                running += view_json_get_number(said, "running");
                is_remote |= !strcmp(view_json_get_text(said, "plugin"), "remote");
        }
        text_put_between(why, is_remote ? "a worker of " : "a free seat of ", handler, "");
        buffer_printf(why, " (%" PRIu64 " run)", running);
}

bool whereabouts_said_later(const struct store_key_info *key)
{
        static const struct span later = SPAN_TEXT(STORE_SAID_LATER);
        return key->state == KEY_PARKED && key->reason.size >= later.size &&
               !memcmp(key->reason.data, later.data, later.size);
}

/* Appends the limit for `limit:NAME` or `limit:NAME/VALUE`; false: the name is not a limit's. */
static bool put_limit(struct buffer *why, struct span name)
{
        static const struct span prefix = SPAN_TEXT("limit:");
        if (name.size <= prefix.size || memcmp(name.data, prefix.data, prefix.size) != 0)
                return false;
        struct span limit = { name.data + prefix.size, name.size - prefix.size };
        const char *slash = memchr(limit.data, '/', limit.size);
        struct span value = slash ? (struct span){ slash + 1, (size_t)(limit.data + limit.size - slash - 1) } : limit;
        limit.size = slash ? (size_t)(slash - limit.data) : limit.size;
        buffer_printf(why, "limit ");
        text_put_bytes(why, limit, STORE_NAME_MAX);
        if (slash) {
                buffer_printf(why, " for ");
                text_put_bytes(why, value, STORE_NAME_MAX);
        }
        buffer_printf(why, " (quiver limit show ");
        text_put_word(why, limit);
        buffer_put(why, ")", 1);
        return true;
}

static void put_key_wait(struct buffer *why, const struct store_key_info *key)
{
        char due[UNITS_TEXT_MAX];
        switch (key->state) {
        case KEY_HELD:
                buffer_printf(why, "a person, who holds its key");
                break;
        case KEY_PARKED:
                buffer_printf(why, "%s %s",
                        whereabouts_said_later(key) ? "its key's time, in" : "the retry of its key in",
                        units_format_ms(due, key->due_in_ms));
                break;
        case KEY_NAMED:
                if (put_limit(why, key->name))
                        return; /* the reason adds nothing */
                text_put_bytes(why, key->name, STORE_NAME_MAX);
                break;
        default:
                buffer_printf(why, "its turn in its key");
        }
        struct span reason = key->reason;
        (void)note_take_where(&reason);
        reason = note_first_line(reason);
        if (reason.size) {
                buffer_printf(why, ": ");
                text_put_bytes(why, reason, 200);
        }
}

/* What the task of `o` waits for.  Who stopped the key or the handler comes first: nothing else helps before that. */
static void put_wait(struct buffer *why, const json_t *o, const struct whereabouts *w, const struct store_listed *task,
        const struct whereabouts_place *place, const char *handler)
{
        bool has_key = place->key && place->key->state != KEY_FREE;
        bool is_stopped = has_key && (place->key->state == KEY_HELD || place->key->state == KEY_PARKED);
        if (!is_stopped && whereabouts_handler_waits(w, handler, why))
                return;
        if (!is_stopped && place->shard && !owner_of(w, place->shard))
                buffer_printf(why, "a host: none owns shard %" PRIu32, place->shard->shard);
        else if (!is_stopped && json_object_get(o, "behind"))
                text_put_between(why, "the task before it in its key, ", view_json_get_text(o, "behind"), "");
        else if (has_key)
                put_key_wait(why, place->key);
        else if (task->state == STATE_QUEUED)
                buffer_printf(why, "its turn in the queue");
        else
                put_seats(why, w, handler);
}

static void set_wait(
        json_t *o, const struct whereabouts *w, const struct store_listed *task, const struct whereabouts_place *place)
{
        json_t *name = view_json_text_span(task->envelope.handler);
        const char *handler = json_string_value(name);
        const char *owner = owner_of(w, place->shard);
        struct buffer why = { 0 };
        bool has_key = place->key && place->key->state != KEY_FREE;
        if (owner && task->state == STATE_IN_FLIGHT)
                view_json_set_text(o, "claimed_by", owner);
        set_behind(o, w, task);
        if (has_key && place->key->head.size && !span_is(place->key->head, task->id) && !json_object_get(o, "behind"))
                view_json_span(o, "behind", place->key->head);
        put_wait(&why, o, w, task, place, handler);
        view_json_set_text(o, "waits_for", buffer_text(&why));
        buffer_free(&why);
        json_decref(name);
}

/* Adds the recorded start of a suspect, of a worker's task, or of one on a borrowed seat. */
static void set_start(json_t *o, const struct whereabouts *w, const struct task_note *note)
{
        json_t *start = json_object();
        json_t *holder = view_json_text_span(note->holder);
        const char *host = view_json_get_text(w->hosts, json_string_value(holder));
        const char *name = json_string_value(holder);
        bool is_seat = name && !strncmp(name, "seat/", 5);
        view_json_number(start, "epoch", note->started_epoch);
        (void)json_object_set_new(start, "holder", holder);
        if (*host)
                view_json_set_text(start, "host", host);
        if (is_seat)
                view_json_set_text(start, "seat", strrchr(name, '/') + 1);
        if (note->until_ms)
                view_json_number(start, "until_ms", note->until_ms);
        (void)json_object_set_new(o, "start", start);
}

/* --- the result --- */

static const char *state_of(const struct store_listed *task, const struct whereabouts_place *place, bool is_running)
{
        if (is_running)
                return "running";
        if (task->state == STATE_DEAD || task->state == STATE_DELAYED)
                return store_state_name(task->state);
        /* No task of such a key starts, wherever it is. */
        if (place->key && place->key->state == KEY_HELD)
                return "held";
        if (place->key && place->key->state == KEY_PARKED)
                return "parked";
        return "waiting";
}

json_t *whereabouts_of(
        const struct whereabouts *w, const struct store_listed *task, const struct whereabouts_place *place)
{
        json_t *o = json_object();
        const json_t *runs = task->state == STATE_IN_FLIGHT ? get_by_text(w->running, task->id) : NULL;
        const char *state = state_of(task, place, runs != NULL);
        view_json_set_text(o, "state", state);
        view_json_set_text(o, "stored", store_state_name(task->state));
        if (task->note.started_epoch)
                set_start(o, w, &task->note);
        if (task->note.is_suspect)
                (void)json_object_set_new(o, "suspect", json_true());
        for (size_t i = 0; runs && i < COUNT_OF(running_texts); i++)
                if (json_object_get(runs, running_texts[i]))
                        view_json_set_text(o, running_texts[i], view_json_get_text(runs, running_texts[i]));
        for (size_t i = 0; runs && i < COUNT_OF(running_numbers); i++)
                if (json_object_get(runs, running_numbers[i]))
                        view_json_number(o, running_numbers[i], view_json_get_number(runs, running_numbers[i]));
        if (json_array_size(json_object_get(runs, "progress")) == 2)
                (void)json_object_set(o, "progress", json_object_get(runs, "progress"));
        if (!runs && task->state != STATE_DEAD && task->state != STATE_DELAYED)
                set_wait(o, w, task, place);
        return o;
}

/* --- for people --- */

static void put_progress(struct buffer *to, const json_t *progress)
{
        json_int_t done = json_integer_value(json_array_get(progress, 0));
        json_int_t total = json_integer_value(json_array_get(progress, 1));
        if (!json_array_size(progress) || done < 0)
                return;
        buffer_printf(to, ", progress %" JSON_INTEGER_FORMAT, done);
        if (total > 0)
                buffer_printf(to, " of %" JSON_INTEGER_FORMAT " (%.0f %%)", total, 100 * (double)done / (double)total);
}

static void put_running(struct buffer *to, const json_t *o, uint64_t now_ms)
{
        char age[UNITS_TEXT_MAX];
        uint64_t since_ms = view_json_get_number(o, "since_ms");
        uint64_t until_ms = view_json_get_number(o, "until_ms");
        const char *worker = view_json_get_text(o, "worker");
        const char *seat = view_json_get_text(o, "seat");
        if (*seat) {
                text_put_between(to, "on ", seat, NOTE_WHERE_SEAT);
        } else if (*worker) {
                text_put_between(to, "on worker ", worker, "");
                text_put_between(to, " (via ", view_json_get_text(o, "host"), ")");
        } else {
                text_put_between(to, "on ", view_json_get_text(o, "host"), "");
                buffer_printf(to, ", pid %" PRIu64 ", generation %" PRIu64, view_json_get_number(o, "pid"),
                        view_json_get_number(o, "generation"));
        }
        if (since_ms)
                buffer_printf(to, ", for %s", units_format_ms(age, now_ms > since_ms ? now_ms - since_ms : 0));
        if (*worker || *seat)
                buffer_printf(
                        to, ", its own for %s more", units_format_ms(age, until_ms > now_ms ? until_ms - now_ms : 0));
        put_progress(to, json_object_get(o, "progress"));
}

static bool is_running(const json_t *o)
{
        return json_object_get(o, "pid") || json_object_get(o, "worker") || json_object_get(o, "seat");
}

void whereabouts_as_words(struct buffer *to, const json_t *o, uint64_t now_ms)
{
        if (is_running(o))
                put_running(to, o, now_ms);
        else
                text_put_between(to, "", view_json_get_text(o, "waits_for"), "");
}

static void put_start(struct buffer *to, const json_t *start)
{
        char time[TEXT_TIME_MAX];
        const char *host = view_json_get_text(start, "host");
        const char *holder = view_json_get_text(start, "holder");
        const char *seat = view_json_get_text(start, "seat");
        uint64_t until_ms = view_json_get_number(start, "until_ms");
        if (!start)
                return;
        if (*seat)
                text_put_between(to, "started on   ", seat, NOTE_WHERE_SEAT);
        else
                text_put_between(to, "started by   ", *host ? host : *holder ? holder : "a host", "");
        buffer_printf(to, " in epoch %" PRIu64 ", durably", view_json_get_number(start, "epoch"));
        if (until_ms)
                buffer_printf(to, "; nobody else starts its key before %s", text_time(time, until_ms));
        buffer_put(to, "\n", 1);
}

void whereabouts_as_text(struct buffer *to, const json_t *o, uint64_t now_ms)
{
        const char *waits_for = view_json_get_text(o, "waits_for");
        const char *behind = view_json_get_text(o, "behind");
        const char *claimed_by = view_json_get_text(o, "claimed_by");
        const char *hash = view_json_get_text(o, "hash");
        if (is_running(o)) {
                buffer_printf(to, "%-12s ", "runs");
                put_running(to, o, now_ms);
                text_put_between(to, *hash ? ", plugin " : "", hash, "\n");
        }
        put_start(to, json_object_get(o, "start"));
        if (json_is_true(json_object_get(o, "suspect")))
                buffer_printf(to, "%-12s its process or its host died while it ran, so it runs alone\n", "suspect");
        if (*waits_for)
                text_put_between(to, "waits for    ", waits_for, "\n");
        if (*behind)
                text_put_between(to, "behind       ", behind, "\n");
        if (*claimed_by)
                text_put_between(to, "claimed by   ", claimed_by, "\n");
}
