#include "cli/doctor/redis_read.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COPY(to, from) ((void)snprintf(to, sizeof(to), "%s", from))

void redis_read_init(struct doctor_redis *to)
{
        *to = (struct doctor_redis){ .maxmemory_bytes = UNKNOWN,
                .used_bytes = UNKNOWN,
                .system_bytes = UNKNOWN,
                .replicas = UNKNOWN,
                .replicas_online = UNKNOWN,
                .replicas_wanted = UNKNOWN,
                .clients = UNKNOWN,
                .clients_max = UNKNOWN,
                .clients_refused = UNKNOWN,
                .timeout_s = UNKNOWN,
                .slow_commands = UNKNOWN,
                .slower_than_us = UNKNOWN,
                .evicted = UNKNOWN,
                .round_trip_ns = UNKNOWN,
                .doubt_ms = UNKNOWN };
}

void redis_read_free(struct doctor_redis *to)
{
        strings_free(&to->untold);
}

static uint64_t number(const char *text)
{
        char *end;
        errno = 0;
        unsigned long long value = strtoull(text, &end, 10);
        return errno || end == text || *text == '-' ? UNKNOWN : value;
}

/* A line "NAME:VALUE\r\n".  False: there is none. */
static bool get(const char *info, const char *name, char *to, size_t size)
{
        size_t name_size = strlen(name);
        for (const char *line = info; line && *line; line = strchr(line, '\n')) {
                line += *line == '\n';
                if (strncmp(line, name, name_size) != 0 || line[name_size] != ':')
                        continue;
                const char *value = line + name_size + 1;
                (void)snprintf(to, size, "%.*s", (int)strcspn(value, "\r\n"), value);
                return true;
        }
        return false;
}
#define GET(info, name, to) get(info, name, to, sizeof(to))

static void get_number(const char *info, const char *name, uint64_t *to)
{
        char text[32];
        if (GET(info, name, text))
                *to = number(text);
}

static uint64_t count_online(const char *info, uint64_t replicas)
{
        uint64_t online = 0;
        for (uint64_t i = 0; i < replicas && i < 64; i++) {
                char name[32], line[256];
                (void)snprintf(name, sizeof(name), "slave%u", (unsigned)i);
                online += GET(info, name, line) && strstr(line, "state=online") != NULL;
        }
        return online;
}

void redis_read_info(struct doctor_redis *to, const char *info)
{
        char text[32];
        (void)GET(info, "redis_version", to->version);
        if (GET(info, "role", to->role) && !strcmp(to->role, "slave"))
                COPY(to->role, "replica");
        if (GET(info, "aof_enabled", text))
                COPY(to->appendonly, text[0] == '1' ? "yes" : "no");
        (void)GET(info, "aof_last_write_status", to->aof_status);
        (void)GET(info, "rdb_last_bgsave_status", to->rdb_status);
        (void)GET(info, "maxmemory_policy", to->policy);
        get_number(info, "maxmemory", &to->maxmemory_bytes);
        get_number(info, "used_memory", &to->used_bytes);
        get_number(info, "total_system_memory", &to->system_bytes);
        get_number(info, "connected_clients", &to->clients);
        get_number(info, "maxclients", &to->clients_max);
        get_number(info, "rejected_connections", &to->clients_refused);
        get_number(info, "evicted_keys", &to->evicted);
        get_number(info, "connected_slaves", &to->replicas);
        if (to->replicas != UNKNOWN)
                to->replicas_online = count_online(info, to->replicas);
}

void redis_read_setting(struct doctor_redis *to, const char *name, const char *value)
{
        if (!strcmp(name, "appendonly"))
                COPY(to->appendonly, value);
        else if (!strcmp(name, "appendfsync"))
                COPY(to->appendfsync, value);
        else if (!strcmp(name, "bind"))
                COPY(to->bind, value);
        else if (!strcmp(name, "protected-mode"))
                COPY(to->protected_mode, value);
        else if (!strcmp(name, "timeout"))
                to->timeout_s = number(value);
        else if (!strcmp(name, "slowlog-log-slower-than"))
                to->slower_than_us = number(value);
        else if (!strcmp(name, "min-replicas-to-write"))
                to->replicas_wanted = number(value);
        else if (!strcmp(name, "save")) {
                COPY(to->save, value);
                to->has_save = true;
        }
}

void redis_read_cluster(struct doctor_deployment *to, const char *info)
{
        uint64_t doubted = 0;
        (void)GET(info, "cluster_state", to->cluster_state);
        get_number(info, "cluster_slots_assigned", &to->slots_assigned);
        get_number(info, "cluster_slots_fail", &to->slots_failed);
        get_number(info, "cluster_slots_pfail", &doubted);
        if (doubted != UNKNOWN && to->slots_failed != UNKNOWN)
                to->slots_failed += doubted;
}

void redis_read_master(struct doctor_deployment *to, const char *name, const char *value)
{
        if (!strcmp(name, "quorum"))
                to->quorum = number(value);
        else if (!strcmp(name, "flags"))
                COPY(to->sentinel_flags, value);
}
