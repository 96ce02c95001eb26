#include "cli/reload_fleet.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "base/units.h"
#include "cli/print.h"
#include "host/handler/reload_order.h"
#include "view/json.h"

#define ANSWER_MS UINT64_C(60000) /* to read everything; a host that hears no bell learns of it at its next renewal */
#define WAIT_MS   UINT64_C(90000000) /* a probation lasts a day at most */
#define LOOK_MS   UINT64_C(50)
/* Each look reads the documents of all hosts. */
#define LOOK_MAX_MS UINT64_C(1000)

#define NONCE_TEXT (2 * STORE_NONCE_SIZE + 1)
#define TOKEN_SIZE 16

struct fleet_host {
        char *name;
        char nonce[NONCE_TEXT];
};

struct fleet {
        struct cli_store *s;
        const struct reload_fleet_request *q;
        struct fleet_host *hosts;
        size_t count;

        /* The host that is being asked. */
        const struct fleet_host *asked;
        char token[2 * TOKEN_SIZE + 1];
        bool is_there;  /* it has a document */
        bool is_taken;  /* it said so, and that was printed */
        json_t *answer; /* to this token; NULL: none yet */
};

static volatile sig_atomic_t is_interrupted;

static void on_interrupt(int number)
{
        (void)number;
        is_interrupted = 1;
}

/* --- who is there --- */

static json_t *load(const struct store_status *found)
{
        return json_loadb(found->document.size ? found->document.data : "", found->document.size, 0, NULL);
}

/* One that leaves reads no file any more. */
static void add_host(void *self, const struct store_status *found)
{
        struct fleet *f = self;
        json_t *document = load(found);
        const char *name = view_json_get_text(document, "name");
        if (strcmp(view_json_get_text(document, "state"), "leaving") != 0) {
                f->hosts = memory_resize(f->hosts, (f->count + 1) * sizeof(*f->hosts));
                struct fleet_host *host = &f->hosts[f->count++];
                (void)units_hex(host->nonce, found->nonce, STORE_NONCE_SIZE);
                host->name = memory_text(*name ? name : host->nonce);
        }
        json_decref(document);
}

static int compare(const void *a, const void *b)
{
        const struct fleet_host *x = a;
        const struct fleet_host *y = b;
        int order = strcmp(x->name, y->name);
        return order ? order : strcmp(x->nonce, y->nonce);
}

/* --- what is asked for in the store --- */

static int set_order(const struct fleet *f, const char *nonce, const char *token)
{
        char name[sizeof(RELOAD_ORDER_NAME) + NONCE_TEXT];
        (void)snprintf(name, sizeof(name), RELOAD_ORDER_NAME "%s", nonce);
        return qv_client_set_desired(f->s->client, name, token);
}

struct leftovers {
        const struct fleet *fleet;
        char (*nonces)[NONCE_TEXT];
        size_t count;
};

static void add_leftover(void *self, const struct store_desired *item)
{
        static const struct span prefix = SPAN_TEXT(RELOAD_ORDER_NAME);
        struct leftovers *l = self;
        char nonce[NONCE_TEXT] = "";
        if (item->name.size != prefix.size + NONCE_TEXT - 1 || memcmp(item->name.data, prefix.data, prefix.size) != 0)
                return;
        memcpy(nonce, item->name.data + prefix.size, NONCE_TEXT - 1);
        for (size_t i = 0; i < l->fleet->count; i++)
                if (!strcmp(l->fleet->hosts[i].nonce, nonce))
                        return;
        l->nonces = memory_resize(l->nonces, (l->count + 1) * sizeof(*l->nonces));
        memcpy(l->nonces[l->count++], nonce, sizeof(nonce));
}

/* A command that was killed left its order behind, and the host it was for is gone: nobody else would remove it. */
static int remove_leftovers(const struct fleet *f)
{
        struct leftovers l = { .fleet = f };
        struct error error = { "" };
        int r = client_desired(f->s->client, add_leftover, &l, NULL, &error);
        if (r < 0)
                r = cli_fail(f->s->command, r, error.text);
        for (size_t i = 0; r == 0 && i < l.count; i++)
                if ((r = set_order(f, l.nonces[i], NULL)) < 0)
                        r = cli_fail(f->s->command, r, qv_client_error());
        free(l.nonces);
        return r;
}

