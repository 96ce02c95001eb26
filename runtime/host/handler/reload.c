#include "host/handler/reload.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/strings.h"
#include "host/handler/reload_plan.h"

/* One reload, from reading the configuration until it is carried out. */
struct reload_job {
        uv_work_t work;
        struct reload *reload;
        struct reload_read read;
        struct reload_asker *askers;
        json_t *plan;
        bool must_reread; /* the handlers changed while it was read, so its plan would be wrong */
};

static void begin(struct reload *r);

/* --- askers and answers --- */

static struct reload_asker *take(struct reload_asker **list)
{
        struct reload_asker *asker = *list;
        if (asker)
                *list = asker->next;
        return asker;
}

static void free_asker(struct reload_asker *asker)
{
        json_decref(asker->plan);
        free(asker);
}

static void answer(const struct reload *r, struct reload_asker *asker, json_t *reply)
{
        if (asker->caller)
                asker->caller->reply(asker->caller, json_incref(reply));
        else if (asker->order)
                r->events->ordered(r->self, asker->order, reply);
        json_decref(reply);
        free_asker(asker);
}

static struct reload_asker *new_asker(const char *by, struct reload_caller *caller, uint32_t order)
{
        struct reload_asker *asker = memory_zero(1, sizeof(*asker));
        asker->caller = caller;
        asker->order = order;
        (void)snprintf(asker->by, sizeof(asker->by), "%s", by);
        return asker;
}

static void add_asker(struct reload *r, struct reload_asker *asker)
{
        LL_APPEND(r->askers, asker);
        if (r->state == RELOAD_OVER)
                reload_end(r);
        else
                begin(r);
}

void reload_ask(struct reload *r, const char *by, struct reload_caller *caller, bool is_dry, bool is_patient)
{
        struct reload_asker *asker = new_asker(by, caller, 0);
        asker->is_dry = is_dry;
        asker->is_patient = is_patient && !is_dry;
        add_asker(r, asker);
}

void reload_ask_ordered(struct reload *r, uint32_t order)
{
        add_asker(r, new_asker("quiver reload --all", NULL, order));
}

/* Whether the fate of every version that this reload brought is known.  Versions of older reloads may still be on
 * probation: a later caller does not wait for them. */
static bool is_decided(const struct reload *r, uint32_t reload)
{
        const char *name;
        uint32_t generation;
        for (uint32_t i = 0; history_generation(&r->handlers->history, reload, i, &name, &generation); i++) {
                const struct handler *handler = handlers_find(r->handlers, name);
                if (handler && generation && !rollout_is_decided(&handler->rollout, generation))
                        return false;
        }
        return true;
}

void reload_look(struct reload *r)
{
        const struct history *history = &r->handlers->history;
        for (struct reload_asker *asker = r->waiters, *next; asker; asker = next) {
                next = asker->next;
                if (!is_decided(r, asker->reload))
                        continue;
                LL_DELETE(r->waiters, asker);
                bool has_failed = history_has_failed(history, asker->reload);
                json_t *reply = json_pack("{s:I, s:b, s:o}", "reload", (json_int_t)asker->reload, "failed", has_failed,
                        "outcomes", history_json(history, asker->reload));
                if (asker->plan)
                        (void)json_object_set(reply, "handlers", asker->plan);
                answer(r, asker, reply);
        }
}

static void add_waiter(struct reload *r, uint32_t reload, struct reload_asker *asker)
{
        asker->reload = reload;
        LL_APPEND(r->waiters, asker);
        if (r->state == RELOAD_OVER)
                reload_end(r);
}

void reload_await(struct reload *r, uint32_t reload, struct reload_caller *caller)
{
        add_waiter(r, reload, new_asker("", caller, 0));
}

void reload_await_ordered(struct reload *r, uint32_t reload, uint32_t order)
{
        add_waiter(r, reload, new_asker("", NULL, order));
}

void reload_end(struct reload *r)
{
        struct reload_asker *asker;
        r->state = RELOAD_OVER;
        while ((asker = take(&r->askers)) || (asker = take(&r->waiters))) {
                if (asker->caller)
                        asker->caller->refuse(asker->caller, "the host is stopping");
                free_asker(asker);
        }
}

/* --- refusal as a whole --- */

