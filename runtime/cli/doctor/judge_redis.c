/* judge_redis.c: the settings and the state of Redis servers. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "cli/doctor/judge.h"
#include "view/text.h"

#define SLOW_ROUND_TRIP_NS UINT64_C(20000000) /* an advance of a hot key takes several of them */
#define CLIENTS_FULL_PART  0.8
#define MEMORY_FULL_PART   0.75
#define MEMORY_OVER_PART   0.95
#define NAMES_SHOWN        6

struct judged_server {
        const struct doctor_redis *r;
        enum finding_subject subject;
        struct findings *to;
};

#define SAY(s, level, check, advice, ...) findings_add((s)->to, level, (s)->subject, check, advice, __VA_ARGS__)

static void judge_version(const struct judged_server *s)
{
        const struct doctor_redis *r = s->r;
        SAY(s, FINDING_OK, "redis-version", NULL, "Redis %s at %s is a %s.", r->version[0] ? r->version : "(unknown)",
                r->server, r->role[0] ? r->role : "server");
}

/* What a crash loses. */
static void judge_persistence(const struct judged_server *s)
{
        const struct doctor_redis *r = s->r;
        static const char on[] = "redis-cli CONFIG SET appendonly yes, and \"appendonly yes\" in redis.conf";
        if (!r->appendonly[0]) {
                SAY(s, FINDING_NOTE, "redis-persistence", "ask whoever runs it for appendonly and appendfsync",
                        "%s does not say what it keeps over a crash.", r->server);
        } else if (!strcmp(r->appendonly, "no") && r->has_save && !r->save[0]) {
                SAY(s, FINDING_ERROR, "redis-persistence", on,
                        "%s keeps nothing on disk (appendonly no, save \"\"): a crash or restart loses every task.",
                        r->server);
        } else if (!strcmp(r->appendonly, "no")) {
                SAY(s, FINDING_WARNING, "redis-persistence", on,
                        "%s writes snapshots only (appendonly no%s%s): a crash loses every task since the last one.",
                        r->server, r->has_save ? ", save " : "", r->save);
        } else if (!strcmp(r->appendfsync, "no")) {
                SAY(s, FINDING_WARNING, "redis-persistence",
                        "redis-cli CONFIG SET appendfsync everysec, and the same in redis.conf",
                        "%s leaves writing to the kernel (appendfsync no): a crash of the machine loses about 30 s.",
                        r->server);
        } else if (!strcmp(r->appendfsync, "everysec")) {
                SAY(s, FINDING_OK, "redis-persistence", NULL,
                        "%s writes each second (appendfsync everysec): a crash loses 2 s at most.", r->server);
        } else {
                SAY(s, FINDING_OK, "redis-persistence", NULL, "%s keeps what it took (appendonly yes, appendfsync %s).",
                        r->server, r->appendfsync[0] ? r->appendfsync : "unknown");
        }
        if (!strcmp(r->aof_status, "err"))
                SAY(s, FINDING_ERROR, "redis-writes", "see the log of Redis; mostly its disk is full",
                        "%s failed to write its append-only file.", r->server);
        if (!strcmp(r->rdb_status, "err"))
                SAY(s, FINDING_ERROR, "redis-writes",
                        "see the log of Redis: its disk is full, or vm.overcommit_memory is 0 there",
                        "%s failed to write its last snapshot.", r->server);
}

static void judge_eviction(const struct judged_server *s)
{
        const struct doctor_redis *r = s->r;
        static const char set[] = "redis-cli CONFIG SET maxmemory-policy noeviction, and the same in redis.conf";
        if (!strncmp(r->policy, "allkeys", 7))
                SAY(s, FINDING_ERROR, "redis-eviction", set,
                        "%s throws tasks away when memory is short (maxmemory-policy %s): hosts refuse it.", r->server,
                        r->policy);
        else if (!strncmp(r->policy, "volatile", 8))
                SAY(s, FINDING_WARNING, "redis-eviction", set,
                        "%s may throw replies and unique marks away early (maxmemory-policy %s).", r->server,
                        r->policy);
        else if (r->policy[0])
                SAY(s, FINDING_OK, "redis-eviction", NULL, "%s evicts nothing (maxmemory-policy %s).", r->server,
                        r->policy);
        if (r->evicted && r->evicted != UNKNOWN)
                SAY(s, FINDING_ERROR, "redis-evicted", "quiver fsck",
                        "%s has thrown %" PRIu64 " key%s away since it was started; some may have been tasks.",
                        r->server, r->evicted, text_plural(r->evicted));
}