/* --- one host --- */

static void look_at(void *self, const struct store_status *found)
{
        struct fleet *f = self;
        char nonce[NONCE_TEXT];
        (void)units_hex(nonce, found->nonce, STORE_NONCE_SIZE);
        if (strcmp(nonce, f->asked->nonce) != 0)
                return;
        json_t *document = load(found);
        json_t *answer = json_object_get(document, "reload");
        f->is_there = true;
        if (!strcmp(view_json_get_text(answer, "token"), f->token)) {
                json_decref(f->answer);
                f->answer = json_incref(answer);
        }
        json_decref(document);
}

static json_t *make_result(const struct fleet *f, const char *state, bool has_failed, const char *text)
{
        json_t *o = json_object();
        view_json_set_text(o, "host", f->asked->name);
        view_json_set_text(o, "nonce", f->asked->nonce);
        view_json_set_text(o, "state", state);
        (void)json_object_set_new(o, "failed", json_boolean(has_failed));
        view_json_set_text(o, "plan", view_json_get_text(f->answer, "plan"));
        view_json_set_text(o, "text", text);
        return o;
}

/* How it went, or NULL: that is not known yet. */
static json_t *judge(const struct fleet *f, uint64_t waited_ms)
{
        const char *state = view_json_get_text(f->answer, "state");
        bool has_failed = json_is_true(json_object_get(f->answer, "failed"));
        bool is_decided = !strcmp(state, "decided");
        bool is_taken = !strcmp(state, "taken") || is_decided;
        if (!strcmp(state, "refused") || (is_decided && (has_failed || f->q->is_patient)))
                return make_result(f, state, has_failed, view_json_get_text(f->answer, "text"));
        if (is_taken && !f->q->is_patient)
                return make_result(f, "taken", false, "");
        if (!f->is_there)
                return make_result(f, "gone", true,
                        "it has stopped, or writes no status document any more; see quiver members, and try again");
        if (waited_ms >= (is_taken ? WAIT_MS : ANSWER_MS))
                return make_result(f, "silent", true,
                        is_taken ? "it took the plan, and did not say in time what became of it"
                                 : "it did not answer in time; it may hang, or run a Quiver before reload --all; see "
                                   "its log, or use quiver reload on its machine");
        if (is_interrupted)
                return make_result(f, "interrupted", true,
                        is_taken ? "it took the plan, and goes on with it; nobody waited for the end"
                                 : "nobody waited for its answer; it may reload all the same");
        return NULL;
}

static void say_taken(struct fleet *f)
{
        char at_most[UNITS_TEXT_MAX];
        const char *plan = view_json_get_text(f->answer, "plan");
        if (f->is_taken || !*plan)
                return;
        f->is_taken = true;
        if (f->q->has_json)
                return;
        (void)printf("host %s: taken: %s\n", f->asked->name, plan);
        if (f->q->is_patient && strcmp(view_json_get_text(f->answer, "state"), "decided") != 0)
                (void)printf("host %s: waiting until every new version has proved itself, for %s at most (Ctrl-C "
                             "ends only the waiting)\n",
                        f->asked->name, units_format_ms(at_most, WAIT_MS));
        (void)fflush(stdout);
}

static int await(struct fleet *f, json_t **ret_result)
{
        struct error error = { "" };
        uint64_t began_ms = clock_boot_ms();
        for (uint64_t pause_ms = LOOK_MS;; pause_ms = min_u64(pause_ms * 3 / 2, LOOK_MAX_MS)) {
                f->is_there = false;
                int r = client_documents(f->s->client, DOCUMENT_STATUS, look_at, NULL, f, &error);
                if (r < 0)
                        return cli_fail(f->s->command, r, error.text);
                say_taken(f);
                if ((*ret_result = judge(f, clock_boot_ms() - began_ms)))
                        return EXIT_DONE;
                const struct timespec pause = { .tv_sec = (time_t)(pause_ms / 1000),
                        .tv_nsec = (long)(pause_ms % 1000 * NS_PER_MS) };
                (void)nanosleep(&pause, NULL);
        }
}

