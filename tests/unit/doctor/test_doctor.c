/* test_doctor.c: what figures mean, without any server. */
#include "check.h"

#include "cli/doctor/judge.h"
#include "cli/doctor/redis_read.h"

#define INFO                                                                                                           \
        "# Server\r\nredis_version:7.0.15\r\n# Replication\r\nrole:master\r\nconnected_slaves:2\r\n"                   \
        "slave0:ip=10.0.0.2,port=6379,state=online,offset=1,lag=0\r\n"                                                 \
        "slave1:ip=10.0.0.3,port=6379,state=wait_bgsave,offset=0,lag=0\r\n"                                            \
        "aof_enabled:1\r\naof_last_write_status:ok\r\nrdb_last_bgsave_status:ok\r\nmaxmemory_policy:noeviction\r\n"    \
        "maxmemory:1000\r\nused_memory:500\r\nused_memory_rss:900\r\nconnected_clients:5\r\nmaxclients:10000\r\n"      \
        "evicted_keys:0\r\nrejected_connections:0\r\n"

/* The level of the only finding of that name, or -1: there is none. */
static int level_of(const struct findings *f, const char *check, const char *contains)
{
        int level = -1;
        for (size_t i = 0; i < f->count; i++) {
                if (strcmp(f->items[i].check, check) != 0)
                        continue;
                level = (int)f->items[i].level;
                if (contains)
                        assert_contains(f->items[i].text, contains);
                /* Whatever is wrong comes with what to do about it. */
                if (level >= FINDING_WARNING)
                        assert_true(f->items[i].advice[0] || strstr(f->items[i].text, "chmod"));
        }
        return level;
}

static struct doctor_redis well(void)
{
        struct doctor_redis r;
        redis_read_init(&r);
        (void)snprintf(r.server, sizeof(r.server), "127.0.0.1:6379");
        redis_read_info(&r, INFO);
        redis_read_setting(&r, "appendonly", "yes");
        redis_read_setting(&r, "appendfsync", "everysec");
        redis_read_setting(&r, "timeout", "0");
        r.replicas_online = 2;
        r.is_loopback = r.has_login = true;
        r.doubt_ms = 1;
        r.round_trip_ns = 100000;
        return r;
}

/* What is said of one server: the level of the finding of that name. */
static int level_with(struct doctor_redis *r, const char *check, const char *contains)
{
        struct findings f = { 0 };
        struct doctor_deployment d = { .of = "store", .url = "redis://x", .servers = r, .servers_count = 1 };
        judge_deployment(&d, &f);
        int level = level_of(&f, check, contains);
        findings_free(&f);
        return level;
}

static void info_is_read_as_figures(void **state)
{
        struct doctor_redis r;
        (void)state;
        redis_read_init(&r);
        assert_int_equal(r.clients, UNKNOWN);
        redis_read_info(&r, INFO);
        assert_string_equal(r.version, "7.0.15");
        assert_string_equal(r.role, "master");
        assert_string_equal(r.appendonly, "yes");
        assert_int_equal(r.maxmemory_bytes, 1000);
        assert_int_equal(r.used_bytes, 500);
        assert_int_equal(r.replicas, 2);
        assert_int_equal(r.replicas_online, 1);
        assert_int_equal(r.clients_max, 10000);
        redis_read_info(&r, "maxmemory:-5\r\nused_memory:many\r\nrole:slave");
        assert_int_equal(r.maxmemory_bytes, UNKNOWN);
        assert_int_equal(r.used_bytes, UNKNOWN);
        assert_string_equal(r.role, "replica");
}

static void a_redis_that_is_well_set_up_gives_no_warning(void **state)
{
        struct doctor_redis r = well();
        struct findings f = { 0 };
        struct doctor_deployment d = { .of = "store", .servers = &r, .servers_count = 1, .host.is_known = true };
        (void)state;
        judge_deployment(&d, &f);
        assert_int_equal(f.counts[FINDING_ERROR] + f.counts[FINDING_WARNING] + f.counts[FINDING_NOTE], 0);
        assert_true(f.counts[FINDING_OK] >= 8);
        findings_free(&f);
}

