/* What is recorded about the app: features, max_members, the coordination. */
#include "store/app.h"
#include "call.h"

static struct store_app_get app_get(struct world *w)
{
        struct store_app_get get = { 0 };
        assert_int_equal(CALL(w, store_app_get, &get, NULL), 0);
        return get;
}

static int app_set(struct world *w, struct store_app_set set)
{
        return CALL(w, store_app_set, &set, NULL);
}

static int switch_on(struct world *w, const char *feature)
{
        struct span name = T(feature);
        return app_set(w, (struct store_app_set){ .features = &name, .features_count = 1 });
}

static int open_as_host(struct world *w, uint32_t max_members, struct error *error)
{
        world_close(w);
        return world_open(w, (struct store_options){ .is_host = true, .max_members = max_members }, error);
}

static void a_new_app_has_all_that_its_maker_knows(void **state)
{
        struct world *w = *state;
        struct store_app app = app_get(w).app;
        struct store_info info;
        assert_int_equal(app.shards, 4);
        assert_true(app.schema > 1);
        assert_int_equal(app.features_count, store_features_count);
        for (size_t i = 0; i < store_features_count; i++)
                assert_string_equal(app.features[i], store_features[i].name); /* by name, both */
        assert_int_equal(app.ids.time_bits, 41);
        assert_int_equal(app.ids.slot_bits, 10);
        assert_int_equal(app.ids.sequence_bits, 12);
        store_info(w->store, &info);
        assert_memory_equal(info.record, &app, sizeof(app));
}

static void the_first_host_records_max_members_and_the_record_decides(void **state)
{
        struct world *w = *state;
        assert_int_equal(app_get(w).app.max_members, 0);
        assert_int_equal(open_as_host(w, 3, NULL), 0);
        assert_int_equal(app_get(w).app.max_members, 3);
        assert_int_equal(open_as_host(w, 5, NULL), 0);
        assert_int_equal(app_get(w).app.max_members, 3);
        assert_int_equal(app_set(w, (struct store_app_set){ .has_max_members = true, .max_members = 0 }), 0);
        assert_int_equal(open_as_host(w, 5, NULL), 0);
        assert_int_equal(app_get(w).app.max_members, 0);
        assert_int_equal(app_set(w, (struct store_app_set){ .has_max_members = true, .max_members = 1001 }), -EINVAL);
        assert_int_equal(app_get(w).app.max_members, 0);
}

static void a_feature_is_switched_on_once_and_for_good(void **state)
{
        struct world *w = *state;
        uint32_t before = app_get(w).app.features_count;
        uint64_t version = desired_get(w).version;
        assert_int_equal(switch_on(w, "aa-first"), 0);
        assert_int_equal(switch_on(w, "aa-first"), 0);
        struct store_app app = app_get(w).app;
        assert_int_equal(app.features_count, before + 1);
        assert_string_equal(app.features[0], "aa-first");
        assert_true(store_app_has(&app, "aa-first"));
        assert_string_equal(store_app_lacks(&app), "aa-first");
        assert_true(desired_get(w).version > version); /* which is how hosts learn of it */
        world_wait(w, &w->rang_desired, 1);
        world_reopen(w);
        app = app_get(w).app;
        assert_true(store_app_has(&app, "aa-first"));
}

static void a_host_that_lacks_a_feature_is_refused_by_name_and_a_command_is_not(void **state)
{
        struct world *w = *state;
        struct error error;
        assert_int_equal(open_as_host(w, 0, NULL), 0);
        assert_int_equal(switch_on(w, "teleport"), 0);
        assert_int_equal(open_as_host(w, 0, &error), -EPROTO);
        assert_non_null(strstr(error.text, "\"teleport\""));
        assert_int_equal(world_open(w, (struct store_options){ 0 }, NULL), 0);
}

static void no_more_features_than_there_is_room_for(void **state)
{
        struct world *w = *state;
        struct span names[STORE_FEATURES_MAX + 1];
        struct store_app before = app_get(w).app;
        for (uint32_t i = 0; i <= STORE_FEATURES_MAX; i++)
                names[i] = F(w, "x%u", i);
        struct store_app_set many = { .features = names, .features_count = STORE_FEATURES_MAX };
        assert_int_equal(app_set(w, many), -E2BIG);
        many.features_count++;
        assert_int_equal(app_set(w, many), -EINVAL);
        assert_int_equal(switch_on(w, "No Name"), -EINVAL);
        assert_int_equal(switch_on(w, ""), -EINVAL);
        struct store_app after = app_get(w).app;
        assert_memory_equal(&before, &after, sizeof(before));
        many.features_count = STORE_FEATURES_MAX - before.features_count;
        assert_int_equal(app_set(w, many), 0);
        assert_int_equal(app_get(w).app.features_count, STORE_FEATURES_MAX);
}

