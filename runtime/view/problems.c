#include "view/problems.h"

#include <inttypes.h>
#include <string.h>

#include "view/json.h"
#include "view/limits.h"
#include "view/text.h"

/* Under load, tasks of a handler that serves wait for a while; beyond this it is a problem. */
#define WAITS_LONG_MS 60000u

/* The problems found; `bad` ones come first. */
struct app_problems {
        const struct status *status;
        json_t *bad;
        json_t *warn;
};

/* A command that ends in a space gets the handler's name appended, quoted, because a task's handler name may be
 * anything. */
static void add(struct app_problems *p, bool is_bad, const char *kind, const char *handler, struct buffer *text,
        const char *command)
{
        struct buffer whole = { 0 };
        buffer_printf(&whole, "%s", command);
        if (handler && command[strlen(command) - 1] == ' ')
                text_put_word(&whole, span_of_text(handler));
        json_t *o = json_object();
        view_json_set_text(o, "level", is_bad ? "bad" : "warn");
        view_json_set_text(o, "kind", kind);
        if (handler)
                view_json_set_text(o, "handler", handler);
        view_json_span(o, "text", (struct span){ (const char *)text->data, text->size });
        view_json_span(o, "command", (struct span){ (const char *)whole.data, whole.size });
        (void)json_array_append_new(is_bad ? p->bad : p->warn, o);
        buffer_free(&whole);
        buffer_free(text);
}

static void put_tasks(struct buffer *to, uint64_t count, const char *verb)
{
        buffer_printf(to, "%" PRIu64 " task%s %s%s", count, text_plural(count), verb, count == 1 ? "s" : "");
}

/* Appends an age in words, "3 min 50 s". */
static void put_age(struct buffer *to, uint64_t age_ms)
{
        static const struct {
                uint64_t seconds;
                const char *name;
        } units[] = { { 86400, "d" }, { 3600, "h" }, { 60, "min" }, { 1, "s" } };
        uint64_t seconds = age_ms / 1000;
        size_t i = 0;
        while (i < 3 && seconds < units[i].seconds)
                i++;
        buffer_printf(to, "%" PRIu64 " %s", seconds / units[i].seconds, units[i].name);
        uint64_t rest = i < 3 ? seconds % units[i].seconds / units[i + 1].seconds : 0;
        if (rest)
                buffer_printf(to, " %" PRIu64 " %s", rest, units[i + 1].name);
}

/* Appends "1204 tasks wait for it, the oldest for 3 min 50 s." */
static void put_waiting(struct buffer *to, const json_t *handler)
{
        uint64_t waiting = view_json_get_number(handler, "waiting");
        uint64_t oldest_ms = view_json_get_number(handler, "oldest_ms");
        if (!waiting) {
                buffer_printf(to, " No task waits for it.");
                return;
        }
        buffer_printf(to, "%s", json_is_true(json_object_get(handler, "estimated")) ? " About " : " ");
        put_tasks(to, waiting, "wait");
        buffer_printf(to, " for it");
        if (oldest_ms) {
                buffer_printf(to, ", the oldest for ");
                put_age(to, oldest_ms);
        }
        buffer_printf(to, ".");
}

/* --- the store and the hosts --- */