static void what_a_crash_loses_is_said(void **state)
{
        struct doctor_redis r = well();
        (void)state;
        assert_int_equal(level_with(&r, "redis-persistence", "2 s at most"), FINDING_OK);
        redis_read_setting(&r, "appendfsync", "no");
        assert_int_equal(level_with(&r, "redis-persistence", "30 s"), FINDING_WARNING);
        redis_read_setting(&r, "appendonly", "no");
        redis_read_setting(&r, "save", "3600 1");
        assert_int_equal(level_with(&r, "redis-persistence", "snapshots only"), FINDING_WARNING);
        redis_read_setting(&r, "save", "");
        assert_int_equal(level_with(&r, "redis-persistence", "loses every task"), FINDING_ERROR);
        r.appendonly[0] = 0;
        assert_int_equal(level_with(&r, "redis-persistence", "does not say"), FINDING_NOTE);
        (void)strcpy(r.aof_status, "err");
        assert_int_equal(level_with(&r, "redis-writes", "append-only"), FINDING_ERROR);
}

static void eviction_memory_and_clients_are_judged(void **state)
{
        struct doctor_redis r = well();
        (void)state;
        (void)strcpy(r.policy, "allkeys-lru");
        assert_int_equal(level_with(&r, "redis-eviction", "allkeys-lru"), FINDING_ERROR);
        (void)strcpy(r.policy, "volatile-ttl");
        assert_int_equal(level_with(&r, "redis-eviction", "volatile-ttl"), FINDING_WARNING);
        r.evicted = 3;
        assert_int_equal(level_with(&r, "redis-evicted", "3 keys"), FINDING_ERROR);
        r.used_bytes = 749;
        assert_int_equal(level_with(&r, "redis-memory", "75 %"), FINDING_OK);
        r.used_bytes = 750;
        assert_int_equal(level_with(&r, "redis-memory", "75 %"), FINDING_WARNING);
        r.used_bytes = 950;
        assert_int_equal(level_with(&r, "redis-memory", "95 %"), FINDING_ERROR);
        r.maxmemory_bytes = 0;
        r.system_bytes = 1u << 30;
        assert_int_equal(level_with(&r, "redis-maxmemory", NULL), FINDING_NOTE);
        r.clients = 8000;
        assert_int_equal(level_with(&r, "redis-clients", "8000 of 10000"), FINDING_WARNING);
        r.clients_refused = 1;
        assert_int_equal(level_with(&r, "redis-refused", "1 connection "), FINDING_WARNING);
        r.timeout_s = 10;
        assert_int_equal(level_with(&r, "redis-timeout", "10 s"), FINDING_WARNING);
        r.round_trip_ns = 30000000;
        assert_int_equal(level_with(&r, "redis-round-trip", "30ms"), FINDING_WARNING);
        r.slow_commands = 2;
        r.slower_than_us = 10000;
        assert_int_equal(level_with(&r, "redis-slow-log", "2 commands"), FINDING_NOTE);
        r.replicas_online = 1;
        assert_int_equal(level_with(&r, "redis-replicas", "1 follow"), FINDING_WARNING);
        r.replicas_wanted = 3;
        assert_int_equal(level_with(&r, "redis-min-replicas", "takes no writes"), FINDING_ERROR);
}

static void a_redis_without_a_password_is_judged_by_who_can_reach_it(void **state)
{
        struct doctor_redis r = well();
        (void)state;
        assert_int_equal(level_with(&r, "redis-password", NULL), FINDING_OK);
        r.has_login = false;
        (void)strcpy(r.protected_mode, "yes");
        (void)strcpy(r.bind, "* -::*");
        assert_int_equal(level_with(&r, "redis-password", "every user of its machine"), FINDING_NOTE);
        (void)strcpy(r.protected_mode, "no");
        assert_int_equal(level_with(&r, "redis-password", "open to everybody"), FINDING_ERROR);
        (void)strcpy(r.bind, "127.0.0.1 -::1");
        assert_int_equal(level_with(&r, "redis-password", "every user of its machine"), FINDING_NOTE);
        (void)strcpy(r.bind, "127.0.0.1 10.1.2.3");
        assert_int_equal(level_with(&r, "redis-password", "10.1.2.3"), FINDING_ERROR);
        (void)strcpy(r.bind, "");
        assert_int_equal(level_with(&r, "redis-password", "all addresses"), FINDING_ERROR);
        r.is_loopback = false;
        (void)strcpy(r.protected_mode, "yes");
        assert_int_equal(level_with(&r, "redis-password", "from the network"), FINDING_ERROR);
}

