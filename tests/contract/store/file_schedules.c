/* Schedules of configurations: whichever host comes first, is interrupted or comes late, those of the newest
 * configuration are in force, and those that were set by command stay. */
#include "look/schedules_apply.h"

#include <stdlib.h>

#include "base/memory.h"
#include "call.h"

#define NOW UINT64_C(1763256000000)

/* A host's configuration: `schedules` is "NAME=SECONDS[@KEY] …". */
struct file_host {
        uint64_t version;
        const char *schedules;
};

static struct schedules_apply *pass_of(struct world *w, const struct file_host *host)
{
        struct schedules_apply *pass = calloc(1, sizeof(*pass));
        char text[200], *rest = text, *word;
        assert_non_null(pass);
        (void)snprintf(text, sizeof(text), "%s", host->schedules);
        schedules_apply_init(pass);
        pass->version = host->version;
        pass->host = "h";
        pass->now_ms = NOW;
        store_info(w->store, &pass->look.info);
        while ((word = strtok_r(rest, " ", &rest))) {
                char definition[200];
                char *value = strchr(word, '=');
                char *key = strchr(value, '@');
                struct schedule schedule;
                *value++ = 0;
                if (key)
                        *key++ = 0;
                (void)snprintf(definition, sizeof(definition),
                        "{\"every_ms\":%s000,\"handler\":\"a\",\"from\":\"file\"%s%s%s}", value,
                        key ? ",\"key\":\"" : "", key ? key : "", key ? "\"" : "");
                assert_int_equal(schedule_parse(&schedule, span_of_text(definition), NULL), 0);
                schedules_apply_add(pass, word, &schedule);
        }
        return pass;
}

static bool has_next;

/* What an answer points to is there as long as this takes. */
static void take(struct world *w, struct store_request *request)
{
        (void)w;
        has_next = look_next(container_of(request, struct look, request));
}

/* At most `steps` requests; true: it is done. */
static bool run(struct world *w, struct schedules_apply *pass, unsigned steps)
{
        bool has_begun = pass->look.start != NULL;
        has_next = has_begun ? pass->look.driver != NULL : look_next(&pass->look);
        while (steps-- && has_next) {
                struct call_waiting waiting;
                (void)call_prepare(w, &pass->look.request, take, &waiting);
                pass->look.start(w->store, &pass->look);
                assert_int_equal(call_finish(w, &pass->look.request, &waiting), 0);
        }
        /* Whoever goes on later finds the next request filled in. */
        pass->look.driver = has_next ? pass : NULL;
        return !has_next;
}

static void end(struct schedules_apply *pass)
{
        schedules_apply_free(pass);
        free(pass);
}

static void apply(struct world *w, const struct file_host *host)
{
        struct schedules_apply *pass = pass_of(w, host);
        assert_true(run(w, pass, 1000));
        end(pass);
}

static void keep_them(struct world *w, struct store_request *request)
{
        struct store_schedule_list *l = (struct store_schedule_list *)request;
        l->schedules = keep_array(w, l->schedules, l->schedules_count, sizeof(*l->schedules));
        for (uint32_t i = 0; i < l->schedules_count; i++) {
                l->schedules[i].name = keep(w, l->schedules[i].name);
                l->schedules[i].definition = keep(w, l->schedules[i].definition);
        }
}

static struct store_schedule_list listed(struct world *w, uint32_t shard)
{
        struct store_schedule_list l = { .shard = shard };
        assert_int_equal(CALL(w, store_schedule_list, &l, keep_them), 0);
        return l;
}

/* "NAME=SECONDS" of all that there are, in the order of their shards; "!": set by command. */
static void assert_stored(struct world *w, const char *expected)
{
        struct buffer text = { 0 };
        struct store_info info;
        store_info(w->store, &info);
        for (uint32_t shard = 0; shard < info.shards; shard++) {
                struct store_schedule_list l = listed(w, shard);
                for (uint32_t i = 0; i < l.schedules_count; i++) {
                        struct schedule schedule;
                        assert_int_equal(schedule_parse(&schedule, l.schedules[i].definition, NULL), 0);
                        buffer_printf(&text, "%s%.*s=%u%s", text.size ? " " : "", (int)l.schedules[i].name.size,
                                l.schedules[i].name.data, (unsigned)(schedule.every_ms / 1000),
                                schedule_is_of_file(&schedule) ? "" : "!");
                        schedule_free(&schedule);
                }
        }
        if (strcmp(buffer_text(&text), expected) != 0)
                fail_msg("there are \"%s\" instead of \"%s\"", buffer_text(&text), expected);
        buffer_free(&text);
}

static void by_command(struct world *w, enum store_schedule_verb verb, const char *name, uint64_t version)
{
        struct store_info info;
        store_info(w->store, &info);
        struct store_schedule_set set = { .verb = verb,
                .shard = shard_of_key(T(name), info.shards),
                .name = T(name),
                .version = version,
                .definition = T("{\"every_ms\":99000,\"handler\":\"a\",\"from\":\"command\"}"),
                .next_ms = NOW };
        assert_int_equal(CALL(w, store_schedule_set, &set, NULL), 0);
}

static void what_leaves_the_file_leaves_the_store(void **state)
{
        struct world *w = *state;
        by_command(w, SCHEDULE_PUT, "c", 5);
        apply(w, &(struct file_host){ 10, "a=1 b=2" });
        assert_stored(w, "a=1 b=2 c=99!");
        apply(w, &(struct file_host){ 20, "b=3" });
        assert_stored(w, "b=3 c=99!");
        apply(w, &(struct file_host){ 30, "" });
        assert_stored(w, "c=99!");
        expect_sound(w);
}