static void look_at_app(struct app_problems *p)
{
        const struct status *status = p->status;
        struct buffer text = { 0 };
        uint64_t unowned = status->info->shards - status->owned;
        uint64_t waiting = 0;
        if (*status->info->refuses) {
                buffer_printf(&text, "The store refuses writes: %s.", status->info->refuses);
                add(p, true, "store", NULL, &text, "quiver status");
        }
        if (status->info->endangers && *status->info->endangers) {
                buffer_printf(&text, "Tasks may be lost: %s.", status->info->endangers);
                add(p, true, "store", NULL, &text, "quiver status");
        }
        for (uint32_t i = 0; i < status->info->shards; i++)
                if (!status->counts[i].is_held || !status->counts[i].left_ms)
                        waiting += status_shard_waiting(status, i);
        if (!json_array_size(status->members)) {
                buffer_printf(&text, "No host is running. ");
                put_tasks(&text, status_waiting(status), "wait");
                buffer_printf(&text, ".");
                add(p, true, "hosts", NULL, &text, "quiver run");
        } else if (unowned) {
                buffer_printf(&text, "%" PRIu64 " shard%s no owner. ", unowned, unowned == 1 ? " has" : "s have");
                put_tasks(&text, waiting, "wait");
                buffer_printf(&text, " there.");
                add(p, waiting > 0, "shards", NULL, &text, "quiver members");
        }
        if (status->total.results_dropped) {
                buffer_printf(&text, "%" PRIu64 " result%s dropped: nobody took them in time.",
                        status->total.results_dropped, status->total.results_dropped == 1 ? " was" : "s were");
                add(p, false, "results", NULL, &text, "quiver results");
        }
}

/* --- handlers --- */

static const char *reason_of_pause(const struct status *status, const char *handler)
{
        const char *why = json_string_value(json_object_get(status->paused, handler));
        return why ? why : json_string_value(json_object_get(status->paused, ""));
}

static void put_state(struct buffer *to, const struct status *status, const json_t *handler, const char *state)
{
        const char *name = view_json_get_text(handler, "name");
        uint64_t lasted_ms = view_json_get_number(handler, "unavailable_ms");
        const char *why = !strcmp(state, "paused") ? reason_of_pause(status, name) : view_json_get_text(handler, state);
        if (!strcmp(state, "unserved")) {
                text_put_between(to, "No host serves ", name, "");
                why = NULL;
        } else if (!strcmp(state, "quarantined")) {
                text_put_between(to, "", name, " is quarantined: its runners crash again and again");
                why = NULL;
        } else if (!strcmp(state, "refused")) {
                text_put_between(to, "The new version of ", name, " is refused");
        } else {
                text_put_between(to, "", name, " is ");
                buffer_printf(to, "%s", state);
        }
        if (!strcmp(state, "unavailable") && lasted_ms) {
                buffer_printf(to, " for ");
                put_age(to, lasted_ms);
        }
        if (why && *why)
                text_put_between(to, ": ", why, "");
        buffer_printf(to, ".");
}

static void look_at_handler(struct app_problems *p, const json_t *handler)
{
        static const struct {
                const char *state, *command;
                bool is_bad;
        } states[] = {
                { "quarantined", "quiver reload --wait", true },
                { "refused", "quiver check", true },
                { "unavailable", "quiver pause ", true },
                { "unserved", "quiver tasks --handler ", true },
                { "paused", "quiver resume ", false },
        };
        const char *name = view_json_get_text(handler, "name");
        const char *state = view_json_get_text(handler, "state");
        uint64_t waiting = view_json_get_number(handler, "waiting");
        struct buffer text = { 0 };
        for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
                if (strcmp(states[i].state, state) != 0 || (!strcmp(state, "unserved") && !waiting))
                        continue;
                put_state(&text, p->status, handler, state);
                put_waiting(&text, handler);
                add(p, states[i].is_bad, state, name, &text, states[i].command);
                return;
        }
        if (!strcmp(state, "open") && waiting && view_json_get_number(handler, "oldest_ms") >= WAITS_LONG_MS) {
                text_put_between(&text, "Tasks of ", name, " wait for long.");
                put_waiting(&text, handler);
                add(p, false, "backlog", name, &text, "quiver tasks --handler ");
        }
        if (strchr(view_json_get_text(handler, "version"), ',') || strchr(view_json_get_text(handler, "hash"), ',')) {
                text_put_between(&text, "Hosts run different versions of ", name, ".");
                add(p, false, "versions", name, &text, "quiver reload --all --wait");
        }
}

