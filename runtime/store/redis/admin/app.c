/* What is recorded about the app. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/strings.h"
#include "store/redis/redis_store.h"

#define SCHEMA 2

/* What is read of the record, and what record.lua and app_set.lua return. */
enum {
        REPLY_SCHEMA,
        REPLY_SHARDS,
        REPLY_COORDINATION,
        REPLY_FEATURES,
        REPLY_MAX_MEMBERS,
        REPLY_ID_LAYOUT,
        REPLY_CREATED,
        REPLY_IS_NEW, /* of record alone */
};

static void open_failed(struct redis_call *call)
{
        const struct redis_store *s = call->op->s;
        if (call->command.status == -EPROTO)
                op_fail(call->op, -EPROTO, "%s: %s: WRONGTYPE %s is not a hash, Quiver wants a hash", s->url,
                        store_op_name(call->op->request->op), s->app_key);
        else
                op_fail(call->op, call->command.status, "%s: %s", s->url, call->command.error.text);
}

/* Reads only: also a server that takes no writes is opened.  Not a script: whoever may only submit opens, too. */
static struct redis_call *open_call(struct redis_op *op)
{
        static const char *const fields[] = { "schema", "shards", "coordination", "features", "max_members",
                "id_layout", "created" };
        unsigned count = sizeof(fields) / sizeof(fields[0]);
        struct redis_call *call = call_new(op, "HMGET", 1 + count);
        call_put(call, span_of_text(op->s->app_key));
        for (unsigned i = 0; i < count; i++)
                call_put(call, span_of_text(fields[i]));
        call->failed = open_failed;
        return call;
}

/* Whether it has any of the fields. */
static bool record_is_there(const redisReply *reply)
{
        for (size_t i = 0; i < reply_count(reply); i++)
                if (reply->element[i]->type != REDIS_REPLY_NIL)
                        return true;
        return false;
}