static void judge_memory(const struct judged_server *s)
{
        const struct doctor_redis *r = s->r;
        char used[UNITS_TEXT_MAX], most[UNITS_TEXT_MAX];
        if (r->used_bytes == UNKNOWN || r->maxmemory_bytes == UNKNOWN)
                return;
        uint64_t limit = r->maxmemory_bytes ? r->maxmemory_bytes : r->system_bytes;
        (void)units_format_bytes(used, r->used_bytes);
        if (!limit || limit == UNKNOWN) {
                SAY(s, FINDING_OK, "redis-memory", NULL, "%s uses %s; it has no limit.", r->server, used);
                return;
        }
        double part = (double)r->used_bytes / (double)limit;
        (void)units_format_bytes(most, limit);
        const char *of = r->maxmemory_bytes ? "maxmemory" : "its machine's memory";
        const char *advice = "work the backlog off, or raise maxmemory";
        if (part >= MEMORY_OVER_PART)
                SAY(s, FINDING_ERROR, "redis-memory", advice,
                        "%s is full: %s of %s %s (%.0f %%); submits are refused or about to be.", r->server, used, most,
                        of, part * 100);
        else if (part >= MEMORY_FULL_PART)
                SAY(s, FINDING_WARNING, "redis-memory", advice, "%s uses %s of %s %s (%.0f %%).", r->server, used, most,
                        of, part * 100);
        else
                SAY(s, FINDING_OK, "redis-memory", NULL, "%s uses %s of %s %s (%.0f %%).", r->server, used, most, of,
                        part * 100);
        if (!r->maxmemory_bytes)
                SAY(s, FINDING_NOTE, "redis-maxmemory",
                        "redis-cli CONFIG SET maxmemory SIZE, so that submits are refused before the kernel kills it",
                        "%s has no maxmemory: a backlog can grow until its machine is out of memory.", r->server);
}

static void judge_replicas(const struct judged_server *s)
{
        const struct doctor_redis *r = s->r;
        if (r->replicas == UNKNOWN)
                return;
        if (r->replicas_online != UNKNOWN && r->replicas_online < r->replicas)
                SAY(s, FINDING_WARNING, "redis-replicas", "see the logs of the replicas",
                        "%s has %" PRIu64 " replica%s, of which %" PRIu64 " follow.", r->server, r->replicas,
                        text_plural(r->replicas), r->replicas_online);
        else
                SAY(s, FINDING_OK, "redis-replicas", NULL, "%s has %" PRIu64 " replica%s.", r->server, r->replicas,
                        text_plural(r->replicas));
        if (r->replicas_wanted != UNKNOWN && r->replicas_wanted > r->replicas)
                SAY(s, FINDING_ERROR, "redis-min-replicas", "bring replicas back, or lower min-replicas-to-write",
                        "%s takes no writes: min-replicas-to-write is %" PRIu64 ", and %" PRIu64 " follow.", r->server,
                        r->replicas_wanted, r->replicas);
}

static void judge_clients(const struct judged_server *s)
{
        const struct doctor_redis *r = s->r;
        if (r->clients != UNKNOWN && r->clients_max != UNKNOWN && r->clients_max) {
                bool is_full = (double)r->clients >= CLIENTS_FULL_PART * (double)r->clients_max;
                SAY(s, is_full ? FINDING_WARNING : FINDING_OK, "redis-clients",
                        is_full ? "redis-cli CONFIG SET maxclients N, and its limit of open files" : NULL,
                        "%s has %" PRIu64 " of %" PRIu64 " clients.", r->server, r->clients, r->clients_max);
        }
        if (r->clients_refused && r->clients_refused != UNKNOWN)
                SAY(s, FINDING_WARNING, "redis-refused", "redis-cli CONFIG SET maxclients N",
                        "%s has refused %" PRIu64 " connection%s since it was started: maxclients was reached.",
                        r->server, r->clients_refused, text_plural(r->clients_refused));
        if (r->timeout_s == UNKNOWN)
                return;
        if (r->timeout_s)
                SAY(s, FINDING_WARNING, "redis-timeout", "redis-cli CONFIG SET timeout 0, and the same in redis.conf",
                        "%s closes connections that are idle for %" PRIu64 " s: quiet hosts connect again and again.",
                        r->server, r->timeout_s);
        else
                SAY(s, FINDING_OK, "redis-timeout", NULL, "%s closes no idle connections.", r->server);
}