static void missing_rights_are_named_by_role(void **state)
{
        struct doctor_deployment d = { .of = "store", .user = "demo", .host.is_known = true };
        struct findings f = { 0 };
        (void)state;
        strings_add(&d.host.lacking, "hset");
        strings_add(&d.host.lacking, "client|tracking");
        judge_deployment(&d, &f);
        assert_int_equal(level_of(&f, "redis-rights", "hset, client|tracking"), FINDING_ERROR);
        findings_free(&f);
        d.operator.is_known = true;
        judge_deployment(&d, &f);
        assert_int_equal(level_of(&f, "redis-rights", "commands need"), FINDING_NOTE);
        findings_free(&f);
        strings_free(&d.host.lacking);
}

static void a_cluster_and_sentinels_are_judged(void **state)
{
        struct doctor_deployment d = { .of = "store", .servers_count = 0, .masters_alone = 1 };
        struct findings f = { 0 };
        (void)state;
        redis_read_cluster(&d, "cluster_state:ok\r\ncluster_slots_assigned:16384\r\ncluster_slots_fail:0\r\n");
        judge_deployment(&d, &f);
        assert_int_equal(level_of(&f, "redis-cluster", "16384 of 16384"), FINDING_OK);
        assert_int_equal(level_of(&f, "redis-cluster-replicas", "1 of 0 masters has"), FINDING_WARNING);
        findings_free(&f);
        redis_read_cluster(&d, "cluster_state:fail\r\ncluster_slots_assigned:16000\r\ncluster_slots_pfail:5\r\n");
        judge_deployment(&d, &f);
        assert_int_equal(level_of(&f, "redis-cluster", "16000 of 16384"), FINDING_ERROR);
        findings_free(&f);
        struct doctor_deployment s = { .of = "coordination", .sentinels = 3, .sentinels_answered = 1 };
        redis_read_master(&s, "quorum", "2");
        redis_read_master(&s, "flags", "s_down,master");
        judge_deployment(&s, &f);
        assert_int_equal(level_of(&f, "redis-sentinels", "1 of 3"), FINDING_WARNING);
        assert_int_equal(level_of(&f, "redis-quorum", "2 must agree"), FINDING_ERROR);
        assert_int_equal(level_of(&f, "redis-master", "s_down"), FINDING_ERROR);
        assert_int_equal(f.items[0].subject, SUBJECT_COORDINATION);
        findings_free(&f);
}

static int clock_level(int64_t ahead_ms, uint64_t doubt_ms, const char *contains)
{
        struct doctor_redis r = well();
        struct doctor_figures all = { .store = { .of = "store", .servers = &r, .servers_count = 1 } };
        struct findings f = { 0 };
        r.ahead_ms = ahead_ms;
        r.doubt_ms = doubt_ms;
        all.coordination.doubt_ms = UNKNOWN;
        judge_clock(&all, &f);
        int level = level_of(&f, "clock", contains);
        findings_free(&f);
        return level;
}

static void clocks_that_differ_are_said_with_the_doubt_taken_off(void **state)
{
        (void)state;
        assert_int_equal(clock_level(999, 0, "within"), FINDING_OK);
        assert_int_equal(clock_level(1500, 600, "within"), FINDING_OK);
        assert_int_equal(clock_level(1500, 10, "1.5s ahead"), FINDING_WARNING);
        assert_int_equal(clock_level(-1500, 10, "1.5s behind"), FINDING_WARNING);
        assert_int_equal(clock_level(-3600000, 10, "1h behind"), FINDING_ERROR);
}