static void refuse(struct reload_job *job, json_t *problems)
{
        struct reload_asker *asker;
        job->reload->counts.refused += !job->read.is_dry;
        log_event(LEVEL_ERROR, "reload-refused", "reload=%" PRIu32 " problems=%zu hint=%s", job->reload->number,
                json_array_size(problems), LOG_QUOTE("nothing was changed; try: quiver check"));
        while ((asker = take(&job->askers)))
                answer(job->reload, asker,
                        json_pack("{s:I, s:b, s:O}", "reload", (json_int_t)job->reload->number, "failed", 1, "problems",
                                problems));
        json_decref(problems);
}

static void add_problem(json_t *problems, const char *text)
{
        json_t *json = json_string(text);
        (void)json_array_append_new(problems, json ? json : json_string("(not UTF-8)"));
}

static void show_problems(const struct problems *found, json_t *problems)
{
        for (size_t i = 0; i < found->count; i++) {
                char text[ERROR_TEXT_MAX];
                (void)problem_format(&found->items[i], text, sizeof(text));
                log_event(found->items[i].is_warning ? LEVEL_WARN : LEVEL_ERROR, "config", "text=%s", LOG_QUOTE(text));
                if (!found->items[i].is_warning)
                        add_problem(problems, text);
        }
}

/* Reports settings that need a restart. */
static void find_restarts(const struct config *now, const struct config *next, json_t *problems)
{
        struct config_changes changes = { 0 };
        config_compare(now, next, &changes);
        for (size_t i = 0; i < changes.count; i++) {
                char text[ERROR_TEXT_MAX];
                enum config_effect effect = changes.items[i].effect;
                if (effect != EFFECT_RESTART && effect != EFFECT_FIXED)
                        continue;
                (void)snprintf(text, sizeof(text), "%s: %s has changed, which %s", next->path, changes.items[i].name,
                        effect == EFFECT_RESTART ? "takes a restart; put it back, or restart"
                                                 : "is fixed since the app was made; put it back, or move the tasks to "
                                                   "another store: quiver dump, quiver load");
                log_event(LEVEL_ERROR, "config", "text=%s", LOG_QUOTE(text));
                add_problem(problems, text);
        }
        config_changes_free(&changes);
}

/* --- the plan --- */

static void note(struct reload_job *job, const char *name, enum plan_verb verb, struct buffer *why)
{
        const char *text = buffer_text(why);
        json_t *json = json_string(text);
        if (verb != PLAN_KEEP)
                log_event(verb == PLAN_REFUSE || verb == PLAN_HOLD_BACK ? LEVEL_ERROR : LEVEL_INFO, "plan",
                        "reload=%" PRIu32 " handler=%s action=%s why=%s", job->reload->number, name,
                        LOG_QUOTE(plan_verb_name(verb)), LOG_QUOTE(text));
        (void)json_array_append_new(job->plan, json_pack("{s:s, s:s, s:o}", "handler", name, "action",
                                                       plan_verb_name(verb), "why", json ? json : json_string("")));
        buffer_free(why);
}

static bool is_removed(const struct handler *handler, const struct config *next)
{
        return (handler_target(handler) || *handler->refused) && !config_handler(next, handler->name);
}

/* Plans each handler and logs the plan before any of it is carried out; the verbs go to `verbs`. */
static void make_plan(struct reload_job *job, enum plan_verb *verbs)
{
        const struct handlers *all = job->reload->handlers;
        const struct config *next = &job->read.shared->config;
        job->plan = json_array();
        for (size_t i = 0; i < next->handlers_count; i++) {
                const struct reload_item *item = &job->read.items[i];
                const struct handler *handler = handlers_find(all, item->handler->name);
                struct buffer why = { 0 };
                verbs[i] = plan_item(
                        item, handler ? &handler->rollout : NULL, handler ? handler_target(handler) : NULL, &why);
                if ((verbs[i] == PLAN_ADD || verbs[i] == PLAN_REPLACE) && !item->has_copy && !job->read.is_dry)
                        job->must_reread = true;
                note(job, item->handler->name, verbs[i], &why);
        }
        for (uint32_t i = 0; i < all->count; i++) {
                struct buffer why = { 0 };
                if (is_removed(all->list[i], next))
                        note(job, all->list[i]->name, PLAN_REMOVE, &why);
        }
}

/* --- carrying out the plan --- */

static struct history_entry *record(struct reload_job *job, const struct reload_item *item)
{
        struct history_entry *entry = history_add(&job->reload->handlers->history, item->handler->name);
        entry->reload = job->reload->number;
        entry->file_hash = item->id.file_hash;
        (void)snprintf(entry->by, sizeof(entry->by), "%s", job->askers->by);
        return entry;
}