static void judge_speed(const struct judged_server *s)
{
        const struct doctor_redis *r = s->r;
        char took[UNITS_TEXT_MAX], slow[UNITS_TEXT_MAX];
        if (r->round_trip_ns != UNKNOWN) {
                bool is_slow = r->round_trip_ns >= SLOW_ROUND_TRIP_NS;
                SAY(s, is_slow ? FINDING_WARNING : FINDING_OK, "redis-round-trip",
                        is_slow ? "run hosts near the Redis; redis-cli --latency" : NULL,
                        "A round trip to %s takes %s.", r->server, units_format_ns(took, r->round_trip_ns));
        }
        if (r->slow_commands == UNKNOWN)
                return;
        if (r->slow_commands && r->slower_than_us != UNKNOWN)
                SAY(s, FINDING_NOTE, "redis-slow-log", "redis-cli SLOWLOG GET 10",
                        "%s remembers %" PRIu64 " command%s that took longer than %s.", r->server, r->slow_commands,
                        text_plural(r->slow_commands), units_format_ns(slow, r->slower_than_us * 1000));
        else if (!r->slow_commands)
                SAY(s, FINDING_OK, "redis-slow-log", NULL, "%s remembers no slow command.", r->server);
}

/* Whether every address in "127.0.0.1 -::1" is this machine's own. */
static bool is_bound_here(const char *bind)
{
        char word[64];
        int used;
        bool has_one = false;
        for (const char *at = bind; sscanf(at, "%63s%n", word, &used) == 1; at += used) {
                const char *address = word + (word[0] == '-');
                has_one = true;
                if (strncmp(address, "127.", 4) != 0 && strcmp(address, "::1") != 0 &&
                        strcmp(address, "localhost") != 0)
                        return false;
        }
        return has_one;
}

static void judge_password(const struct judged_server *s)
{
        const struct doctor_redis *r = s->r;
        static const char advice[] = "quiver check --acl prints the users to make; then store.user and "
                                     "store.password_file";
        if (r->has_login)
                SAY(s, FINDING_OK, "redis-password", NULL, "%s was logged in to with a password.", r->server);
        else if (!r->is_loopback)
                SAY(s, FINDING_ERROR, "redis-password", advice,
                        "%s takes commands from the network without a password.", r->server);
        else if (!strcmp(r->protected_mode, "no") && !is_bound_here(r->bind))
                SAY(s, FINDING_ERROR, "redis-password", advice,
                        "%s is open to everybody: no password, protected-mode no, bind %s.", r->server,
                        r->bind[0] ? r->bind : "(all addresses)");
        else
                SAY(s, FINDING_NOTE, "redis-password", advice,
                        "%s needs no password: every user of its machine can read and change tasks.", r->server);
}

static void put_names(char *to, size_t size, const struct strings *names)
{
        size_t used = 0;
        *to = 0;
        for (size_t i = 0; i < names->count && i < NAMES_SHOWN && used < size; i++)
                used += (size_t)snprintf(to + used, size - used, "%s%s", i ? ", " : "", names->items[i]);
        if (names->count > NAMES_SHOWN && used < size)
                (void)snprintf(to + used, size - used, " and %zu more", names->count - NAMES_SHOWN);
}

static void judge_server(const struct judged_server *s)
{
        char names[512];
        judge_version(s);
        judge_persistence(s);
        judge_eviction(s);
        judge_memory(s);
        judge_replicas(s);
        judge_clients(s);
        judge_speed(s);
        judge_password(s);
        if (!s->r->untold.count)
                return;
        put_names(names, sizeof(names), &s->r->untold);
        SAY(s, FINDING_NOTE, "redis-untold", "run quiver doctor as a user that may use them (store.user)",
                "%s did not answer %s, so that was not looked at.", s->r->server, names);
}

/* --- all servers --- */

