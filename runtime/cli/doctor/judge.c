/* judge.c: clocks, certificates, coordination, the app and its hosts. */
#include "cli/doctor/judge.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "view/json.h"
#include "view/text.h"

#define CLOCK_WARNING_MS  1000
#define CLOCK_ERROR_MS    60000
#define DAY_S             UINT64_C(86400)
#define BACKLOG_FULL_PART 0.8
#define SLOW_TREE_NS      UINT64_C(100000000)
#define NTP               "synchronise the clocks (systemd-timesyncd, chrony)"

/* --- clocks --- */

/* Leases and order go by no wall clock; schedules, --at and what people are shown do. */
static void judge_ahead(const char *of, int64_t ahead_ms, uint64_t doubt_ms, struct findings *to)
{
        uint64_t off_ms = (uint64_t)(ahead_ms < 0 ? -ahead_ms : ahead_ms);
        char off[UNITS_TEXT_MAX], doubt[UNITS_TEXT_MAX];
        off_ms = off_ms > doubt_ms ? off_ms - doubt_ms : 0;
        (void)units_format_ms(off, (uint64_t)(ahead_ms < 0 ? -ahead_ms : ahead_ms));
        (void)units_format_ms(doubt, doubt_ms);
        enum finding_level level = off_ms >= CLOCK_ERROR_MS     ? FINDING_ERROR
                                   : off_ms >= CLOCK_WARNING_MS ? FINDING_WARNING
                                                                : FINDING_OK;
        if (level == FINDING_OK)
                findings_add(to, level, SUBJECT_CLOCK, "clock", NULL, "The clock of %s is this machine's within %s.",
                        of, units_format_ms(off, off_ms + doubt_ms + 1));
        else
                findings_add(to, level, SUBJECT_CLOCK, "clock", NTP,
                        "The clock of %s is %s %s this machine's (± %s): schedules and times of tasks are off by that.",
                        of, off, ahead_ms < 0 ? "behind" : "ahead of", doubt);
}

static void judge_clocks_of(const struct doctor_deployment *d, struct findings *to)
{
        char of[300];
        for (size_t i = 0; d->of && i < d->servers_count; i++) {
                if (d->servers[i].doubt_ms == UNKNOWN)
                        continue;
                (void)snprintf(of, sizeof(of), "Redis %s", d->servers[i].server);
                judge_ahead(of, d->servers[i].ahead_ms, d->servers[i].doubt_ms, to);
        }
}

void judge_clock(const struct doctor_figures *figures, struct findings *to)
{
        char of[300];
        const struct doctor_machine *m = &figures->machine;
        findings_add(to, m->is_clock_synchronised ? FINDING_OK : FINDING_NOTE, SUBJECT_CLOCK, "clock-synchronised",
                m->is_clock_synchronised ? NULL : NTP, "This machine's clock is %ssynchronised with others.",
                m->is_clock_synchronised ? "" : "not known to be ");
        judge_clocks_of(&figures->store, to);
        judge_clocks_of(&figures->tree, to);
        if (figures->coordination.doubt_ms != UNKNOWN)
                judge_ahead("etcd", figures->coordination.ahead_ms, figures->coordination.doubt_ms, to);
        for (size_t i = 0; i < figures->app.hosts_count; i++) {
                const struct doctor_host *h = &figures->app.hosts[i];
                (void)snprintf(of, sizeof(of), "host %s", h->name);
                /* A document takes a moment to the store. */
                if (h->has_clock)
                        judge_ahead(of, h->ahead_ms, 250, to);
        }
}

/* --- certificates --- */

void judge_certificates(const struct doctor_certificate *list, size_t count, struct findings *to)
{
        for (size_t i = 0; i < count; i++) {
                const struct doctor_certificate *c = &list[i];
                uint64_t days = c->left_s / DAY_S;
                enum finding_level level = !c->left_s ? FINDING_ERROR : days < 14 ? FINDING_WARNING : FINDING_OK;
                if (c->error.text[0])
                        findings_add(to, FINDING_ERROR, SUBJECT_STORE, "tls",
                                "renew it; hosts read the files again by themselves", "TLS with the %s fails: %s.",
                                c->of, c->error.text);
                else if (!c->left_s)
                        findings_add(to, level, SUBJECT_STORE, "tls",
                                "renew it; hosts read the files again by themselves",
                                "The certificate of the %s has ended.", c->of);
                else
                        findings_add(to, level, SUBJECT_STORE, "tls",
                                level == FINDING_OK ? NULL : "renew it; hosts read the files again by themselves",
                                "The certificates of the %s end in %" PRIu64 " day%s.", c->of, days, text_plural(days));
        }
}

/* --- coordination --- */

