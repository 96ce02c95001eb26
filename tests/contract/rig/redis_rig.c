#include "redis_rig.h"

static int done_count;

static void on_beat(uv_timer_t *timer)
{
        (void)timer;
}

static void on_rang(void *self, const char *key, size_t size)
{
        struct rig *rig = self;
        rig->rings++;
        (void)snprintf(rig->rung_key, sizeof(rig->rung_key), "%.*s", (int)size, key);
}

static void on_look(void *self)
{
        ((struct rig *)self)->looks++;
}

static void on_state(void *self, bool is_up, const char *text)
{
        struct rig *rig = self;
        rig->no_tracking += strstr(text, "no doorbell") != NULL;
        if (is_up)
                rig->ups++;
        else
                rig->downs++;
        (void)snprintf(rig->last_state, sizeof(rig->last_state), "%s", text);
}

static void on_opened(struct redis_open *open, int status)
{
        struct rig *rig = (struct rig *)((char *)open - offsetof(struct rig, open));
        assert_false(rig->is_opened);
        rig->is_opened = true;
        rig->open_status = status;
        rig->redis = open->redis;
}

void rig_init(struct rig *rig, const char *url)
{
        *rig = (struct rig){ .events = { on_rang, on_look, on_state, rig } };
        assert_int_equal(uv_loop_init(&rig->loop), 0);
        (void)uv_timer_init(&rig->loop, &rig->beat);
        (void)uv_timer_start(&rig->beat, on_beat, 20, 20);
        rig->open.opened = on_opened;
        rig->open.options.url = url;
        rig->open.options.events = &rig->events;
        rig->open.options.wants_bell = true;
        rig->open.options.wants_facts = true;
}

int rig_open(struct rig *rig)
{
        redis_open(&rig->loop, &rig->open);
        assert_false(rig->is_opened);
        RUN_UNTIL(rig, rig->is_opened);
        return rig->open_status;
}

void rig_start(struct rig *rig, const char *url)
{
        rig_init(rig, url);
        if (rig_open(rig))
                fail_msg("%s: %s", url, rig->open.error.text);
}

static void on_closed(void *self)
{
        ((struct rig *)self)->is_closed = true;
}

void rig_close(struct rig *rig)
{
        if (rig->redis) {
                redis_close(rig->redis, on_closed, rig);
                RUN_UNTIL(rig, rig->is_closed);
        }
        uv_close((uv_handle_t *)&rig->beat, NULL);
        assert_int_equal(uv_run(&rig->loop, UV_RUN_DEFAULT), 0);
        assert_int_equal(uv_loop_close(&rig->loop), 0);
}

static void on_done(struct redis_command *command)
{
        struct call *call = (struct call *)command;
        const redisReply *reply = command->reply;
        assert_false(call->is_done);
        call->is_done = true;
        call->order = ++done_count;
        call->status = command->status;
        (void)snprintf(call->error, sizeof(call->error), "%s", command->error.text);
        if (!reply || reply->type == REDIS_REPLY_NIL)
                (void)snprintf(call->reply, sizeof(call->reply), "(nil)");
        else if (reply->type == REDIS_REPLY_INTEGER)
                (void)snprintf(call->reply, sizeof(call->reply), "%lld", reply->integer);
        else if (reply->type == REDIS_REPLY_ARRAY)
                (void)snprintf(call->reply, sizeof(call->reply), "(array of %zu)", reply->elements);
        else
                (void)snprintf(call->reply, sizeof(call->reply), "%s", reply->str);
}

void call_init(struct call *call, const char *text)
{
        struct redis_command *command = &call->command;
        *call = (struct call){ 0 };
        (void)snprintf(call->text, sizeof(call->text), "%s", text);
        command->done = on_done;
        command->argv = call->argv;
        command->argv_size = call->argv_size;
        for (char *rest = call->text, *word; (word = strtok_r(rest, " ", &rest));) {
                assert_true(command->argc < WORDS_MAX);
                bool is_key = strchr(word, '{') || strchr(word, ':');
                if (is_key && !command->route.size)
                        command->route = (struct span){ word, strlen(word) };
                call->argv[command->argc] = word;
                call->argv_size[command->argc++] = strlen(word);
        }
}

void call_send(struct rig *rig, struct call *call, const char *format, ...)
{
        char text[512];
        va_list list;
        va_start(list, format);
        (void)vsnprintf(text, sizeof(text), format, list);
        va_end(list);
        call_init(call, text);
        redis_send(rig->redis, &call->command);
        assert_false(call->is_done);
}

int call_do(struct rig *rig, struct call *call, const char *format, ...)
{
        char text[512];
        va_list list;
        va_start(list, format);
        (void)vsnprintf(text, sizeof(text), format, list);
        va_end(list);
        call_send(rig, call, "%s", text);
        RUN_UNTIL(rig, call->is_done);
        return call->status;
}