static void judge_rights(const struct doctor_deployment *d, enum finding_subject subject, struct findings *to)
{
        char names[512];
        const char *user = d->user ? d->user : "default";
        static const char advice[] = "quiver check --acl prints the ACL line of each role";
        if (!d->host.is_known)
                return;
        put_names(names, sizeof(names), &d->host.lacking);
        if (!d->host.lacking.count)
                findings_add(to, FINDING_OK, subject, "redis-rights", NULL, "The user %s may do all that a host needs.",
                        user);
        else if (d->operator.is_known && !d->operator.lacking.count)
                findings_add(to, FINDING_NOTE, subject, "redis-rights", advice,
                        "The user %s may do all that commands need, and not all that a host does: it lacks %s.", user,
                        names);
        else
                findings_add(to, FINDING_ERROR, subject, "redis-rights", advice,
                        "The user %s lacks rights that a host needs: %s.", user, names);
}

static void judge_cluster(const struct doctor_deployment *d, enum finding_subject subject, struct findings *to)
{
        if (!d->cluster_state[0])
                return;
        bool is_whole = !strcmp(d->cluster_state, "ok") && d->slots_assigned == 16384 && !d->slots_failed;
        findings_add(to, is_whole ? FINDING_OK : FINDING_ERROR, subject, "redis-cluster",
                is_whole ? NULL : "redis-cli --cluster check HOST:PORT",
                "The Cluster is %s: %" PRIu64 " of 16384 slots have a server, %" PRIu64 " of them failing.",
                d->cluster_state, d->slots_assigned, d->slots_failed);
        if (d->masters_alone)
                findings_add(to, FINDING_WARNING, subject, "redis-cluster-replicas",
                        "redis-cli --cluster add-node NEW EXISTING --cluster-slave",
                        "%" PRIu64 " of %zu masters %s no replica: its tasks wait while it is away.", d->masters_alone,
                        d->servers_count, d->masters_alone == 1 ? "has" : "have");
}

static void judge_sentinels(const struct doctor_deployment *d, enum finding_subject subject, struct findings *to)
{
        if (!d->sentinels)
                return;
        if (!d->sentinels_answered && d->sentinel_error[0])
                findings_add(to, FINDING_NOTE, subject, "redis-sentinels", NULL,
                        "The Sentinels were not looked at: %s.", d->sentinel_error);
        else
                findings_add(to, d->sentinels_answered < d->sentinels ? FINDING_WARNING : FINDING_OK, subject,
                        "redis-sentinels", d->sentinels_answered < d->sentinels ? "start the others" : NULL,
                        "%" PRIu64 " of %" PRIu64 " Sentinels answer%s%s.", d->sentinels_answered, d->sentinels,
                        d->sentinel_error[0] ? "; " : "", d->sentinel_error);
        if (d->sentinels_answered && d->quorum != UNKNOWN && d->sentinels_answered < d->quorum)
                findings_add(to, FINDING_ERROR, subject, "redis-quorum", "start the other Sentinels",
                        "%" PRIu64 " Sentinels answer, and %" PRIu64 " must agree: nobody would replace the master.",
                        d->sentinels_answered, d->quorum);
        if (d->sentinel_flags[0] && strcmp(d->sentinel_flags, "master") != 0)
                findings_add(to, FINDING_ERROR, subject, "redis-master", "see the logs of the Sentinels",
                        "The Sentinels say of the master: %s.", d->sentinel_flags);
}

void judge_deployment(const struct doctor_deployment *d, struct findings *to)
{
        if (!d->of)
                return;
        enum finding_subject subject = strcmp(d->of, "store") == 0 ? SUBJECT_STORE : SUBJECT_COORDINATION;
        if (d->status < 0) {
                findings_add(to, FINDING_ERROR, subject, "redis-answers",
                        "start it, or correct the settings url, user, password_file and tls",
                        "The Redis of the %s cannot be used: %s.", d->of, d->error.text);
                judge_sentinels(d, subject, to);
                return;
        }
        judge_cluster(d, subject, to);
        judge_sentinels(d, subject, to);
        judge_rights(d, subject, to);
        for (size_t i = 0; i < d->servers_count; i++)
                judge_server(&(struct judged_server){ .r = &d->servers[i], .subject = subject, .to = to });
}
