#include "view/app.h"

#include <errno.h>
#include <string.h>

#include "view/json.h"
#include "view/text.h"

/* --- for programs ------------------------------------------------------------------------------------------------- */

static json_t *feature_as_json(const char *name, bool is_on)
{
        const struct store_feature *known = store_feature_find(name);
        json_t *o = json_object();
        view_json_set_text(o, "name", name);
        (void)json_object_set_new(o, "on", json_boolean(is_on));
        (void)json_object_set_new(o, "known", json_boolean(known != NULL));
        if (known) {
                view_json_set_text(o, "since", known->since);
                view_json_set_text(o, "about", known->about);
        }
        return o;
}

json_t *app_as_json(const struct app_view *view)
{
        const struct store_app *record = view->record;
        json_t *o = json_object();
        json_t *features = json_array();
        view_json_set_text(o, "app", view->app);
        view_json_set_text(o, "store", view->driver);
        view_json_number(o, "schema", record->schema);
        view_json_number(o, "shards", record->shards);
        view_json_set_text(o, "coordination", view->coordination);
        view_json_number(o, "max_members", record->max_members);
        (void)json_object_set_new(o, "id_layout",
                json_pack("{s:s, s:i, s:i, s:i, s:I}", "kind", id_kind_name(record->ids.kind), "time_bits",
                        (int)record->ids.time_bits, "slot_bits", (int)record->ids.slot_bits, "sequence_bits",
                        (int)record->ids.sequence_bits, "epoch_ms", (json_int_t)record->ids.epoch_ms));
        for (uint32_t i = 0; i < record->features_count; i++)
                (void)json_array_append_new(features, feature_as_json(record->features[i], true));
        for (size_t i = 0; i < store_features_count; i++)
                if (!store_app_has(record, store_features[i].name))
                        (void)json_array_append_new(features, feature_as_json(store_features[i].name, false));
        (void)json_object_set_new(o, "features", features);
        return o;
}

json_t *app_upgrade_as_json(const char *const *names, size_t count, bool is_dry)
{
        json_t *list = json_array();
        for (size_t i = 0; i < count; i++)
                (void)json_array_append_new(list, json_string(names[i]));
        return json_pack("{s:o, s:b}", "features", list, "dry_run", is_dry);
}

/* --- for people --------------------------------------------------------------------------------------------------- */

void app_as_text(struct buffer *to, const struct app_view *view)
{
        const struct store_app *record = view->record;
        buffer_printf(to, "%-13s %s\n", "app", view->app);
        buffer_printf(to, "%-13s %s, schema %u\n", "store", view->driver, record->schema);
        buffer_printf(to, "%-13s %u\n", "shards", record->shards);
        buffer_printf(
                to, "%-13s %s\n", "coordination", *view->coordination ? view->coordination : "(none is recorded yet)");
        if (record->max_members)
                buffer_printf(to, "%-13s %u\n", "max_members", record->max_members);
        else
                buffer_printf(to, "%-13s 0 (no limit)\n", "max_members");
        buffer_printf(to, "%-13s %s: %u bits time, %u slot, %u sequence\n", "ids", id_kind_name(record->ids.kind),
                record->ids.time_bits, record->ids.slot_bits, record->ids.sequence_bits);
        buffer_printf(to, "features\n");
        for (uint32_t i = 0; i < record->features_count; i++) {
                const struct store_feature *known = store_feature_find(record->features[i]);
                buffer_printf(to, "  %-11s on    %s\n", record->features[i],
                        known ? known->about : "(not known to this Quiver)");
        }
        for (size_t i = 0; i < store_features_count; i++)
                if (!store_app_has(record, store_features[i].name))
                        buffer_printf(to, "  %-11s off   %s; switch it on: quiver app upgrade %s\n",
                                store_features[i].name, store_features[i].about, store_features[i].name);
}

size_t app_put_lacking(
        struct buffer *to, const struct membership_view *members, const char *const *features, size_t features_count)
{
        size_t lines = 0;
        for (size_t i = 0; i < members->members_count; i++) {
                const struct view_member *m = &members->members[i];
                if (m->problem[0]) {
                        buffer_printf(to, "member %s cannot be read: %s\n", m->node, m->problem);
                        lines++;
                        continue;
                }
                for (size_t f = 0; f < features_count; f++) {
                        if (member_doc_knows(m->doc, features[f]))
                                continue;
                        buffer_printf(to, "host %s does not know %s\n", m->doc->member.name, features[f]);
                        lines++;
                }
        }
        return lines;
}

int app_choose_features(const struct store_app *record, const char *const *names, size_t names_count, bool is_all,
        const char **ret_names, size_t *ret_count, struct error *error)
{
        size_t count = 0;
        for (size_t i = 0; i < names_count; i++)
                if (!store_feature_find(names[i]))
                        return error_set(error, -EINVAL, "%s: this Quiver knows no such feature; see: quiver app show",
                                names[i]);
        for (size_t i = 0; i < store_features_count; i++) {
                const char *name = store_features[i].name;
                bool is_asked = is_all;
                for (size_t word = 0; word < names_count; word++)
                        is_asked |= !strcmp(names[word], name);
                if (is_asked && !store_app_has(record, name))
                        ret_names[count++] = name;
        }
        *ret_count = count;
        return 0;
}
