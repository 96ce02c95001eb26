/* scale: what a large fleet costs the coordination, and how soon it has settled; see scale.h.
 *
 *         scale [HOSTS [SHARDS]]       60 hosts, 512 shards; make scale: 1000 and 4096
 *
 * Prints a line for each event: how long until every host had read the last assignment, what that took, and the same as
 * bytes on the wire of each kind of server.  Exit 1: the fleet did not settle, or what was sent is past a bound. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "scale.h"

#define LOOK_NS    (10 * NS_PER_MS)
#define PATIENCE_S 600u

static uint32_t shards;
static bool has_failed;

/* --- what it would be on the wire ------------------------------------------------------------------------------------
 *
 * What a request with its answer takes beside the data, and what a heartbeat takes, in bytes both ways, as measured by
 * tests/scale/measure.py; what a notice takes, by the protocols; and by how much base64 makes data longer. */
static const struct wire {
        const char *name;
        uint32_t request, notice, beat;
        uint32_t data_percent;
        bool has_stream; /* every change goes to every host */
} wires[] = {
        { "zookeeper", 600, 90, 160, 100, false },
        { "redis", 450, 110, 890, 100, false },
        { "etcd", 4000, 0, 1190, 134, true },
};
#define WIRES (sizeof(wires) / sizeof(wires[0]))

static uint64_t count_alive(void)
{
        uint64_t alive = 0;
        for (uint32_t i = 0; i < scale_hosts_count; i++)
                alive += scale_hosts[i].is_alive;
        return alive;
}

static double on_wire(const struct wire *w, const struct scale_counts *c, uint64_t ns)
{
        double alive = (double)count_alive();
        double beats = alive * (double)ns / NS_PER_MS / (SCALE_SESSION_MS / 3.0);
        double bytes = (double)(c->bytes_in + c->bytes_out) * w->data_percent / 100;
        bytes += (double)(c->reads + c->writes + c->lists) * w->request + beats * w->beat;
        if (w->has_stream)
                bytes += alive * ((double)c->stream_bytes * w->data_percent / 100 + (double)c->stream_events * 250);
        else
                bytes += (double)c->notices * w->notice;
        return bytes;
}

/* --- events --- */