static void propose(struct reload_job *job, struct reload_item *item)
{
        struct handler *handler = handlers_ensure(job->reload->handlers, item->handler->name);
        struct shared_config *shared = job->read.shared;
        struct generation *generation = generation_new(handler, shared, &shared->config, item->handler, &item->copy);
        item->has_copy = false;
        /* The number is set before the event, because news about the generation may come from inside it. */
        record(job, item)->generation = handler->rollout.numbers + 1;
        handler_rollout_event(handler, ROLLOUT_PROPOSED, generation);
}

/* The cause that kept the runners from starting may have been external, and gone now. */
static void lift_quarantine(struct generation *current)
{
        if (!current || current->pool_io.pool.state != POOL_QUARANTINED)
                return;
        log_event(LEVEL_INFO, "quarantine-lifted", "handler=%s", current->settings->name);
        pool_io_resume(&current->pool_io);
}

static void carry_out_item(struct reload_job *job, struct reload_item *item, enum plan_verb verb)
{
        struct handler *handler = handlers_find(job->reload->handlers, item->handler->name);
        struct shared_config *shared = job->read.shared;
        switch (verb) {
        case PLAN_KEEP:
        case PLAN_ADJUST:
                generation_adjust(handler_target(handler), shared, &shared->config, item->handler);
                handler_set_policy(handler, handler_target(handler));
                handler_route(handler);
                lift_quarantine(handler_current(handler));
                break;
        case PLAN_ADD:
        case PLAN_REPLACE:
                propose(job, item);
                break;
        case PLAN_REFUSE:
                history_set(&job->reload->handlers->history, record(job, item), "refused", item->error.text);
                if (!handler || !handler_target(handler))
                        handlers_refuse(job->reload->handlers, item->handler->name, item->error.text);
                break;
        case PLAN_HOLD_BACK:
                history_set(&job->reload->handlers->history, record(job, item), "held back",
                        "it was rolled back before, and has not changed since");
                break;
        case PLAN_REMOVE:
                break;
        }
}

static void carry_out(struct reload_job *job, const enum plan_verb *verbs)
{
        struct reload *r = job->reload;
        const struct handlers *all = r->handlers;
        const struct config *next = &job->read.shared->config;
        r->config = next;
        r->events->take(r->self, job->read.shared);
        routes_forget_unserved(&all->dispatch->routes);
        for (uint32_t i = 0; i < all->count; i++)
                if (is_removed(all->list[i], next)) {
                        *all->list[i]->refused = 0;
                        handler_rollout_event(all->list[i], ROLLOUT_WITHDRAWN, NULL);
                }
        for (size_t i = 0; i < next->handlers_count; i++)
                carry_out_item(job, &job->read.items[i], verbs[i]);
        r->events->taken(r->self);
}

static void report(struct reload_job *job, bool has_failed)
{
        struct reload *r = job->reload;
        struct reload_asker *asker;
        r->counts.taken += !job->read.is_dry && !has_failed;
        r->counts.partly += !job->read.is_dry && has_failed;
        log_event(LEVEL_INFO, job->read.is_dry ? "reload-dry" : "reloaded", "reload=%" PRIu32 " by=%s failed=%s",
                r->number, LOG_QUOTE(job->askers->by), has_failed ? "true" : "false");
        while ((asker = take(&job->askers))) {
                asker->reload = r->number;
                asker->plan = json_incref(job->plan);
                if (asker->is_patient)
                        LL_APPEND(r->waiters, asker);
                else
                        answer(r, asker,
                                json_pack("{s:I, s:b, s:O}", "reload", (json_int_t)asker->reload, "failed", has_failed,
                                        "handlers", job->plan));
        }
}

/* --- from reading to the end --- */

static void finish(struct reload_job *job)
{
        struct reload *r = job->reload;
        json_decref(job->plan);
        job->plan = NULL;
        reload_read_free(&job->read);
        r->job = NULL;
        /* The askers of this job are served by the next reading. */
        LL_CONCAT(r->askers, job->askers);
        job->askers = NULL;
        free(job);
        begin(r);
}

