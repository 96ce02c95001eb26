/* vet_init.c: does it load, does init like its settings, and what do init and close leave behind? */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include <quiver/plugin.h>

#include "base/log.h"
#include "base/units.h"
#include "cli/try/try.h"
#include "cli/vet/vet.h"

#define CLOSE_MS      UINT64_C(5000)
#define SLOW_INITS    8 /* that a rehearsal may need beyond its time: it always does a few */
#define NAME_MAX_SIZE 64

void vet_start(const struct vet_request *request, uint32_t seats, uint32_t batch_max, struct runner_start *ret)
{
        *ret = (struct runner_start){
                .has_all_variables = true,
                .handler = request->handler,
                .plugin = request->copy.path,
                .label = request->copy.label,
                .seats = seats,
                .batch_max = batch_max,
                .leases = 1,
                .log_level = LEVEL_ERROR,
                .log_rate = 100,
                .result_max = VET_PAYLOAD_MAX,
                .payload_max = VET_PAYLOAD_MAX,
                .can_call = 1u << SERVICE_NEXT_ID | 1u << SERVICE_TRYLOCK | 1u << SERVICE_UNLOCK,
                .user = "",
                .settings = request->settings.items,
                .settings_count = request->settings.count,
        };
}

static int on_call(void *owner, enum ring_service service, uint64_t holder, const char *name, uint64_t *number)
{
        return try_services_call(owner, service, holder, name, number);
}

static void probe(const struct runner_start *start, uint64_t init_ms, struct plugin_report *ret)
{
        struct try_services *services = try_services_new();
        struct plugin_probe_request request = {
                .start = start, .init_ms = init_ms, .close_ms = CLOSE_MS, .call = on_call, .owner = services
        };
        plugin_probe_run(&request, ret);
        try_services_free(services);
}

/* What a handler in runtime.cfg may be called: a plugin that is called otherwise confuses whoever reads both. */
static bool is_good_name(const char *name)
{
        size_t n = strlen(name);
        if (!isalpha((unsigned char)*name) || n > NAME_MAX_SIZE)
                return false;
        for (size_t i = 1; i < n; i++)
                if (!isalnum((unsigned char)name[i]) && name[i] != '_' && name[i] != '-')
                        return false;
        return true;
}

static void check_table(const struct plugin_report *p, struct vet_report *report)
{
        if (!is_good_name(p->name))
                vet_find(report, VET_WARNING, "name", "letters, digits, - and _, at most 64, a letter first",
                        "\"%s\" is not a name that a handler could have", p->name);
        if (!*p->version)
                vet_find(report, VET_WARNING, "version",
                        "give QV_PLUGIN() one: it is how status tells the generations apart", "it has none");
        if (p->flags & ~QV_THREADS)
                vet_find(report, VET_WARNING, "flags", "use the QV_… constants of plugin.h only",
                        "flags is 0x%" PRIx32 ": bits that have no meaning here", p->flags);
}

static void check_settings(const struct vet_request *request, const struct plugin_report *p, struct vet_report *report)
{
        if (*p->unread)
                vet_find(report, VET_WARNING, "settings",
                        "misspelt?  What a plugin knows it should read in init, whether it needs it or not",
                        "init never read: %s", p->unread);
        else if (request->settings.count)
                vet_find(report, VET_OK, "settings", NULL, "init read all %zu", request->settings.count);
        else
                vet_find(report, VET_NOTE, "settings", "--set NAME=VALUE or --config FILE gives it some",
                        "it was given none, so none was checked");
}

/* One thing that grew, told per repetition. */
static void report_leak(
        const struct rehearsal *r, uint64_t left, const char *what, const char *hint, struct vet_report *report)
{
        if (left)
                vet_find(report, VET_ERROR, "init/close", hint,
                        "%" PRIu32 " times init and close left %" PRIu64 " %s behind: %.3g each time", r->count, left,
                        what, (double)left / r->count);
}

static void rehearse(const struct vet_request *request, struct vet_report *report)
{
        struct runner_start start;
        struct plugin_report p;
        vet_start(request, 1, 1, &start);
        start.rehearsals = request->rehearsals;
        probe(&start, REHEARSAL_MS + SLOW_INITS * request->init_ms, &p);
        if (!p.is_whole) {
                vet_find(report, VET_ERROR, "init/close",
                        "a runner does it once, but init and close of several seats share one process",
                        "one after the other, many times: %s", p.error);
                return;
        }
        const struct rehearsal *r = &p.rehearsal;
        report_leak(r, r->bytes, "bytes", "free in close what init allocated; valgrind quiver try --here says where",
                report);
        report_leak(r, r->descriptors, "descriptors", "close in close() what init opened", report);
        report_leak(r, r->threads, "threads", "tell them to end in close(), and join them", report);
        if (!r->bytes && !r->descriptors && !r->threads)
                vet_find(report, VET_OK, "init/close", NULL,
                        "%" PRIu32 " times: no memory, descriptor or thread left behind", r->count);
}

bool vet_init(const struct vet_request *request, struct plugin_report *ret_probe, struct vet_report *report)
{
        struct runner_start start;
        vet_start(request, 1, 1, &start);
        probe(&start, request->init_ms, ret_probe);
        if (!ret_probe->is_ready) {
                vet_find(report, VET_ERROR, "load", NULL, "%s", ret_probe->error);
                return false;
        }
        vet_find(report, VET_OK, "load", NULL, "%s %s, its table is fine and init succeeds%s%s", ret_probe->name,
                *ret_probe->version ? ret_probe->version : "(no version)",
                ret_probe->flags & QV_THREADS ? ", QV_THREADS" : "", ret_probe->has_many ? ", handle_many" : "");
        check_table(ret_probe, report);
        check_settings(request, ret_probe, report);
        if (!ret_probe->is_whole) {
                vet_find(report, VET_ERROR, "close", NULL, "%s", ret_probe->error);
                return true;
        }
        rehearse(request, report);
        return true;
}
