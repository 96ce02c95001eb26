#include "store/app.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers.h"
#include "base/url.h"
#include "store/request.h"

/* --- features ---------------------------------------------------------------------------------------------------- */

const struct store_feature *store_feature_find(const char *name)
{
        for (size_t i = 0; i < store_features_count; i++)
                if (!strcmp(store_features[i].name, name))
                        return &store_features[i];
        return NULL;
}

uint64_t store_age_ms(uint64_t created_ms, uint64_t since_ms, uint64_t now_ms)
{
        if (!since_ms || since_ms >= now_ms)
                return 0;
        /* An app from the future was made before a clock was stepped back: that says nothing. */
        return now_ms - max_u64(since_ms, created_ms < now_ms ? created_ms : 0);
}

bool store_app_has(const struct store_app *app, const char *feature)
{
        for (uint32_t i = 0; i < app->features_count; i++)
                if (!strcmp(app->features[i], feature))
                        return true;
        return false;
}

const char *store_app_lacks(const struct store_app *app)
{
        for (uint32_t i = 0; i < app->features_count; i++)
                if (!store_feature_find(app->features[i]))
                        return app->features[i];
        return NULL;
}

static bool is_feature_name(struct span name)
{
        static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_-";
        if (!name.size || name.size > STORE_FEATURE_NAME_MAX || name.data[0] < 'a' || name.data[0] > 'z')
                return false;
        for (size_t i = 0; i < name.size; i++)
                if (!memchr(letters, name.data[i], sizeof(letters) - 1))
                        return false;
        return true;
}

static int by_name(const void *a, const void *b)
{
        return strcmp(a, b);
}

int app_add_feature(struct store_app *app, struct span name)
{
        char text[STORE_FEATURE_NAME_MAX + 1] = "";
        if (!is_feature_name(name))
                return -EINVAL;
        (void)snprintf(text, sizeof(text), "%.*s", (int)name.size, name.data);
        if (store_app_has(app, text))
                return 0;
        if (app->features_count == STORE_FEATURES_MAX)
                return -E2BIG;
        memcpy(app->features[app->features_count++], text, sizeof(text));
        qsort(app->features, app->features_count, sizeof(app->features[0]), by_name);
        return 0;
}

void app_put_features(struct buffer *to, const struct store_app *app)
{
        for (uint32_t i = 0; i < app->features_count; i++)
                buffer_printf(to, "%s%s", i ? " " : "", app->features[i]);
}

/* --- what is recorded -------------------------------------------------------------------------------------------- */

void app_init(struct store_app *app, uint32_t schema, const struct store_options *options)
{
        *app = (struct store_app){ .schema = schema,
                .shards = options->shards ? options->shards : 64,
                .max_members = options->max_members,
                .ids = options->ids ? *options->ids : id_layout_standard(ID_SNOWFLAKE) };
        for (size_t i = 0; i < store_features_count; i++)
                (void)app_add_feature(app, span_of_text(store_features[i].name));
}

/* Digits alone, of a number up to `max`; nothing at all is 0. */
static bool number_read(struct span text, uint64_t max, uint64_t *ret_number)
{
        uint64_t number = 0;
        if (text.size > 9)
                return false;
        for (size_t i = 0; i < text.size; i++) {
                if (text.data[i] < '0' || text.data[i] > '9')
                        return false;
                number = number * 10 + (uint64_t)(text.data[i] - '0');
        }
        *ret_number = number;
        return number <= max;
}

static bool features_read(struct span text, struct store_app *app)
{
        size_t at = 0;
        while (at < text.size) {
                size_t end = at;
                while (end < text.size && text.data[end] != ' ')
                        end++;
                if (app_add_feature(app, (struct span){ text.data + at, end - at }))
                        return false;
                at = end + 1;
        }
        return true;
}

/* Unix milliseconds; 0 if it is none: nothing is decided by it but what people are shown. */
static uint64_t time_read(struct span text)
{
        uint64_t ms = 0;
        if (text.size > 15)
                return 0;
        for (size_t i = 0; i < text.size; i++) {
                if (text.data[i] < '0' || text.data[i] > '9')
                        return 0;
                ms = ms * 10 + (uint64_t)(text.data[i] - '0');
        }
        return ms;
}