static void a_configuration_without_schedules_asks_nothing_of_an_app_without(void **state)
{
        struct world *w = *state;
        struct schedules_apply *pass = pass_of(w, &(struct file_host){ 10, "" });
        assert_true(run(w, pass, 1));
        assert_int_equal(pass->newest.version, 0);
        end(pass);
}

static void an_older_configuration_changes_nothing_and_says_so(void **state)
{
        struct world *w = *state;
        apply(w, &(struct file_host){ 20, "a=1 b=2" });
        struct schedules_apply *pass = pass_of(w, &(struct file_host){ 10, "a=1 b=3 d=4" });
        assert_true(run(w, pass, 1000));
        assert_true(pass->is_older);
        assert_int_equal(pass->newest.version, 20);
        assert_int_equal(pass->others, 2);
        assert_int_equal(pass->files[0].state, FILE_SCHEDULE_STANDS);
        assert_int_equal(pass->files[1].state, FILE_SCHEDULE_OLDER);
        end(pass);
        assert_stored(w, "a=1 b=2");
        /* The same, written earlier: there is nothing to say. */
        pass = pass_of(w, &(struct file_host){ 10, "b=2 a=1" });
        assert_true(run(w, pass, 1000));
        assert_int_equal(pass->others, 0);
        end(pass);
}

static void a_name_that_was_set_by_command_is_a_conflict(void **state)
{
        struct world *w = *state;
        by_command(w, SCHEDULE_PUT, "a", 50);
        struct schedules_apply *pass = pass_of(w, &(struct file_host){ 20, "a=1 b=2" });
        assert_true(run(w, pass, 1000));
        assert_int_equal(pass->files[0].state, FILE_SCHEDULE_CONFLICT);
        assert_int_equal(pass->files[1].state, FILE_SCHEDULE_STANDS);
        end(pass);
        assert_stored(w, "a=99! b=2");
        /* Once it was deleted the file's is taken, though the file was written before that. */
        by_command(w, SCHEDULE_DELETE, "a", 51);
        apply(w, &(struct file_host){ 20, "a=1 b=2" });
        assert_stored(w, "a=1 b=2");
}

static void the_same_again_keeps_state_counts_and_the_time_that_is_due(void **state)
{
        struct world *w = *state;
        apply(w, &(struct file_host){ 10, "a=7" });
        uint64_t next_ms = listed(w, 0).schedules[0].next_ms;
        struct schedules_apply *pass = pass_of(w, &(struct file_host){ 20, "a=7" });
        pass->now_ms = NOW + 1000000;
        assert_true(run(w, pass, 1000));
        end(pass);
        struct store_schedule_list l = listed(w, 0);
        assert_int_equal(l.schedules[0].next_ms, next_ms);
        assert_int_equal(l.schedules[0].version, 20);
}

/* With another key it stands in another shard; paused stays paused. */
static void another_key_moves_it(void **state)
{
        struct world *w = *state;
        struct store_info info;
        store_info(w->store, &info);
        char key[16] = "k", schedules[32];
        for (unsigned i = 0; shard_of_key(span_of_text(key), info.shards) == shard_of_key(T("a"), info.shards); i++)
                (void)snprintf(key, sizeof(key), "k%u", i);
        apply(w, &(struct file_host){ 10, "a=1" });
        struct store_schedule_set pause = {
                .verb = SCHEDULE_PAUSE, .shard = shard_of_key(T("a"), info.shards), .name = T("a")
        };
        assert_int_equal(CALL(w, store_schedule_set, &pause, NULL), 0);
        (void)snprintf(schedules, sizeof(schedules), "a=1@%s", key);
        apply(w, &(struct file_host){ 20, schedules });
        assert_stored(w, "a=1");
        struct store_schedule_list l = listed(w, shard_of_key(span_of_text(key), info.shards));
        assert_int_equal(l.schedules_count, 1);
        assert_int_equal(l.schedules[0].state, SCHEDULE_PAUSED);
}

/* The older one stops after each of its requests, the newer one runs, the older one goes on, or is killed and comes
 * back; and the other way round. */
static void of_two_hosts_at_once_the_newer_configuration_wins(void **state)
{
        struct world *w = *state;
        static const struct file_host before = { 10, "a=1 b=1 x=1" }, older = { 20, "a=2 b=1 c=2" },
                                      newer = { 30, "a=3 b=1 d=3" };
        bool is_over = false;
        uint64_t round = 0;
        for (unsigned steps = 0; !is_over; steps++)
                for (unsigned kind = 0; kind < 4; kind++) {
                        bool is_older_first = kind & 1, is_killed = kind & 2;
                        struct file_host first = is_older_first ? older : newer,
                                         second = is_older_first ? newer : older;
                        struct file_host base = before;
                        round += 100;
                        base.version += round;
                        first.version += round;
                        second.version += round;
                        apply(w, &base);
                        struct schedules_apply *pass = pass_of(w, &first);
                        is_over = run(w, pass, steps);
                        apply(w, &second);
                        if (!is_killed)
                                assert_true(run(w, pass, 1000));
                        end(pass);
                        if (is_killed)
                                apply(w, &first);
                        assert_stored(w, "a=3 b=1 d=3");
                }
        expect_sound(w);
}

const struct CMUnitTest file_schedule_tests[] = {
        IN_WORLD(what_leaves_the_file_leaves_the_store),
        IN_WORLD(a_configuration_without_schedules_asks_nothing_of_an_app_without),
        IN_WORLD(an_older_configuration_changes_nothing_and_says_so),
        IN_WORLD(a_name_that_was_set_by_command_is_a_conflict),
        IN_WORLD(the_same_again_keeps_state_counts_and_the_time_that_is_due),
        IN_WORLD_4(another_key_moves_it),
        IN_WORLD(of_two_hosts_at_once_the_newer_configuration_wins),
};
GROUP(file_schedule);