/* Whatever of `app` is not recorded yet.  `replaces`: the coordination that is to be another now. */
static struct redis_call *record_call(struct redis_op *op, const struct store_app *app, const char *coordination,
        const char *replaces, bool has_max_members)
{
        struct arena_chunk **arena = request_arena(op->request);
        struct redis_call *call = call_script_keys(op, SCRIPT_record, 1, 7);
        struct buffer features = { 0 };
        struct buffer layout = { 0 };
        app_put_features(&features, app);
        id_layout_put(&layout, &app->ids);
        call_put(call, span_of_text(op->s->app_key));
        call_put_number(call, SCHEMA);
        call_put_number(call, app->shards);
        call_put(call, arena_copy(arena, span_of_text(coordination)));
        call_put(call, arena_copy(arena, span_of_text(replaces)));
        call_put(call, arena_copy(arena, (struct span){ (const char *)features.data, features.size }));
        if (has_max_members)
                call_put_number(call, app->max_members);
        else
                call_put(call, (struct span){ 0 });
        call_put(call, arena_copy(arena, (struct span){ (const char *)layout.data, layout.size }));
        buffer_free(&features);
        buffer_free(&layout);
        return call;
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

/* What was recorded before this schema can only be read by the Quiver that wrote it. */
static int schema_check(struct redis_store *s, struct span schema, struct error *error)
{
        if (span_is(schema, SPAN_TEXT("2")))
                return 0;
        if (span_is(schema, SPAN_TEXT("1")))
                return error_set(error, -EPROTO,
                        "%s: %s was made by an older Quiver (schema 1, this one writes %d); stop its hosts, write its "
                        "tasks down with that Quiver (quiver dump > tasks), name another app or an empty database here "
                        "and start a host, then: quiver load tasks",
                        s->url, s->app_key, SCHEMA);
        return error_set(error, -EPROTO,
                "%s: %s was made by another Quiver (schema %.*s, this one knows %d); upgrade this one", s->url,
                s->app_key, (int)(schema.size > 16 ? 16 : schema.size), schema.size ? schema.data : "", SCHEMA);
}

static int record_read(struct redis_store *s, const redisReply *reply, struct store_app *ret_app, struct error *error)
{
        struct app_texts texts = {
                .shards = reply_span(reply_at(reply, REPLY_SHARDS)),
                .features = reply_span(reply_at(reply, REPLY_FEATURES)),
                .max_members = reply_span(reply_at(reply, REPLY_MAX_MEMBERS)),
                .id_layout = reply_span(reply_at(reply, REPLY_ID_LAYOUT)),
                .created = reply_span(reply_at(reply, REPLY_CREATED)),
        };
        char where[1024];
        (void)snprintf(where, sizeof(where), "%s: %s", s->url, s->app_key);
        int r = schema_check(s, reply_span(reply_at(reply, REPLY_SCHEMA)), error);
        return r ? r : app_read(where, &texts, SCHEMA, ret_app, error);
}

/* --- opening ------------------------------------------------------------------------------------------------------ */

static int take_up(
        struct redis_store *s, const struct store_options *options, const redisReply *reply, struct error *error)
{
        struct span coordination = reply_span(reply_at(reply, REPLY_COORDINATION));
        if (!record_is_there(reply))
                return error_set(
                        error, -ENOENT, "%s: no app \"%s\" there; a host makes it: quiver run", s->url, s->store.app);
        int r = record_read(s, reply, &s->store.record, error);
        if (r)
                return r;
        s->store.shards = s->store.record.shards;
        s->store.coordination = text_copy_part(coordination.size ? coordination.data : "", coordination.size);
        s->shards = memory_zero(s->store.shards, sizeof(*s->shards));
        for (uint32_t i = 0; i < s->store.shards; i++)
                s->shards[i].backlog = UINT64_MAX;
        return app_agree(s->url, &s->store.record, s->store.coordination, options, error);
}

/* The servers that others are compared with stay as they were recorded; the next one who opens it tries again. */
static void not_recorded(struct redis_call *call)
{
        log_event(LEVEL_WARN, "store", "app=%s text=%s", call->op->s->store.app, LOG_QUOTE(call->command.error.text));
}

static void record_answer(struct redis_call *call, const redisReply *reply)
{
        struct store_open *open = (struct store_open *)call->op->request;
        struct redis_store *s = call->op->s;
        const char *ours = open->options.coordination;
        open->request.status = take_up(s, &open->options, reply, &open->request.error);
        if (open->request.status || !ours || !strcmp(ours, s->store.coordination))
                return;
        /* The same place with other servers: from now on these are what others are compared with. */
        struct redis_call *again = record_call(call->op, &s->store.record, ours, s->store.coordination, false);
        again->failed = not_recorded;
        call_send_tracked(again);
        free(s->store.coordination);
        s->store.coordination = text_copy(ours);
}

static void open_answer(struct redis_call *call, const redisReply *reply)
{
        struct store_open *open = (struct store_open *)call->op->request;
        const struct store_options *options = &open->options;
        const char *coordination = options->coordination ? options->coordination : "";
        bool is_there = record_is_there(reply);
        bool lacks_coordination = *coordination && !reply_span(reply_at(reply, REPLY_COORDINATION)).size;
        bool lacks_members = options->is_host && !reply_span(reply_at(reply, REPLY_MAX_MEMBERS)).size;
        if (is_there ? lacks_coordination || lacks_members : options->may_create) {
                struct store_app app;
                app_init(&app, SCHEMA, options);
                struct redis_call *record = record_call(call->op, &app, coordination, "", options->is_host);
                record->answer = record_answer;
                call_send_tracked(record);
                return;
        }
        record_answer(call, reply);
}

void record_open(struct redis_op *op)
{
        struct redis_call *call = open_call(op);
        call->answer = open_answer;
        call_send_tracked(call);
}

/* --- a store that was emptied under us --------------------------------------------------------------------------- */

static void check_answer(struct redis_call *call, const redisReply *reply)
{
        if (answer_bool(call->op, reply_at(reply, REPLY_IS_NEW), "app"))
                log_event(LEVEL_ERROR, "store-emptied",
                        "app=%s text=\"this Redis lost its data; the app is recorded anew, tasks that were there are "
                        "gone\"",
                        call->op->s->store.app);
}

static void check_found(struct redis_call *call, const redisReply *reply)
{
        struct redis_store *s = call->op->s;
        if (record_is_there(reply))
                return;
        struct redis_call *record = record_call(call->op, &s->store.record, s->store.coordination, "", true);
        record->answer = check_answer;
        call_send_tracked(record);
}

static void check_done(struct store_request *request)
{
        struct redis_store *s = (struct redis_store *)request->store;
        s->is_checking = false;
}

void record_check(struct redis_store *s)
{
        if (!s->is_host || s->is_checking)
                return;
        s->is_checking = true;
        s->checking = (struct store_request){ .store = &s->store, .op = OP_OPEN, .done = check_done };
        struct redis_call *call = open_call(op_begin(s, &s->checking));
        call->answer = check_found;
        call_send_tracked(call);
}

/* --- operations -------------------------------------------------------------------------------------------------- */

static void get_answer(struct redis_call *call, const redisReply *reply)
{
        struct store_app_get *get = (struct store_app_get *)call->op->request;
        struct error error = { "" };
        int r = record_read(call->op->s, reply, &get->app, &error);
        if (r)
                op_fail(call->op, r, "%s", error.text);
        else
                get->coordination =
                        arena_copy(request_arena(&get->request), reply_span(reply_at(reply, REPLY_COORDINATION)));
}

void redis_app_get(struct redis_store *s, struct store_request *request)
{
        struct redis_call *call = open_call(op_begin(s, request));
        call->answer = get_answer;
        call_send_tracked(call);
}

static void set_answer(struct redis_call *call, const redisReply *reply)
{
        if (answer_number(call->op, reply, TASK_NUMBER_MAX, "version"))
                bell_own_desired(call->op->s);
        else if (!call->op->request->status)
                op_fail(call->op, -E2BIG, "app: %u features are the most", STORE_FEATURES_MAX);
}

void redis_app_set(struct redis_store *s, struct store_request *request)
{
        struct store_app_set *set = (struct store_app_set *)request;
        struct redis_op *op = op_begin(s, request);
        struct redis_call *call = call_script_keys(op, SCRIPT_app_set, 1, 4 + set->features_count);
        call->answer = set_answer;
        call_put(call, span_of_text(s->app_key));
        call_put_number(call, SCHEMA);
        call_put_number(call, STORE_FEATURES_MAX);
        if (set->has_max_members)
                call_put_number(call, set->max_members);
        else
                call_put(call, (struct span){ 0 });
        call_put(call, set->coordination);
        for (uint32_t i = 0; i < set->features_count; i++)
                call_put(call, set->features[i]);
        call_send(call);
}
