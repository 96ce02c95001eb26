/* Redis under load while everything goes wrong: every command is answered once, and the answers agree with the data. */
#include <errno.h>
#include <time.h>

#include "redis_rig.h"

enum { KEYS = 32 };

static const char text[] = "return redis.call('INCR', KEYS[1])";

/* One key that is counted up by a script, again and again, whatever the answer. */
struct counter {
        struct redis_command command;
        struct load *load;
        const char *argv[4];
        size_t argv_size[4];
        char key[32];
        uint32_t known, unknown, refused; /* how the calls ended */
        long long last;                   /* as the server has it */
        bool is_under_way;
};

struct load {
        struct rig rig;
        struct redis_script script, *list[1];
        struct counter counters[KEYS];
        uint32_t answers;
        bool is_ending;
        int odd_status; /* one that should not be seen */
        char odd_text[256];
};

static void count(struct counter *counter)
{
        counter->is_under_way = true;
        redis_send(counter->load->rig.redis, &counter->command);
}

static void on_counted(struct redis_command *command)
{
        struct counter *counter = (struct counter *)command;
        struct load *load = counter->load;
        counter->is_under_way = false;
        load->answers++;
        switch (command->status) {
        case 0:
                counter->known++;
                assert_int_equal(command->reply->type, REDIS_REPLY_INTEGER);
                assert_true(command->reply->integer > counter->last);
                counter->last = command->reply->integer;
                break;
        case -ECONNRESET:
        case -ETIMEDOUT:
                counter->unknown++;
                break;
        case -ECONNREFUSED:
        case -EHOSTUNREACH:
                counter->refused++;
                break;
        default:
                load->odd_status = command->status;
                (void)snprintf(load->odd_text, sizeof(load->odd_text), "%.255s", command->error.text);
        }
        if (!load->is_ending)
                count(counter);
}

static void load_start(struct load *load, const char *url, const char *tag)
{
        *load = (struct load){ .script = { .name = "count", .text = text, .size = sizeof(text) - 1 } };
        load->list[0] = &load->script;
        rig_init(&load->rig, url);
        load->rig.open.options.scripts = load->list;
        load->rig.open.options.scripts_count = 1;
        assert_int_equal(rig_open(&load->rig), 0);
        for (int i = 0; i < KEYS; i++) {
                struct counter *c = &load->counters[i];
                int size = snprintf(c->key, sizeof(c->key), "%s:%d", tag, i);
                c->load = load;
                memcpy(c->argv, ((const char *[]){ "EVALSHA", "-", "1", c->key }), sizeof(c->argv));
                memcpy(c->argv_size, ((size_t[]){ 7, 1, 1, (size_t)size }), sizeof(c->argv_size));
                c->command = (struct redis_command){ .done = on_counted,
                        .route = { c->key, (size_t)size },
                        .argv = c->argv,
                        .argv_size = c->argv_size,
                        .argc = 4,
                        .script = &load->script };
                count(c);
        }
}

static void load_more(struct load *load, uint32_t answers)
{
        uint32_t until = load->answers + answers;
        RUN_UNTIL(&load->rig, load->answers >= until);
}

static bool is_over(const struct load *load)
{
        for (int i = 0; i < KEYS; i++)
                if (load->counters[i].is_under_way)
                        return false;
        return true;
}

/* What is in the store is what was answered, and at most what may have happened on top of it. */
static void load_end(struct load *load, bool may_be_unknown)
{
        load->is_ending = true;
        RUN_UNTIL(&load->rig, is_over(load));
        if (load->odd_status)
                fail_msg("%d: %s", load->odd_status, load->odd_text);
        for (int i = 0; i < KEYS; i++) {
                const struct counter *c = &load->counters[i];
                struct call call;
                assert_int_equal(call_do(&load->rig, &call, "GET %s", c->key), 0);
                uint32_t stored = (uint32_t)atoi(call.reply);
                assert_true(stored >= c->known && stored <= c->known + c->unknown);
                assert_true(may_be_unknown || (!c->unknown && !c->refused));
        }
        rig_close(&load->rig);
}

static void a_storm_costs_no_answer(void **state)
{
        struct redis_server server;
        static struct load load;
        unsigned seed = (unsigned)time(NULL);
        (void)state;
        print_message("seed %u\n", seed);
        server_start(&server, "--appendonly", "yes", "--appendfsync", "always", NULL);
        load_start(&load, server.url, "n");
        for (int i = 0; i < 60; i++) {
                load_more(&load, (uint32_t)rand_r(&seed) % 300);
                switch (rand_r(&seed) % 6) {
                case 0:
                        server_ok(&server, "SCRIPT FLUSH");
                        break;
                case 1:
                        server_ok(&server, "CLIENT KILL TYPE pubsub");
                        break;
                case 2:
                        if (i % 10 == 0) {
                                server_kill(&server);
                                server_restart(&server);
                        }
                        break;
                case 3:
                        server_ok(&server, "CLIENT PAUSE 30");
                        break;
                default:
                        server_ok(&server, "CLIENT KILL TYPE normal");
                        break;
                }
        }
        load_end(&load, true);
        server_free(&server);
}

static void slots_move_to_and_fro_without_an_error(void **state)
{
        static struct redis_cluster cluster;
        static struct load load;
        int from = 0;
        (void)state;
        redis_cluster_start(&cluster);
        uint16_t slot = redis_slot("{s}", 3);
        from = slot * 3 / 16384;
        load_start(&load, cluster.url, "{s}");
        for (int i = 0; i < 12; i++) {
                int to = (from + 1) % CLUSTER_MASTERS;
                load_more(&load, 100);
                redis_cluster_mark(&cluster, slot, from, to);
                for (int keys = 0; keys < KEYS; keys += 4) {
                        load_more(&load, 20);
                        redis_cluster_move_keys(&cluster, slot, from, to, 4);
                }
                server_ok(&cluster.nodes[to], "SCRIPT FLUSH");
                redis_cluster_move_keys(&cluster, slot, from, to, KEYS);
                redis_cluster_hand_over(&cluster, slot, to);
                from = to;
        }
        load_end(&load, false);
        redis_cluster_free(&cluster);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_storm_costs_no_answer),
                cmocka_unit_test(slots_move_to_and_fro_without_an_error),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