static void certificates_are_judged_by_the_days_left(void **state)
{
        struct doctor_certificate c[] = { { .of = "a", .left_s = 86400 * 14 }, { .of = "b", .left_s = 86400 * 13 },
                { .of = "c" }, { .of = "d" } };
        struct findings f = { 0 };
        (void)state;
        (void)strcpy(c[3].error.text, "it has expired");
        judge_certificates(c, COUNT(c), &f);
        assert_int_equal(f.items[0].level, FINDING_OK);
        assert_int_equal(f.items[1].level, FINDING_WARNING);
        assert_contains(f.items[1].text, "13 days");
        assert_int_equal(f.items[2].level, FINDING_ERROR);
        assert_contains(f.items[3].text, "it has expired");
        findings_free(&f);
}

static void sessions_and_servers_of_the_coordination_are_judged(void **state)
{
        struct doctor_zookeeper z[3] = { { .server = "a", .mode = "follower" }, { .server = "b", .mode = "leader" },
                { .server = "c" } };
        struct doctor_coordination c = { .driver = "zookeeper",
                .url = "zookeeper://a",
                .session_ms = 4000,
                .wanted_ms = 4000,
                .round_trip_ns = 1000,
                .members = 3,
                .hosts_alive = 2,
                .zookeepers = z,
                .zookeepers_count = 3,
                .etcd_db_bytes = UNKNOWN };
        struct findings f = { 0 };
        (void)state;
        (void)strcpy(z[2].error.text, "no answer");
        judge_coordination(&c, &f);
        assert_int_equal(level_of(&f, "session", "4s"), FINDING_OK);
        assert_int_equal(level_of(&f, "zookeeper-leader", NULL), -1);
        assert_int_equal(level_of(&f, "leader", "No host leads"), FINDING_WARNING);
        assert_int_equal(level_of(&f, "silent-members", "1 of 3"), FINDING_WARNING);
        findings_free(&f);
        z[1].mode[0] = 0;
        c.session_ms = 10000;
        c.has_leader = true;
        (void)strcpy(c.etcd_alarm, "NOSPACE");
        judge_coordination(&c, &f);
        assert_int_equal(level_of(&f, "zookeeper-leader", "1 of 3"), FINDING_ERROR);
        assert_int_equal(level_of(&f, "session", "10s, not 4s"), FINDING_WARNING);
        assert_int_equal(level_of(&f, "leader", NULL), -1);
        assert_int_equal(level_of(&f, "etcd-alarm", "NOSPACE"), FINDING_ERROR);
        findings_free(&f);
        c.status = -110;
        judge_coordination(&c, &f);
        assert_int_equal(level_of(&f, "coordination-answers", "cannot be used"), FINDING_ERROR);
        findings_free(&f);
}

static void the_app_and_its_hosts_are_judged(void **state)
{
        struct doctor_host hosts[] = { { .name = "a", .version = "1.0", .silent_ms = 100, .refresh_ms = 2000 },
                { .name = "b", .version = "1.1", .machine = "web-2", .silent_ms = 4001, .refresh_ms = 2000 } };
        struct doctor_app app = { .is_open = true,
                .shards = 8,
                .hosts = hosts,
                .hosts_count = 2,
                .backlog_max = 100,
                .fullest = 79,
                .fullest_shard = 3,
                .synchronous = "normal" };
        struct findings f = { 0 };
        (void)state;
        strings_add(&app.features_off, "limits");
        judge_app(&app, &f);
        assert_int_equal(level_of(&f, "silent", "b on web-2 has said nothing for 4s"), FINDING_WARNING);
        assert_int_equal(level_of(&f, "versions", "a has 1.0, b has 1.1"), FINDING_NOTE);
        assert_int_equal(level_of(&f, "features", "limits"), FINDING_NOTE);
        assert_int_equal(level_of(&f, "backlog", "79 of 100"), FINDING_OK);
        assert_int_equal(level_of(&f, "sqlite-synchronous", NULL), FINDING_NOTE);
        findings_free(&f);
        app.fullest = 80;
        judge_app(&app, &f);
        assert_int_equal(level_of(&f, "backlog", "shard, 3, has 80"), FINDING_WARNING);
        findings_free(&f);
        app.fullest = 100;
        judge_app(&app, &f);
        assert_int_equal(level_of(&f, "backlog", NULL), FINDING_ERROR);
        findings_free(&f);
        strings_free(&app.features_off);
        app.is_open = false;
        judge_app(&app, &f);
        assert_int_equal(level_of(&f, "store", "cannot be opened"), FINDING_ERROR);
        findings_free(&f);
        app.is_missing = true;
        judge_app(&app, &f);
        assert_int_equal(level_of(&f, "store", NULL), FINDING_NOTE);
        findings_free(&f);
}