static int bad_record(const char *where, const char *name, struct span value, struct error *error)
{
        return error_set(error, -EPROTO,
                "%s: the app's %s is recorded as \"%.*s\", which Quiver does not write; was it changed by hand?", where,
                name, (int)(value.size > 64 ? 64 : value.size), value.size ? value.data : "");
}

int app_read(const char *where, const struct app_texts *texts, uint32_t schema, struct store_app *ret_app,
        struct error *error)
{
        struct store_app app = { .schema = schema };
        uint64_t shards = 0;
        uint64_t max_members = 0;
        if (!number_read(texts->shards, SHARDS_MAX, &shards) || !shards)
                return error_set(error, -EPROTO,
                        "%s: does not say how many shards there are, so it is not a store of Quiver; name another",
                        where);
        if (!number_read(texts->max_members, STORE_MEMBERS_MAX, &max_members))
                return bad_record(where, "max_members", texts->max_members, error);
        if (!id_layout_read(texts->id_layout, &app.ids))
                return bad_record(where, "id_layout", texts->id_layout, error);
        if (!features_read(texts->features, &app))
                return bad_record(where, "features", texts->features, error);
        app.shards = (uint32_t)shards;
        app.max_members = (uint32_t)max_members;
        app.created_ms = time_read(texts->created);
        *ret_app = app;
        return 0;
}

static int refuse_layout(
        const char *where, const struct store_app *app, const struct id_layout *asked, struct error *error)
{
        struct buffer recorded = { 0 };
        struct buffer other = { 0 };
        id_layout_put(&recorded, &app->ids);
        id_layout_put(&other, asked);
        int r = error_set(error, -EINVAL,
                "%s: the ids of the app are laid out as %s (bits of time, slot, sequence), but %s was asked for; the "
                "layout is fixed when the store is made: take ids out of the settings, or name another store",
                where, buffer_text(&recorded), buffer_text(&other));
        buffer_free(&recorded);
        buffer_free(&other);
        return r;
}

int app_agree(const char *where, const struct store_app *app, const char *coordination,
        const struct store_options *options, struct error *error)
{
        const char *lacks = options->is_host ? store_app_lacks(app) : NULL;
        if (lacks)
                return error_set(error, -EPROTO,
                        "%s: the app has its feature \"%s\" switched on, which this Quiver does not know; run a newer "
                        "one",
                        where, lacks);
        if (options->shards && options->shards != app->shards)
                return error_set(error, -EINVAL,
                        "%s: the app has %u shards, but %u were asked for; the number is fixed when the store is made",
                        where, app->shards, options->shards);
        if (options->ids && !id_layout_is_same(options->ids, &app->ids))
                return refuse_layout(where, app, options->ids, error);
        if (options->coordination && !url_is_same_coordination(options->coordination, coordination))
                return error_set(error, -EINVAL,
                        "%s: its coordination is \"%s\", but \"%s\" was asked for; change the setting, or name another "
                        "store, or move the app there: stop all its hosts, then quiver app set 'coordination=%s'",
                        where, coordination, options->coordination, options->coordination);
        return 0;
}

/* --- requests ---------------------------------------------------------------------------------------------------- */

void store_app_get(struct store *store, struct store_app_get *get)
{
        request_begin(store, &get->request, OP_APP_GET);
        request_start(&get->request);
}

void store_app_set(struct store *store, struct store_app_set *set)
{
        struct store_request *request = &set->request;
        request_begin(store, request, OP_APP_SET);
        for (uint32_t i = 0; i < set->features_count; i++)
                if (!is_feature_name(set->features[i]))
                        request_refuse(request, "not the name of a feature");
        if (set->features_count > STORE_FEATURES_MAX)
                request_refuse(request, "too many features");
        if (set->has_max_members && set->max_members > STORE_MEMBERS_MAX)
                request_refuse(request, "max_members: at most 1000");
        request_start(request);
}
