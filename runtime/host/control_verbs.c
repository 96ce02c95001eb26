/* control_verbs.c: the verbs of the control socket. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "host/host_private.h"

#define CONTROL_SECOND_MAX 96

static void answer_ping(void *owner, struct control_call *call, const json_t *request)
{
        const struct host *h = owner;
        (void)request;
        json_t *config = json_string(h->config->path);
        control_reply(call, json_pack("{s:s, s:i, s:o}", "name", h->config->host.name, "pid", (int)getpid(), "config",
                                    config ? config : json_string("")));
}

static void answer_status(void *owner, struct control_call *call, const json_t *request)
{
        struct host *h = owner;
        json_t *document = host_status_make(&h->status_doc);
        (void)request;
        reload_report(&h->reload, document);
        control_reply(call, document);
}

/* The outcome of a task that this host finished, in the form of the document in the store. */
static void answer_done(void *owner, struct control_call *call, const json_t *request)
{
        const struct host *h = owner;
        const char *id = json_string_value(json_object_get(request, "id"));
        control_reply(call, done_document_of(&h->done, h->config->host.name, h->status_doc.done.age_ms, clock_boot_ms(),
                                    span_of_text(id ? id : "")));
}

/* A client of the control socket that waits for a reload. */
struct control_reload {
        struct reload_caller caller;
        struct control_call *call;
};

static void on_reloaded(struct reload_caller *caller, json_t *reply)
{
        struct control_reload *waiting = container_of(caller, struct control_reload, caller);
        control_reply(waiting->call, reply);
        free(waiting);
}

static void on_refused(struct reload_caller *caller, const char *text)
{
        struct control_reload *waiting = container_of(caller, struct control_reload, caller);
        control_refuse(waiting->call, "%s", text);
        free(waiting);
}

static struct reload_caller *caller_of(struct control_call *call)
{
        struct control_reload *waiting = memory_zero(1, sizeof(*waiting));
        *waiting = (struct control_reload){ .caller = { .reply = on_reloaded, .refuse = on_refused }, .call = call };
        return &waiting->caller;
}

static void answer_reload(void *owner, struct control_call *call, const json_t *request)
{
        struct host *h = owner;
        reload_ask(&h->reload, "quiver reload", caller_of(call), json_is_true(json_object_get(request, "dry_run")),
                json_is_true(json_object_get(request, "wait")));
}

static void answer_await(void *owner, struct control_call *call, const json_t *request)
{
        struct host *h = owner;
        json_int_t number = json_integer_value(json_object_get(request, "reload"));
        if (number < 1 || number > (json_int_t)h->reload.number)
                control_refuse(call, "there was no reload %lld of this host", (long long)number);
        else
                reload_await(&h->reload, (uint32_t)number, caller_of(call));
}

static const struct control_verb verbs[] = {
        { "ping", answer_ping },
        { "status", answer_status },
        { "done", answer_done },
        { "reload", answer_reload },
        { "reload-await", answer_await },
};

int host_open_control(struct host *h)
{
        struct error error = { "" };
        char second[CONTROL_SECOND_MAX];
        uint32_t nonce;
        memcpy(&nonce, h->membership.nonce, sizeof(nonce));
        (void)snprintf(second, sizeof(second), "%.80s-%08" PRIx32, h->config->host.name, nonce);
        struct control_options options = {
                .folder = h->config->state,
                .name = h->config->host.name,
                .second = second,
                .verbs = verbs,
                .verbs_count = sizeof(verbs) / sizeof(verbs[0]),
                .owner = h,
        };
        /* A host works without a control socket, so a failure is only logged. */
        if (control_open(&h->loop, &options, &h->control, &error) < 0)
                log_event(LEVEL_WARN, "control", "text=%s", LOG_QUOTE(error.text));
        else
                log_event(LEVEL_INFO, "control", "socket=%s/%s", h->config->state, control_file(h->control));
        return 0;
}
