/* Unique ids by the client library: of many threads, of two handles, on a coordination of its own folder. */
#include "client_fixture.h"

#include "base/clock.h"
#include "client/ids.h"

#define THREADS 10
#define EACH    100000

static struct qv_client *open_configured(const struct fixture *f)
{
        struct qv_client_options options = QV_CLIENT_OPTIONS_INIT;
        struct qv_client *client = NULL;
        char path[128];
        (void)snprintf(path, sizeof(path), "%s/runtime.cfg", f->folder);
        FILE *file = fopen(path, "w");
        (void)fprintf(file,
                "app = \"demo\"; shards = 4; store = { url = \"%s\"; }; coordination = { url = \"local:%s/tree\"; };\n",
                f->url, f->folder);
        (void)fclose(file);
        options.config = path;
        if (qv_client_open(&options, &client) < 0)
                fail_msg("%s", qv_client_error());
        return client;
}

static int compare(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a;
        uint64_t y = *(const uint64_t *)b;
        return (x > y) - (x < y);
}

struct taker {
        pthread_t thread;
        struct qv_client *client;
        uint64_t ids[EACH];
};

static void *take(void *self)
{
        struct taker *t = self;
        for (unsigned i = 0; i < EACH; i++)
                if (qv_client_next_id(t->client, &t->ids[i]) < 0)
                        t->ids[i] = 0;
        return NULL;
}

static void ten_threads_of_one_handle_have_a_million_different_ids(void **state)
{
        struct fixture *f = *state;
        struct qv_client *client = open_configured(f);
        struct taker *all = calloc(THREADS, sizeof(*all));
        uint64_t *ids = calloc((size_t)THREADS * EACH, sizeof(*ids));
        for (unsigned i = 0; i < THREADS; i++) {
                all[i].client = client;
                assert_int_equal(pthread_create(&all[i].thread, NULL, take, &all[i]), 0);
        }
        for (unsigned i = 0; i < THREADS; i++) {
                assert_int_equal(pthread_join(all[i].thread, NULL), 0);
                assert_true(all[i].ids[0] > 0);
                for (unsigned k = 1; k < EACH; k++)
                        assert_true(all[i].ids[k] > all[i].ids[k - 1]);
                memcpy(ids + (size_t)i * EACH, all[i].ids, sizeof(all[i].ids));
        }
        qsort(ids, (size_t)THREADS * EACH, sizeof(*ids), compare);
        for (size_t i = 1; i < (size_t)THREADS * EACH; i++)
                assert_true(ids[i] > ids[i - 1]);
        free(ids);
        free(all);
        qv_client_close(client);
}

static void two_handles_have_two_slots_and_a_slot_given_back_goes_on_at_once(void **state)
{
        struct fixture *f = *state;
        struct qv_client *a = open_configured(f), *b = open_configured(f);
        uint64_t first = 0, second = 0, third = 0;
        assert_int_equal(qv_client_next_id(a, &first), 0);
        assert_int_equal(qv_client_next_id(b, &second), 0);
        assert_int_not_equal(first >> 12 & 1023, second >> 12 & 1023);
        qv_client_close(a);
        a = open_configured(f);
        assert_int_equal(qv_client_next_id(a, &third), 0);
        assert_int_equal(third >> 12 & 1023, first >> 12 & 1023);
        assert_true(third > first);
        qv_client_close(a);
        qv_client_close(b);
}

static void without_a_configuration_there_are_no_ids(void **state)
{
        struct fixture *f = *state;
        uint64_t id = 7;
        assert_int_equal(qv_client_next_id(f->client, &id), -ENOTSUP);
        assert_int_equal(qv_client_next_id(f->client, NULL), -EINVAL);
        assert_int_equal(id, 7);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(
                        ten_threads_of_one_handle_have_a_million_different_ids, setup, teardown),
                cmocka_unit_test_setup_teardown(
                        two_handles_have_two_slots_and_a_slot_given_back_goes_on_at_once, setup, teardown),
                cmocka_unit_test_setup_teardown(without_a_configuration_there_are_no_ids, setup, teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