static void judge_zookeepers(const struct doctor_coordination *c, struct findings *to)
{
        char took[UNITS_TEXT_MAX];
        size_t away = 0, leading = 0, mute = 0;
        for (size_t i = 0; i < c->zookeepers_count; i++) {
                const struct doctor_zookeeper *z = &c->zookeepers[i];
                away += z->error.text[0] != 0;
                mute += z->is_mute;
                leading += !strcmp(z->mode, "leader") || !strcmp(z->mode, "standalone");
                if (z->error.text[0])
                        findings_add(to, FINDING_WARNING, SUBJECT_COORDINATION, "zookeeper-server", "start it",
                                "ZooKeeper %s does not answer: %s.", z->server, z->error.text);
                else if (!z->is_mute)
                        findings_add(to, FINDING_OK, SUBJECT_COORDINATION, "zookeeper-server", NULL,
                                "ZooKeeper %s at %s is a %s and answers in %s.", z->version, z->server, z->mode,
                                units_format_ns(took, z->round_trip_ns));
        }
        if (mute)
                findings_add(to, FINDING_NOTE, SUBJECT_COORDINATION, "zookeeper-words",
                        "4lw.commands.whitelist=srvr in zoo.cfg lets it say so",
                        "%zu ZooKeeper server%s not say who leads.", mute, mute == 1 ? " does" : "s do");
        else if (c->zookeepers_count && !leading)
                findings_add(to, FINDING_ERROR, SUBJECT_COORDINATION, "zookeeper-leader", "start more of its servers",
                        "No ZooKeeper server leads: %zu of %zu do not answer, and most must.", away,
                        c->zookeepers_count);
        if (c->zookeepers_count == 2)
                findings_add(to, FINDING_NOTE, SUBJECT_COORDINATION, "zookeeper-two", "use one, three or five",
                        "Two ZooKeeper servers stand still when either is away.");
}

static void judge_etcd(const struct doctor_coordination *c, struct findings *to)
{
        char used[UNITS_TEXT_MAX];
        if (c->etcd_alarm[0])
                findings_add(to, FINDING_ERROR, SUBJECT_COORDINATION, "etcd-alarm",
                        "etcdctl alarm list; compact and defragment it, then etcdctl alarm disarm",
                        "etcd has raised an alarm: %s.", c->etcd_alarm);
        if (c->etcd_db_bytes != UNKNOWN && c->etcd_version[0])
                findings_add(to, FINDING_OK, SUBJECT_COORDINATION, "etcd", NULL, "etcd %s has %s of data.",
                        c->etcd_version, units_format_bytes(used, c->etcd_db_bytes));
}

static void judge_session(const struct doctor_coordination *c, struct findings *to)
{
        char session[UNITS_TEXT_MAX], wanted[UNITS_TEXT_MAX], took[UNITS_TEXT_MAX];
        (void)units_format_ms(session, c->session_ms);
        (void)units_format_ms(wanted, c->wanted_ms);
        if (c->session_ms && c->session_ms != c->wanted_ms)
                findings_add(to, c->session_ms > 2 * c->wanted_ms ? FINDING_WARNING : FINDING_NOTE,
                        SUBJECT_COORDINATION, "session",
                        "coordination.session, or tickTime of ZooKeeper (2 to 20 of them), or --election-timeout of "
                        "etcd",
                        "The coordination grants sessions of %s, not %s: a lost machine is noticed after that.",
                        session, wanted);
        else if (c->session_ms)
                findings_add(to, FINDING_OK, SUBJECT_COORDINATION, "session", NULL, "Sessions last %s, as asked for.",
                        session);
        if (c->round_trip_ns == UNKNOWN)
                return;
        bool is_slow = c->round_trip_ns >= SLOW_TREE_NS;
        findings_add(to, is_slow ? FINDING_WARNING : FINDING_OK, SUBJECT_COORDINATION, "coordination-round-trip",
                is_slow ? "see the machine and the disk of its servers" : NULL,
                "A round trip to the coordination takes %s.", units_format_ns(took, c->round_trip_ns));
}

void judge_coordination(const struct doctor_coordination *c, struct findings *to)
{
        if (!c->driver)
                return;
        if (c->is_missing) {
                findings_add(to, FINDING_NOTE, SUBJECT_COORDINATION, "coordination-answers", "quiver run",
                        "The coordination %s is not there yet: the first host makes it.", c->url);
                return;
        }
        if (c->status < 0)
                findings_add(to, FINDING_ERROR, SUBJECT_COORDINATION, "coordination-answers",
                        !strcmp(c->driver, "local")
                                ? "run quiver doctor as the user of the host, or correct coordination.url"
                                : "start it, or correct coordination.url, user and password_file",
                        "The coordination %s cannot be used: %s.", c->url, c->error.text);
        else
                judge_session(c, to);
        judge_zookeepers(c, to);
        judge_etcd(c, to);
        if (c->status == 0 && c->members && !c->has_leader)
                findings_add(to, FINDING_WARNING, SUBJECT_HOSTS, "leader", "quiver members --watch",
                        "No host leads: shards of a lost host are not given to others until one does.");
        if (c->status == 0 && c->members > c->hosts_alive && c->hosts_alive != UNKNOWN)
                findings_add(to, FINDING_WARNING, SUBJECT_HOSTS, "silent-members", "quiver members",
                        "%zu of %zu members have written nothing to the store.", c->members - c->hosts_alive,
                        c->members);
}