/* --- schedules of configurations --- */

static void look_at_schedules(struct app_problems *p, const json_t *member)
{
        const json_t *said = json_object_get(member, "schedules");
        const char *host = view_json_get_text(member, "name");
        struct buffer text = { 0 };
        size_t i;
        const json_t *name;
        json_array_foreach(json_object_get(said, "conflicts"), i, name)
        {
                text_put_between(&text, "Schedule ", json_string_value(name), " stands in the configuration of ");
                text_put_between(&text, "", host,
                        " and was set by command, too: the command's is used. Delete it and reload, "
                        "or take it out of the file.");
                add(p, true, "schedule", NULL, &text, "quiver schedule list");
        }
        if (view_json_get_number(said, "differ")) {
                text_put_between(&text, "", host,
                        " has an older configuration with other schedules; those of the newer one are used.");
                add(p, false, "schedules", NULL, &text, "quiver schedule list");
        }
}

/* --- tasks and keys --- */

static void look_at_tasks(struct app_problems *p)
{
        const struct status *status = p->status;
        struct buffer text = { 0 };
        if (status->held_keys) {
                buffer_printf(&text, "%s%" PRIu64 " key%s held by a person.", status->are_keys_cut ? "At least " : "",
                        status->held_keys, status->held_keys == 1 ? " is" : "s are");
                add(p, false, "held", NULL, &text, "quiver tasks --state held");
        }
        if (status->parked_keys) {
                buffer_printf(&text, "%s%" PRIu64 " key%s for a retry.", status->are_keys_cut ? "At least " : "",
                        status->parked_keys, status->parked_keys == 1 ? " waits" : "s wait");
                add(p, false, "parked", NULL, &text, "quiver tasks --state parked");
        }
        if (status->total.dead) {
                buffer_printf(&text, "%" PRIu64 " task%s dead.", status->total.dead,
                        status->total.dead == 1 ? " is" : "s are");
                add(p, false, "dead", NULL, &text, "quiver dead list");
        }
}

/* --- limits --- */

/* Waiting is normal under a limit; only a long wait is reported. */
static void look_at_limit(struct app_problems *p, const json_t *limit)
{
        struct buffer text = { 0 };
        struct buffer command = { 0 };
        const char *name = view_json_get_text(limit, "name");
        uint64_t tasks = view_json_get_number(limit, "waiting") + view_json_get_number(limit, "waiting_tasks");
        uint64_t oldest_ms = view_json_get_number(limit, "oldest_ms");
        if (!tasks || oldest_ms < WAITS_LONG_MS)
                return;
        buffer_printf(&text, "%s", p->status->are_keys_cut ? "At least " : "");
        put_tasks(&text, tasks, "wait");
        buffer_printf(&text, " for the limit %s (", name);
        limit_put_amount(&text, limit);
        buffer_printf(&text, "), the oldest for ");
        put_age(&text, oldest_ms);
        buffer_printf(&text, view_json_get_number(limit, "closed") ? "; a handler has closed it for a while." : ".");
        buffer_printf(&command, "quiver limit show ");
        text_put_word(&command, span_of_text(name));
        add(p, false, "limited", NULL, &text, buffer_text(&command));
        buffer_free(&command);
}

json_t *problems_as_json(const struct status *status)
{
        const json_t *limit;
        struct app_problems p = { .status = status, .bad = json_array(), .warn = json_array() };
        size_t i;
        const json_t *handler;
        look_at_app(&p);
        json_array_foreach(status->handlers, i, handler)
        {
                look_at_handler(&p, handler);
        }
        json_array_foreach(status->limits, i, limit)
        {
                look_at_limit(&p, limit);
        }
        json_array_foreach(status->members, i, handler)
        {
                look_at_schedules(&p, handler);
        }
        look_at_tasks(&p);
        (void)json_array_extend(p.bad, p.warn);
        json_decref(p.warn);
        return p.bad;
}