static void problems_of_the_status_are_findings(void **state)
{
        struct findings f = { 0 };
        json_t *problems = json_pack("[{s:s,s:s,s:s,s:s},{s:s,s:s,s:s,s:s},{s:s,s:s,s:s,s:s}]", "level", "bad", "kind",
                "hosts", "text", "No host is running.", "command", "quiver run", "level", "warn", "kind", "dead",
                "text", "2 tasks are dead.", "command", "quiver dead list", "level", "warn", "kind", "parked", "text",
                "1 key waits.", "command", "quiver tasks");
        (void)state;
        judge_problems(problems, &f);
        assert_int_equal(f.items[0].level, FINDING_ERROR);
        assert_string_equal(f.items[0].advice, "quiver run");
        assert_int_equal(f.items[1].level, FINDING_WARNING);
        assert_int_equal(f.items[2].level, FINDING_NOTE);
        findings_free(&f);
        json_decref(problems);
        judge_problems(NULL, &f);
        assert_int_equal(f.items[0].level, FINDING_OK);
        findings_free(&f);
}

static int disk_level(uint64_t size_mb, uint64_t free_mb, uint64_t inodes_free)
{
        struct doctor_machine m = { .has_boottime = true,
                .files_max = UNKNOWN,
                .processes_max = UNKNOWN,
                .folders_count = 1,
                .folders = { { .of = "state",
                        .path = "/x",
                        .size_bytes = size_mb << 20,
                        .free_bytes = free_mb << 20,
                        .inodes = 100,
                        .inodes_free = inodes_free } } };
        struct findings f = { 0 };
        judge_machine(&m, &f);
        int level = level_of(&f, "disk", "/x");
        findings_free(&f);
        return level;
}

static void disks_are_judged_by_what_is_left(void **state)
{
        (void)state;
        assert_int_equal(disk_level(100000, 50000, 50), FINDING_OK);
        assert_int_equal(disk_level(1000000, 50000, 50), FINDING_OK);
        assert_int_equal(disk_level(40000, 3000, 50), FINDING_WARNING);
        assert_int_equal(disk_level(40000, 900, 50), FINDING_ERROR);
        assert_int_equal(disk_level(32, 15, 50), FINDING_ERROR);
        assert_int_equal(disk_level(100000, 50000, 9), FINDING_WARNING);
        assert_int_equal(disk_level(100000, 50000, 2), FINDING_ERROR);
}

static void limits_kernel_and_unit_are_judged(void **state)
{
        struct doctor_machine m = { .has_boottime = true,
                .files_max = 1024,
                .files_needed = 1025,
                .processes_max = 50,
                .processes_needed = 50,
                .overcommit = 2,
                .cgroup_why = "no cgroup v2",
                .unit = "quiver.service",
                .unit_delegate = "no",
                .unit_type = "simple",
                .unit_watchdog = "infinity",
                .unit_restart = "no",
                .folders_count = 1,
                .folders = { { .of = "store",
                        .path = "/x",
                        .size_bytes = 1ull << 40,
                        .free_bytes = 1ull << 40,
                        .network = "NFS" } } };
        struct findings f = { 0 };
        (void)state;
        strings_add(&m.void_limits, "limits.cores of mail: has no effect");
        judge_machine(&m, &f);
        assert_int_equal(level_of(&f, "open-files", "1024 files"), FINDING_WARNING);
        assert_int_equal(level_of(&f, "processes", "50"), FINDING_OK);
        assert_int_equal(level_of(&f, "landlock", "no Landlock"), FINDING_NOTE);
        assert_int_equal(level_of(&f, "cgroup", "no cgroup v2"), FINDING_NOTE);
        assert_int_equal(level_of(&f, "overcommit", "is 2"), FINDING_NOTE);
        assert_int_equal(level_of(&f, "network-disk", "NFS"), FINDING_ERROR);
        assert_int_equal(level_of(&f, "limits", "cores"), FINDING_WARNING);
        size_t units = 0;
        for (size_t i = 0; i < f.count; i++)
                units += !strcmp(f.items[i].check, "unit");
        assert_int_equal(units, 4);
        findings_free(&f);
        strings_free(&m.void_limits);
}

