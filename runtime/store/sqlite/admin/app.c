/* The app's record. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/strings.h"
#include "base/url.h"
#include "store/sqlite/file/schema.h"
#include "store/sqlite/sqlite.h"

/* --- the table meta --- */

uint64_t meta_number(struct database *db, const char *name)
{
        struct query q = query(db, STATEMENT_META_GET);
        bind_text(&q, span_of_text(name));
        uint64_t value = query_row(&q) ? column_number(&q, 0) : 0;
        query_end(&q);
        return value;
}

char *meta_text(struct database *db, const char *name)
{
        struct query q = query(db, STATEMENT_META_GET);
        bind_text(&q, span_of_text(name));
        struct span value = { 0 };
        if (query_row(&q))
                value = column_span(&q, 0);
        char *copy = text_copy_part(value.size ? value.data : "", value.size);
        query_end(&q);
        return copy;
}

void meta_set_number(struct database *db, const char *name, uint64_t value)
{
        struct query q = query(db, STATEMENT_META_SET);
        bind_text(&q, span_of_text(name));
        bind_number(&q, value);
        (void)query_run(&q);
}

void meta_set_text(struct database *db, const char *name, const char *value)
{
        struct query q = query(db, STATEMENT_META_SET);
        bind_text(&q, span_of_text(name));
        bind_text(&q, span_of_text(value));
        (void)query_run(&q);
}

/* --- the record --- */

static int record_read(struct sqlite_store *s, struct store_app *ret_app, struct error *error)
{
        struct database *db = &s->db;
        char *shards = meta_text(db, "shards");
        char *max_members = meta_text(db, "max_members");
        char *id_layout = meta_text(db, "id_layout");
        char *features = meta_text(db, "features");
        char *created = meta_text(db, "created");
        struct app_texts texts = { .shards = span_of_text(shards),
                .max_members = span_of_text(max_members),
                .id_layout = span_of_text(id_layout),
                .features = span_of_text(features),
                .created = span_of_text(created) };
        int r = db->failure ? 0 : app_read(s->path, &texts, schema_newest(), ret_app, error);
        free(shards);
        free(max_members);
        free(id_layout);
        free(features);
        free(created);
        return r;
}

static void features_write(struct database *db, const struct store_app *app)
{
        struct buffer text = { 0 };
        app_put_features(&text, app);
        meta_set_text(db, "features", text.size ? buffer_text(&text) : "");
        buffer_free(&text);
}

static bool meta_has(struct database *db, const char *name)
{
        struct query q = query(db, STATEMENT_META_GET);
        bind_text(&q, span_of_text(name));
        bool is_there = query_row(&q);
        query_end(&q);
        return is_there;
}

/* Writes the whole record of a new file, or what an older Quiver did not record.  No older host can be running: it
 * would not open this schema.  So every feature is on from the beginning. */
static void record_complete(struct sqlite_store *s, const struct store_options *options, bool is_new)
{
        struct database *db = &s->db;
        struct store_app app;
        struct buffer layout = { 0 };
        app_init(&app, schema_newest(), options);
        if (is_new) {
                meta_set_text(db, "app", options->app);
                meta_set_number(db, "shards", app.shards);
                /* The store's time starts with the wall clock: clock_set(). */
                meta_set_number(db, "created", s->clock.wall_ms(s->clock.self));
        }
        if (!meta_has(db, "features"))
                features_write(db, &app);
        if (options->is_host && !meta_has(db, "max_members"))
                meta_set_number(db, "max_members", app.max_members);
        id_layout_put(&layout, &app.ids);
        if (!meta_has(db, "id_layout"))
                meta_set_text(db, "id_layout", buffer_text(&layout));
        buffer_free(&layout);
}

/* Whether to record `ours`: it is the first, or names the same coordination with other servers. */
static bool is_new_coordination(const char *ours, const char *recorded)
{
        return ours && strcmp(ours, recorded) != 0 && (!*recorded || url_is_same_coordination(ours, recorded));
}

bool app_must_record(struct sqlite_store *s, const struct store_options *options)
{
        struct database *db = &s->db;
        char *coordination = meta_text(db, "coordination");
        bool is_so = is_new_coordination(options->coordination, coordination) || !meta_has(db, "features") ||
                     !meta_has(db, "id_layout") || (options->is_host && !meta_has(db, "max_members"));
        free(coordination);
        return is_so;
}

int app_record(struct sqlite_store *s, const struct store_options *options, bool is_new, struct error *error)
{
        struct database *db = &s->db;
        record_complete(s, options, is_new);
        int r = record_read(s, &s->store.record, error);
        if (r || db->failure)
                return r; /* the caller reports failures of the database */
        s->store.shards = s->store.record.shards;
        shard_table_init(&s->shards, s->store.shards);
        if (is_new)
                shard_table_create(&s->shards, db);
        s->store.app = meta_text(db, "app");
        s->store.coordination = meta_text(db, "coordination");
        if (db->failure)
                return 0;
        if (strcmp(options->app, s->store.app) != 0)
                return error_set(error, -EINVAL,
                        "%s: its app is \"%s\", but \"%s\" was asked for; change the setting, or name another store",
                        s->path, s->store.app, options->app);
        const char *ours = options->coordination;
        if (is_new_coordination(ours, s->store.coordination)) {
                /* Later openers are compared with this one. */
                meta_set_text(db, "coordination", ours);
                free(s->store.coordination);
                s->store.coordination = text_copy(ours);
        }
        return app_agree(s->path, &s->store.record, s->store.coordination, options, error);
}

/* --- operations --- */

void sqlite_app_get(struct sqlite_store *s, struct store_request *request)
{
        struct store_app_get *get = (struct store_app_get *)request;
        struct error error = { "" };
        int r = record_read(s, &get->app, &error);
        if (r) {
                operation_refuse(request, r, "%s", error.text);
                return;
        }
        char *coordination = meta_text(&s->db, "coordination");
        get->coordination = arena_copy(request_arena(request), span_of_text(coordination));
        free(coordination);
}

void sqlite_app_set(struct sqlite_store *s, struct store_request *request)
{
        struct store_app_set *set = (struct store_app_set *)request;
        struct database *db = &s->db;
        struct error error = { "" };
        struct store_app app;
        int r = record_read(s, &app, &error);
        for (uint32_t i = 0; !r && i < set->features_count; i++) {
                r = app_add_feature(&app, set->features[i]);
                if (r == -E2BIG)
                        (void)error_set(&error, r, "app: %u features are the most", STORE_FEATURES_MAX);
        }
        if (r) {
                operation_refuse(request, r, "%s", error.text);
                return;
        }
        if (set->features_count)
                features_write(db, &app);
        if (set->has_max_members)
                meta_set_number(db, "max_members", set->max_members);
        if (set->coordination.size) {
                char *coordination = text_copy_part(set->coordination.data, set->coordination.size);
                meta_set_text(db, "coordination", coordination);
                free(coordination);
        }
        meta_set_number(db, "desired_version", meta_number(db, "desired_version") + 1);
        s->bells.has_desired = true;
}