/* --- the app and its hosts --- */

static void judge_hosts(const struct doctor_app *app, struct findings *to)
{
        char silent[UNITS_TEXT_MAX];
        bool differ = false;
        for (size_t i = 0; i < app->hosts_count; i++) {
                const struct doctor_host *h = &app->hosts[i];
                differ |= strcmp(h->version, app->hosts[0].version) != 0;
                if (h->silent_ms > 2 * h->refresh_ms)
                        findings_add(to, FINDING_WARNING, SUBJECT_HOSTS, "silent", "see its log and its machine",
                                "Host %s on %s has said nothing for %s.", h->name, h->machine,
                                units_format_ms(silent, h->silent_ms));
        }
        if (differ)
                findings_add(to, FINDING_NOTE, SUBJECT_HOSTS, "versions", "bring the others up to date",
                        "Hosts have different versions: %s has %s, %s has %s.", app->hosts[0].name,
                        app->hosts[0].version, app->hosts[app->hosts_count - 1].name,
                        app->hosts[app->hosts_count - 1].version);
        else if (app->hosts_count)
                findings_add(to, FINDING_OK, SUBJECT_HOSTS, "versions", NULL, "%zu host%s, all of version %s.",
                        app->hosts_count, text_plural(app->hosts_count), app->hosts[0].version);
}

void judge_app(const struct doctor_app *app, struct findings *to)
{
        if (!strcmp(app->synchronous, "normal"))
                findings_add(to, FINDING_NOTE, SUBJECT_STORE, "sqlite-synchronous", "store.synchronous = \"full\"",
                        "SQLite does not wait for the disk (store.synchronous is \"normal\"): a power cut may lose the "
                        "last moments.");
        if (app->is_missing) {
                findings_add(to, FINDING_NOTE, SUBJECT_APP, "store", "quiver run", "No task can be submitted: %s.",
                        app->error.text);
                return;
        }
        if (!app->is_open) {
                findings_add(to, FINDING_ERROR, SUBJECT_APP, "store", "correct what is said above; then quiver status",
                        "The store cannot be opened: %s.", app->error.text);
                return;
        }
        findings_add(to, FINDING_OK, SUBJECT_APP, "record", NULL,
                "The app has %" PRIu64 " shards, its records the layout %" PRIu64 ".", app->shards, app->schema);
        if (app->features_off.count) {
                struct buffer names = { 0 };
                for (size_t i = 0; i < app->features_off.count; i++)
                        buffer_printf(&names, "%s%s", i ? ", " : "", app->features_off.items[i]);
                findings_add(to, FINDING_NOTE, SUBJECT_APP, "features", "quiver app upgrade", "Not switched on: %s.",
                        buffer_text(&names));
                buffer_free(&names);
        }
        if (app->backlog_max) {
                double part = (double)app->fullest / (double)app->backlog_max;
                findings_add(to,
                        part >= 1                   ? FINDING_ERROR
                        : part >= BACKLOG_FULL_PART ? FINDING_WARNING
                                                    : FINDING_OK,
                        SUBJECT_APP, "backlog",
                        part >= BACKLOG_FULL_PART ? "more hosts or seats; or raise store.backlog_max" : NULL,
                        "The fullest shard, %" PRIu64 ", has %" PRIu64 " of %" PRIu64 " tasks (%.0f %%).",
                        app->fullest_shard, app->fullest, app->backlog_max, part * 100);
        }
        judge_hosts(app, to);
}

/* What needs nobody's help is a note. */
static enum finding_level level_of(const json_t *problem)
{
        static const char *const harmless[] = { "parked", "paused", "limited" };
        const char *kind = view_json_get_text(problem, "kind");
        if (!strcmp(view_json_get_text(problem, "level"), "bad"))
                return FINDING_ERROR;
        for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++)
                if (!strcmp(kind, harmless[i]))
                        return FINDING_NOTE;
        return FINDING_WARNING;
}

void judge_problems(const json_t *problems, struct findings *to)
{
        size_t i;
        const json_t *problem;
        json_array_foreach(problems, i, problem)
        {
                findings_add(to, level_of(problem), SUBJECT_APP, "status", view_json_get_text(problem, "command"), "%s",
                        view_json_get_text(problem, "text"));
        }
        if (!json_array_size(problems))
                findings_add(to, FINDING_OK, SUBJECT_APP, "status", NULL, "quiver status has no complaint.");
}

void doctor_judge(const struct doctor_figures *figures, struct findings *to)
{
        judge_clock(figures, to);
        judge_deployment(&figures->store, to);
        judge_certificates(figures->certificates, figures->certificates_count, to);
        judge_deployment(&figures->tree, to);
        judge_coordination(&figures->coordination, to);
        judge_app(&figures->app, to);
        judge_files(&figures->files, to);
        judge_machine(&figures->machine, to);
}