static double cpu_s(void)
{
        struct rusage usage;
        (void)getrusage(RUSAGE_SELF, &usage);
        return (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec / 1e6;
}

static uint64_t begun_ns;
static double begun_cpu_s;

static void begin(void)
{
        scale_counts = (struct scale_counts){ 0 };
        begun_ns = scale_now_ns;
        begun_cpu_s = cpu_s();
}

static void report(const char *what)
{
        const struct scale_counts *c = &scale_counts;
        uint64_t ns = scale_now_ns - begun_ns;
        (void)printf("%-34s %7.2f s  %4" PRIu64 " documents  %5" PRIu64 " moves  %6" PRIu64 " reads  %5" PRIu64
                     " writes  %5" PRIu64 " lists  %6" PRIu64
                     " notices  %8.1f MB sent, %6.1f MB asked for in a second ",
                what, (double)ns / NS_PER_S, c->documents, c->moves, c->reads, c->writes, c->lists, c->notices,
                (double)c->bytes_out / 1e6, (double)c->peak_bytes / 1e6);
        for (size_t i = 0; i < WIRES; i++)
                (void)printf(" %s %.1f", wires[i].name, on_wire(&wires[i], c, ns) / 1e6);
        (void)printf(" MB  (%.1f s of processor time)\n", cpu_s() - begun_cpu_s);
        (void)fflush(stdout);
}

/* Runs until all is settled and stays so for a second. */
static void settle(const char *what, uint64_t alive)
{
        uint64_t until_ns = scale_now_ns + PATIENCE_S * NS_PER_S, settled_ns = 0;
        struct scale_counts counts = { 0 };
        while (scale_now_ns < until_ns && (!settled_ns || scale_now_ns < settled_ns + NS_PER_S)) {
                scale_run_until(scale_now_ns + LOOK_NS);
                bool is_stable = count_alive() == alive && scale_is_stable();
                if (is_stable && !settled_ns)
                        counts = scale_counts;
                settled_ns = !is_stable ? 0 : settled_ns ? settled_ns : scale_now_ns;
        }
        if (!settled_ns) {
                (void)fprintf(stderr, "%s: not settled after %u s\n", what, PATIENCE_S);
                exit(1);
        }
        uint64_t now_ns = scale_now_ns;
        scale_now_ns = settled_ns;
        scale_counts = counts;
        report(what);
        scale_now_ns = now_ns;
}

static void on_start(void *arg)
{
        scale_host_start(arg, shards);
}

static void on_leave(void *arg)
{
        scale_host_leave(arg);
}

/* Starts those that do not run, spread over a time. */
static void start_all(uint32_t first, uint32_t count, uint64_t within_ns)
{
        for (uint32_t i = first; i < first + count; i++)
                scale_at(within_ns * (i - first) / count, on_start, &scale_hosts[i]);
}

/* The first get shards while others still come: there is always one that does.  Even if requests fail at first. */
static void check_first(void)
{
        scale_failing = 3;
        scale_run_until(scale_now_ns + 3 * NS_PER_S);
        if (!scale_counts.documents) {
                (void)fprintf(stderr, "no shard is assigned 3 s after the first host has come\n");
                has_failed = true;
        }
}

static void stay_calm(void)
{
        begin();
        scale_run_until(scale_now_ns + 300 * NS_PER_S);
        report("five minutes in which nothing happens");
        /* Every host tells its load once; what follows is noise, and costs nothing. */
        if (scale_counts.writes > 2 * count_alive()) {
                (void)fprintf(stderr, "%" PRIu64 " writes while nothing happens\n", scale_counts.writes);
                has_failed = true;
        }
}

static void check_counts(void)
{
        const struct scale_host *leader = scale_host_leader();
        const struct assignment *a = &leader->membership.assigner.current;
        uint32_t *owned = memory_zero(a->owners_count, sizeof(*owned));
        uint32_t most = 0, least = UINT32_MAX;
        for (uint32_t i = 0; i < a->shards_count; i++)
                owned[a->slots[i].owner]++;
        for (uint32_t i = 0; i < a->owners_count; i++) {
                most = (uint32_t)max_u64(most, owned[i]);
                least = (uint32_t)min_u64(least, owned[i]);
        }
        free(owned);
        if (most - least > 1 || a->owners_count != count_alive()) {
                (void)fprintf(stderr, "%u to %u shards at a host, %u owners of %" PRIu64 " hosts\n", least, most,
                        a->owners_count, count_alive());
                has_failed = true;
        }
}

int main(int argc, char **argv)
{
        uint32_t hosts = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 60;
        shards = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 512;
        uint32_t part = (uint32_t)max_u64(hosts / 20, 1);
        uint64_t within_ns = min_u64(hosts * 100 * NS_PER_MS, 30 * NS_PER_S);
        if (hosts < 10 || hosts > ASSIGN_MEMBERS_MAX / 2 || !shards || shards > SHARDS_MAX) {
                (void)fprintf(stderr, "usage: scale [HOSTS [SHARDS]]\n");
                return 2;
        }
        log_set_level(getenv("SCALE_LOG") ? LEVEL_DEBUG : LEVEL_ERROR);
        scale_hosts_count = hosts + part;
        scale_hosts = memory_zero(scale_hosts_count, sizeof(*scale_hosts));
        for (uint32_t i = 0; i < scale_hosts_count; i++) {
                scale_hosts[i].index = i;
                scale_hosts[i].load = 1000;
        }
        (void)printf("%u hosts, %u shards, sessions of %u s\n", hosts, shards, SCALE_SESSION_MS / 1000);
        begin();
        start_all(0, hosts, within_ns);
        check_first();
        settle("all start, one after the other", hosts);
        (void)printf("the assignment is %" PRIu64 " bytes, a member's node about %zu\n",
                (uint64_t)scale_tree_data("assign").size, scale_hosts[0].membership.doc.size);
        stay_calm();
        begin();
        start_all(hosts, part, 5 * NS_PER_S);
        settle("a twentieth joins within 5 s", hosts + part);
        begin();
        for (uint32_t i = 0; i < part; i++)
                scale_at(5 * NS_PER_S * i / part, on_leave, &scale_hosts[hosts + i]);
        settle("a twentieth leaves within 5 s", hosts);
        begin();
        for (uint32_t i = 0; i < part; i++)
                scale_host_lose(&scale_hosts[hosts / 2 + i]);
        settle("a rack is lost", hosts - part);
        begin();
        start_all(hosts / 2, part, NS_PER_S);
        settle("the rack comes back", hosts);
        begin();
        scale_host_kill(scale_host_leader());
        settle("the leader is killed", hosts - 1);
        begin();
        scale_host_lose(scale_host_leader());
        settle("the leader's machine is lost", hosts - 2);
        check_counts();
        return has_failed;
}
