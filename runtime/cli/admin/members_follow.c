#include "cli/admin/members_follow.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/lock/tree.h"
#include "cli/print.h"
#include "coord/member.h"
#include "view/json.h"
#include "view/text.h"

#define RETRY_MS 500

struct follower {
        struct cli_tree tree;
        struct member member;
        uv_timer_t timer; /* tries again what failed */
        uv_signal_t signals[2];
        bool is_open; /* the recipe is there */
        bool has_json;
        bool is_over;
};

/* --- what is told --- */

/* A member's node is called NAME.NONCE. */
static void tell(const struct follower *f, const char *event, const char *node)
{
        const char *dot = strrchr(node, '.');
        size_t size = dot ? (size_t)(dot - node) : strlen(node);
        if (f->has_json) {
                json_t *o = json_object();
                view_json_number(o, "at_ms", clock_wall_ms());
                view_json_set_text(o, "event", event);
                (void)json_object_set_new(o, "name", view_json_text_span((struct span){ node, size }));
                view_json_set_text(o, "nonce", dot ? dot + 1 : "");
                cli_json_print(o);
        } else {
                char at[TEXT_TIME_MAX];
                (void)printf("%s %-6s ", text_time(at, clock_wall_ms()), event);
                cli_bytes_print((struct span){ node, size }, SIZE_MAX);
                (void)putchar('\n');
        }
        (void)fflush(stdout);
}

static void on_joined(void *self, const char *name, uint64_t created, struct span data)
{
        (void)created;
        (void)data;
        tell(self, "joined", name);
}

static void on_changed_data(void *self, const char *name, uint64_t created, struct span data)
{
        (void)self;
        (void)name;
        (void)created;
        (void)data;
}

static void on_left(void *self, const char *name)
{
        tell(self, "left", name);
}

static void on_known(void *self, bool is_known)
{
        (void)self;
        (void)is_known;
}

/* --- the tree --- */

static void on_session(void *self, enum coord_state state, uint64_t session)
{
        struct follower *f = self;
        cli_tree_answers(&f->tree, state == COORD_ALIVE);
        if (f->is_open)
                member_session(&f->member, state, session);
}

static void on_changed(void *self, const char *path)
{
        struct follower *f = self;
        if (f->is_open)
                member_changed(&f->member, path);
}

static void on_look(void *self)
{
        struct follower *f = self;
        if (f->is_open)
                member_look(&f->member);
}

static void on_timer(uv_timer_t *timer)
{
        struct follower *f = timer->data;
        if (!f->member.is_known)
                member_retry(&f->member);
}

static void on_signal(uv_signal_t *signal, int number)
{
        struct follower *f = signal->data;
        (void)number;
        f->is_over = true;
}

/* --- from start to end --- */

static void start(struct follower *f)
{
        static const struct member_events events = { on_joined, on_changed_data, on_left, on_known };
        static const int numbers[] = { SIGINT, SIGTERM };
        struct coord_info info;
        member_init(&f->member, f->tree.coord, "members", NULL, &events, f);
        f->is_open = true;
        member_follow(&f->member, true);
        coord_info(f->tree.coord, &info);
        if (info.session)
                member_session(&f->member, COORD_ALIVE, info.session);
        (void)uv_timer_init(&f->tree.loop, &f->timer);
        f->timer.data = f;
        (void)uv_timer_start(&f->timer, on_timer, RETRY_MS, RETRY_MS);
        for (unsigned i = 0; i < 2; i++) {
                (void)uv_signal_init(&f->tree.loop, &f->signals[i]);
                f->signals[i].data = f;
                (void)uv_signal_start(&f->signals[i], on_signal, numbers[i]);
        }
}

int members_follow(const char *command, const char *config, bool has_json)
{
        struct follower f = { .has_json = has_json };
        struct coord_events events = { on_session, on_changed, on_look, &f };
        int code = cli_tree_open(&f.tree, command, config, &events);
        if (code != EXIT_DONE)
                return code;
        start(&f);
        while (!f.is_over && !ferror(stdout))
                (void)uv_run(&f.tree.loop, UV_RUN_ONCE);
        uv_close((uv_handle_t *)&f.timer, NULL);
        for (unsigned i = 0; i < 2; i++)
                uv_close((uv_handle_t *)&f.signals[i], NULL);
        cli_tree_close(&f.tree);
        member_free(&f.member);
        return EXIT_DONE;
}
