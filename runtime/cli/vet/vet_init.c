/* vet_init.c: does it load, does init like its settings, and what do init and close leave behind? */
#include <inttypes.h>
#include <string.h>

#include <quiver/plugin.h>

#include "cli/vet/vet.h"
#include "task/envelope.h"

#define CLOSE_MS      UINT64_C(5000)
#define SLOW_INITS    8 /* that a rehearsal may need beyond its time: it always does a few */
#define REPEATS       100
#define REPEATS_QUICK 20

static void check_table(const struct plugin_report *p, struct vet_report *report)
{
        /* A plugin whose name no handler could have confuses whoever reads runtime.cfg and the log. */
        if (task_handler_check((struct span){ p->name, strlen(p->name) }, NULL) < 0)
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
        else if (request->args.settings.count)
                vet_find(report, VET_OK, "settings", NULL, "init read all %zu", request->args.settings.count);
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

/* They run before anything of the plugin is checked, in `quiver check` and at each reload too. */
static void check_constructors(const struct rehearsal *r, struct vet_report *report)
{
        const char *hint =
                "do it in load() or init(): constructors run before anything is checked, and cannot say that "
                "they failed";
        if (r->constructor_bytes)
                vet_find(report, VET_WARNING, "constructor", hint, "its constructors print: %" PRIu64 " bytes",
                        r->constructor_bytes);
        if (r->constructor_threads)
                vet_find(report, VET_WARNING, "constructor", hint, "its constructors start %" PRIu32 " thread%s",
                        r->constructor_threads, r->constructor_threads == 1 ? "" : "s");
}

static void rehearse(struct vet_request *request, struct vet_report *report)
{
        struct plugin_session *session = &request->session;
        struct plugin_report p;
        session->start.rehearsals = request->is_quick ? REPEATS_QUICK : REPEATS;
        plugin_session_probe(session, REHEARSAL_MS + SLOW_INITS * request->init_ms, CLOSE_MS, &p);
        session->start.rehearsals = 0;
        if (!p.is_whole) {
                vet_find(report, VET_ERROR, "init/close",
                        "a runner does it once, but init and close of several seats share one process",
                        "one after the other, many times: %s", p.error);
                return;
        }
        const struct rehearsal *r = &p.rehearsal;
        check_constructors(r, report);
        report_leak(r, r->bytes, "bytes", "free in close what init allocated; valgrind quiver try --here says where",
                report);
        report_leak(r, r->descriptors, "descriptors", "close in close() what init opened", report);
        report_leak(r, r->threads, "threads", "tell them to end in close(), and join them", report);
        if (!r->bytes && !r->descriptors && !r->threads)
                vet_find(report, VET_OK, "init/close", NULL,
                        "%" PRIu32 " times: no memory, descriptor or thread left behind", r->count);
}

bool vet_init(struct vet_request *request, struct plugin_report *ret_probe, struct vet_report *report)
{
        plugin_session_probe(&request->session, request->init_ms, CLOSE_MS, ret_probe);
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