static void plugins_are_judged_by_abi_and_by_who_can_write_them(void **state)
{
        struct doctor_plugin p[3] = { { .handler = "a", .path = "a.so", .abi_major = 99 },
                { .handler = "b", .path = "b.so", .abi_major = UNKNOWN, .is_open_to_all = true },
                { .handler = "c", .path = "c.so" } };
        struct doctor_files files = { .plugins = p, .plugins_count = 3, .tokens_file = "t", .tokens_mode = 0644 };
        struct findings f = { 0 };
        (void)state;
        (void)strcpy(p[1].trust.text, "everybody can write to it; chmod o-w b.so");
        (void)strcpy(p[2].error.text, "no such file");
        judge_files(&files, &f);
        assert_int_equal(level_of(&f, "plugin-abi", "99.0"), FINDING_ERROR);
        assert_int_equal(level_of(&f, "plugin-mode", "chmod"), FINDING_ERROR);
        assert_int_equal(level_of(&f, "plugin", "no such file"), FINDING_ERROR);
        assert_int_equal(level_of(&f, "tokens-mode", "644"), FINDING_WARNING);
        findings_free(&f);
}

static void what_is_ok_is_folded_and_nothing_acts_on_the_terminal(void **state)
{
        struct findings f = { 0 };
        struct buffer text = { 0 };
        (void)state;
        findings_add(&f, FINDING_OK, SUBJECT_STORE, "a", NULL, "fine");
        findings_add(&f, FINDING_NOTE, SUBJECT_STORE, "b", "do that", "a note");
        findings_add(&f, FINDING_ERROR, SUBJECT_STORE, "c", NULL, "bad \033[2J %s", "thing");
        findings_add(&f, FINDING_WARNING, SUBJECT_CLOCK, "d", NULL, "late");
        findings_as_text(&text, &f, false, false);
        assert_string_equal(buffer_text(&text), "clock\n  warning  late\nstore\n  error    bad \\x1b[2J thing\n"
                                                "  note     a note\n           do: do that\n"
                                                "1 error, 1 warning, 1 note; 1 ok (--all shows them)\n");
        buffer_free(&text);
        findings_as_text(&text, &f, true, false);
        assert_contains(buffer_text(&text), "  ok       fine\n");
        buffer_free(&text);
        json_t *json = findings_as_json(&f);
        assert_int_equal(json_array_size(json), 4);
        assert_string_equal(json_string_value(json_object_get(json_array_get(json, 0), "subject")), "clock");
        json_decref(json);
        findings_free(&f);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(info_is_read_as_figures),
                cmocka_unit_test(a_redis_that_is_well_set_up_gives_no_warning),
                cmocka_unit_test(what_a_crash_loses_is_said),
                cmocka_unit_test(eviction_memory_and_clients_are_judged),
                cmocka_unit_test(a_redis_without_a_password_is_judged_by_who_can_reach_it),
                cmocka_unit_test(missing_rights_are_named_by_role),
                cmocka_unit_test(a_cluster_and_sentinels_are_judged),
                cmocka_unit_test(clocks_that_differ_are_said_with_the_doubt_taken_off),
                cmocka_unit_test(certificates_are_judged_by_the_days_left),
                cmocka_unit_test(sessions_and_servers_of_the_coordination_are_judged),
                cmocka_unit_test(the_app_and_its_hosts_are_judged),
                cmocka_unit_test(problems_of_the_status_are_findings),
                cmocka_unit_test(disks_are_judged_by_what_is_left),
                cmocka_unit_test(limits_kernel_and_unit_are_judged),
                cmocka_unit_test(plugins_are_judged_by_abi_and_by_who_can_write_them),
                cmocka_unit_test(what_is_ok_is_folded_and_nothing_acts_on_the_terminal),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