static void go_through(struct reload_job *job)
{
        json_t *problems = json_array();
        show_problems(&job->read.problems, problems);
        if (job->read.status == 0)
                find_restarts(job->reload->config, &job->read.shared->config, problems);
        if (job->read.status < 0 || json_array_size(problems)) {
                refuse(job, problems);
                return;
        }
        json_decref(problems);
        size_t count = job->read.shared->config.handlers_count;
        enum plan_verb *verbs = memory_zero(count + 1, sizeof(*verbs));
        make_plan(job, verbs);
        if (!job->must_reread) {
                bool has_failed = false;
                for (size_t i = 0; i < count; i++)
                        has_failed |= verbs[i] == PLAN_REFUSE || verbs[i] == PLAN_HOLD_BACK;
                if (!job->read.is_dry)
                        carry_out(job, verbs);
                report(job, has_failed);
        }
        free(verbs);
}

static void on_work(uv_work_t *work)
{
        reload_read(&((struct reload_job *)work->data)->read);
}

static void on_read(uv_work_t *work, int status)
{
        struct reload_job *job = work->data;
        struct reload *r = job->reload;
        (void)status;
        if (r->state != RELOAD_OVER)
                go_through(job);
        finish(job);
        if (r->state == RELOAD_OVER)
                reload_end(r);
}

static void begin(struct reload *r)
{
        const struct handlers *all = r->handlers;
        if (r->job || !r->askers || r->state != RELOAD_SERVED)
                return;
        struct reload_job *job = memory_zero(1, sizeof(*job));
        job->reload = r;
        job->work.data = job;
        /* One reading serves all askers that want the same. */
        bool is_dry = r->askers->is_dry;
        while (r->askers && r->askers->is_dry == is_dry) {
                struct reload_asker *asker = take(&r->askers);
                LL_APPEND(job->askers, asker);
        }
        job->read.path = text_copy(r->config->path);
        for (size_t i = 0; i < r->config->set.count; i++)
                strings_add(&job->read.set, r->config->set.items[i]);
        job->read.copies = all->copies;
        job->read.is_dry = is_dry;
        job->read.known = memory_zero(all->count + 1, sizeof(*job->read.known));
        for (uint32_t i = 0; i < all->count; i++) {
                const struct generation *target = handler_target(all->list[i]);
                struct reload_known *known = &job->read.known[job->read.known_count];
                if (!target)
                        continue;
                (void)snprintf(known->name, sizeof(known->name), "%s", all->list[i]->name);
                known->id = target->version.id;
                job->read.known_count++;
        }
        r->number++;
        r->job = job;
        log_event(LEVEL_INFO, "reload", "reload=%" PRIu32 " by=%s file=%s", r->number, LOG_QUOTE(job->askers->by),
                LOG_QUOTE(job->read.path));
        (void)uv_queue_work(r->loop, &job->work, on_work, on_read);
}

void reload_begin(struct reload *r)
{
        r->state = RELOAD_SERVED;
        begin(r);
}

bool reload_is_busy(const struct reload *r)
{
        if (r->job || r->askers)
                return true;
        for (uint32_t i = 0; i < r->handlers->count; i++)
                if (handler_target(r->handlers->list[i]) != handler_current(r->handlers->list[i]))
                        return true;
        return false;
}

/* --- the status document --- */

static json_t *generation_json(const struct generation *generation)
{
        char hash[17];
        const struct rollout_version *g = &generation->version;
        (void)snprintf(hash, sizeof(hash), "%016" PRIx64, g->id.file_hash);
        json_t *version = json_string(generation->plugin_version);
        return json_pack("{s:I, s:s, s:s, s:o, s:I, s:b}", "generation", (json_int_t)g->number, "state",
                generation_state_name(g->state), "file", hash, "version", version ? version : json_string(""),
                "runners", (json_int_t)(generation->is_open ? pool_io_size(&generation->pool_io) : 0), "probation",
                g->watched_until_ms != 0);
}

void reload_report(const struct reload *r, json_t *document)
{
        size_t i;
        json_t *item;
        json_array_foreach(json_object_get(document, "handlers"), i, item)
        {
                const struct handler *handler =
                        handlers_find(r->handlers, json_string_value(json_object_get(item, "name")));
                json_t *list = json_array();
                for (const struct rollout_version *g = handler ? handler->rollout.newest : NULL; g; g = g->older)
                        (void)json_array_append_new(list, generation_json((const struct generation *)g));
                (void)json_object_set_new(item, "generations", list);
        }
        (void)json_object_set_new(document, "reloads", history_json(&r->handlers->history, UINT32_MAX));
}