/* The refusal says what to type, and that then works. */
static void the_coordination_can_be_another(void **state)
{
        struct world *w = *state;
        struct error error;
        const char *other = "zookeeper://b/q";
        world_close(w);
        assert_int_equal(world_open(w, (struct store_options){ .coordination = "local:/a" }, NULL), 0);
        world_close(w);
        assert_int_equal(world_open(w, (struct store_options){ .coordination = other }, &error), -EINVAL);
        assert_non_null(strstr(error.text, "quiver app set 'coordination=zookeeper://b/q'"));
        assert_int_equal(world_open(w, (struct store_options){ 0 }, NULL), 0);
        assert_int_equal(app_set(w, (struct store_app_set){ .coordination = T(other) }), 0);
        struct store_app_get get = { 0 };
        assert_int_equal(CALL(w, store_app_get, &get, NULL), 0);
        world_close(w);
        assert_int_equal(world_open(w, (struct store_options){ .coordination = other }, NULL), 0);
        world_close(w);
        assert_int_equal(world_open(w, (struct store_options){ .coordination = "local:/a" }, &error), -EINVAL);
        assert_int_equal(world_open(w, (struct store_options){ 0 }, NULL), 0);
}

static void what_no_quiver_recorded_is_refused(void **state)
{
        struct world *w = *state;
        struct error error;
        static const struct {
                const char *name, *value;
        } wrong[] = { { "max_members", "1001" }, { "max_members", "-1" }, { "max_members", "99999999999999999999" },
                { "id_layout", "41.10.13" }, { "id_layout", "63.0.0" }, { "id_layout", "41.10" },
                { "id_layout", "41.10.12.0" }, { "id_layout", "x" }, { "features", "limits  merge" },
                { "features", "Limits" }, { "features", "an-endless-name-of-more-than-thirty-one-letters" },
                { "shards", "0" }, { "shards", "5000" } };
        static const char *const good[] = { "0", "0", "0", "41.10.12", "41.10.12", "41.10.12", "41.10.12", "41.10.12",
                "limits", "limits", "limits", "4", "4" };
        world_close(w);
        for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
                driver->record(w->place, wrong[i].name, wrong[i].value);
                assert_int_equal(world_open(w, (struct store_options){ 0 }, &error), -EPROTO);
                assert_non_null(strstr(error.text, wrong[i].name));
                driver->record(w->place, wrong[i].name, good[i]);
                assert_int_equal(world_open(w, (struct store_options){ 0 }, NULL), 0);
                world_close(w);
        }
        assert_int_equal(world_open(w, (struct store_options){ 0 }, NULL), 0);
}

static void the_layout_of_ids_is_recorded_and_another_is_refused(void **state)
{
        struct world *w = *state;
        struct error error;
        struct id_layout standard = id_layout_standard(ID_SNOWFLAKE);
        struct id_layout sony = id_layout_standard(ID_SONYFLAKE);
        struct id_layout later = standard;
        later.epoch_ms += 1;
        struct id_layout recorded = app_get(w).app.ids;
        assert_true(id_layout_is_same(&recorded, &standard));
        world_close(w);
        assert_int_equal(world_open(w, (struct store_options){ .ids = &standard }, NULL), 0);
        world_close(w);
        assert_int_equal(world_open(w, (struct store_options){ .ids = &sony, .is_host = true }, &error), -EINVAL);
        assert_non_null(strstr(error.text, "41.10.12"));
        assert_non_null(strstr(error.text, "sonyflake:39.16.8"));
        assert_int_equal(world_open(w, (struct store_options){ .ids = &later }, &error), -EINVAL);
        assert_non_null(strstr(error.text, "41.10.12@1288834974658"));
        driver->record(w->place, "id_layout", "sonyflake:39.16.8");
        assert_int_equal(world_open(w, (struct store_options){ .ids = &sony, .is_host = true }, NULL), 0);
        recorded = app_get(w).app.ids;
        assert_true(id_layout_is_same(&recorded, &sony));
}

/* SQLite has it in the file's head: see test_store_files.c. */
static void another_schema_is_refused(void **state)
{
        struct world *w = *state;
        struct error error;
        if (!driver->has_many_apps)
                skip();
        world_close(w);
        driver->record(w->place, "schema", "99");
        assert_int_equal(world_open(w, (struct store_options){ 0 }, &error), -EPROTO);
        assert_non_null(strstr(error.text, "schema 99"));
        driver->record(w->place, "schema", "1");
        assert_int_equal(world_open(w, (struct store_options){ .may_create = true, .is_host = true }, &error), -EPROTO);
        assert_non_null(strstr(error.text, "quiver dump"));
        driver->record(w->place, "schema", "2");
        assert_int_equal(world_open(w, (struct store_options){ 0 }, NULL), 0);
}

const struct CMUnitTest app_tests[] = {
        IN_WORLD_4(a_new_app_has_all_that_its_maker_knows),
        IN_WORLD(the_first_host_records_max_members_and_the_record_decides),
        IN_WORLD(a_feature_is_switched_on_once_and_for_good),
        IN_WORLD(a_host_that_lacks_a_feature_is_refused_by_name_and_a_command_is_not),
        IN_WORLD(no_more_features_than_there_is_room_for),
        IN_WORLD(the_coordination_can_be_another),
        IN_WORLD_4(what_no_quiver_recorded_is_refused),
        IN_WORLD_4(the_layout_of_ids_is_recorded_and_another_is_refused),
        IN_WORLD(another_schema_is_refused),
};
GROUP(app);