/* EXIT_DONE: *ret_result says how it went.  The order is removed in every case. */
static int ask_host(struct fleet *f, const struct fleet_host *host, json_t **ret_result)
{
        uint8_t random[TOKEN_SIZE];
        char at_most[UNITS_TEXT_MAX];
        if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
                return cli_fail(f->s->command, -EIO, "the kernel gives no random numbers");
        (void)units_hex(f->token, random, sizeof(random));
        f->asked = host;
        f->is_taken = false;
        if (!f->q->has_json) {
                (void)printf("host %s: asked; it has %s to answer\n", host->name, units_format_ms(at_most, ANSWER_MS));
                (void)fflush(stdout);
        }
        int r = set_order(f, host->nonce, f->token);
        if (r < 0)
                return cli_fail(f->s->command, r, qv_client_error());
        int code = await(f, ret_result);
        r = set_order(f, host->nonce, NULL);
        if (code == EXIT_DONE && r < 0)
                code = cli_fail(f->s->command, r, qv_client_error());
        json_decref(f->answer);
        f->answer = NULL;
        return code;
}

/* --- all of them --- */

static void say_result(const struct fleet *f, const json_t *result, size_t left)
{
        const char *state = view_json_get_text(result, "state");
        const char *text = view_json_get_text(result, "text");
        bool has_failed = json_is_true(json_object_get(result, "failed"));
        (void)fflush(stdout);
        if (has_failed)
                (void)fprintf(stderr, "quiver reload: host %s: %s: %s\n", f->asked->name,
                        !strcmp(state, "decided") ? "failed" : state, text);
        else if (!f->q->has_json && !strcmp(state, "decided"))
                (void)printf("host %s: decided: %s\n", f->asked->name, text);
        if (has_failed && left)
                (void)fprintf(stderr, "quiver reload: stopped at host %s; %zu more %s not asked\n", f->asked->name,
                        left, left == 1 ? "was" : "were");
}

static int ask_all(struct fleet *f, json_t *all)
{
        int code = EXIT_DONE;
        for (size_t i = 0; code == EXIT_DONE && i < f->count; i++) {
                json_t *result = NULL;
                if (is_interrupted)
                        return cli_fail(f->s->command, -EINTR,
                                "interrupted; the hosts that were not named yet go on "
                                "as they are");
                code = ask_host(f, &f->hosts[i], &result);
                if (!result)
                        break;
                if (json_is_true(json_object_get(result, "failed")))
                        code = EXIT_FAILED;
                say_result(f, result, f->count - i - 1);
                (void)json_array_append_new(all, result);
        }
        return code;
}

int reload_fleet(struct cli_store *s, const struct reload_fleet_request *q)
{
        struct fleet f = { .s = s, .q = q };
        struct error error = { "" };
        /* The second signal ends the command at once: it may wait for a store that does not answer. */
        const struct sigaction on = { .sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND };
        json_t *all = json_array();
        int r = client_documents(s->client, DOCUMENT_STATUS, add_host, NULL, &f, &error);
        int code = r < 0 ? cli_fail(s->command, r, error.text) : EXIT_DONE;
        if (code == EXIT_DONE && !f.count)
                code = cli_fail(s->command, -ENOENT, "no host of this app runs; start one: quiver run");
        if (code == EXIT_DONE)
                code = remove_leftovers(&f);
        if (f.count)
                qsort(f.hosts, f.count, sizeof(*f.hosts), compare);
        (void)sigaction(SIGINT, &on, NULL);
        (void)sigaction(SIGTERM, &on, NULL);
        if (code == EXIT_DONE)
                code = ask_all(&f, all);
        if (q->has_json)
                cli_json_print_wide(json_incref(all));
        json_decref(all);
        for (size_t i = 0; i < f.count; i++)
                free(f.hosts[i].name);
        free(f.hosts);
        return code;
}
