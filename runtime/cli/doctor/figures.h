/* figures.h: what `quiver doctor` has learned: plain figures, which the probes fill in and judge.h judges.
 *
 * A text that is "" and a number that is UNKNOWN were not told. */
#ifndef QUIVER_CLI_DOCTOR_FIGURES_H
#define QUIVER_CLI_DOCTOR_FIGURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strings.h"

#define UNKNOWN UINT64_MAX

/* --- Redis --- */

/* One server.  The numbers are as INFO and CONFIG GET have them. */
struct doctor_redis {
        char server[272];
        char version[32], role[16];
        char appendonly[8], appendfsync[16], save[128];
        bool has_save; /* `save` was told, and may be "" */
        char aof_status[8], rdb_status[8];
        char policy[32];
        uint64_t maxmemory_bytes, used_bytes, system_bytes;
        uint64_t replicas, replicas_online, replicas_wanted; /* the last: min-replicas-to-write */
        uint64_t clients, clients_max, clients_refused;
        uint64_t timeout_s;
        uint64_t slow_commands, slower_than_us;
        uint64_t evicted;
        uint64_t round_trip_ns; /* the middle one of several */
        int64_t ahead_ms;       /* its clock against ours */
        uint64_t doubt_ms;      /* by how much `ahead_ms` may be wrong; UNKNOWN: the time was not told */
        char bind[128], protected_mode[8];
        bool is_loopback;      /* it was reached on this machine */
        bool has_login;        /* we show a password */
        struct strings untold; /* commands that its user may not use, or that it does not know */
};

/* Which rights a role lacks. */
struct doctor_rights {
        bool is_known;
        struct strings lacking; /* "hget", "client|tracking" */
};

/* All servers of a store or a coordination. */
struct doctor_deployment {
        const char *of; /* "store", "coordination"; NULL: there is none */
        const char *url;
        const char *user; /* NULL: none is set */
        int status;       /* 0: a master answered */
        struct error error;
        struct doctor_redis *servers;
        size_t servers_count;
        struct doctor_rights host, operator;
        /* Cluster */
        char cluster_state[16];
        uint64_t slots_assigned, slots_failed, masters_alone; /* the last: without a replica */
        /* Sentinel */
        uint64_t sentinels, sentinels_answered, quorum;
        char sentinel_flags[64]; /* of the master, as a Sentinel sees it */
        char sentinel_error[256];
};

/* A certificate that ends. */
struct doctor_certificate {
        char of[280];       /* "server 127.0.0.1:6380", "our own, /etc/quiver/host.pem" */
        uint64_t left_s;    /* 0: it has ended */
        struct error error; /* it could not be used; "": it can */
};

/* --- coordination --- */

struct doctor_zookeeper {
        char server[272];
        struct error error; /* it did not answer; "": it did */
        char version[64], mode[16];
        uint64_t round_trip_ns;
        bool is_mute; /* it answers, but not the word "srvr" */
};

struct doctor_coordination {
        const char *driver; /* NULL: there is none */
        const char *url;
        bool is_missing; /* no host has made it yet */
        int status;
        struct error error;
        uint64_t session_ms, wanted_ms, ttl_ms;
        uint64_t round_trip_ns;
        bool has_leader;
        size_t members, hosts_alive; /* in the tree; with a document in the store */
        struct doctor_zookeeper *zookeepers;
        size_t zookeepers_count;
        uint64_t etcd_db_bytes, etcd_quota_bytes;
        char etcd_version[32], etcd_alarm[64];
        int64_t ahead_ms;
        uint64_t doubt_ms;
};

/* --- hosts and the app --- */

struct doctor_host {
        char name[256], version[32], machine[65];
        uint64_t silent_ms;  /* since its document was written */
        uint64_t refresh_ms; /* a document is written at least so often */
        int64_t ahead_ms;    /* its clock against ours */
        bool has_clock;
};

struct doctor_app {
        bool is_open;    /* the store could be opened */
        bool is_missing; /* there is none yet */
        int status;
        struct error error;
        uint64_t shards, schema;
        struct strings features_off; /* that this build knows */
        struct doctor_host *hosts;
        size_t hosts_count;
        uint64_t backlog_max;            /* per shard; 0: no limit */
        uint64_t fullest, fullest_shard; /* tasks in the fullest shard */
        char synchronous[8];             /* sqlite */
        char durability[256];
};

/* --- this machine --- */

struct doctor_folder {
        const char *of; /* "state", "store", "log" */
        char path[512];
        uint64_t size_bytes, free_bytes, inodes, inodes_free;
        char network[16]; /* the kind of network file system; "": it is none */
        struct error error;
};

#define DOCTOR_FOLDERS 3

struct doctor_machine {
        uint64_t files_max, files_needed;         /* open files: RLIMIT_NOFILE */
        uint64_t processes_max, processes_needed; /* the least of RLIMIT_NPROC and pids.max */
        bool is_of_host;                          /* the limits are those of the running host, else of this command */
        uint64_t host_pid;                        /* 0: no host of this name runs here */
        uint64_t landlock;                        /* version; 0: none */
        bool has_namespace, has_cgroup, is_root, has_boottime, is_clock_synchronised;
        char cgroup_why[512];
        struct strings void_limits; /* of handlers, that have no effect on this machine */
        int overcommit;             /* vm.overcommit_memory; -1: not told */
        bool has_redis_here;
        struct doctor_folder folders[DOCTOR_FOLDERS];
        size_t folders_count;
        /* The unit that the host runs under; "": none */
        char unit[128];
        char unit_delegate[8], unit_files[24], unit_watchdog[32], unit_type[24], unit_restart[24];
};

/* A plugin's file. */
struct doctor_plugin {
        const char *handler, *path; /* borrowed */
        struct error error;         /* it cannot be opened, or is no plugin; "": it is */
        struct error trust;         /* who else can write it, and the command that corrects it; "": nobody */
        bool is_open_to_all;        /* everybody can */
        uint64_t abi_major, abi_minor;
};

struct doctor_files {
        struct doctor_plugin *plugins;
        size_t plugins_count;
        const char *tokens_file; /* NULL: none */
        uint64_t tokens_mode;    /* UNKNOWN: it could not be looked at */
};

/* --- all of it --- */

struct doctor_figures {
        struct doctor_deployment store, tree; /* of Redis; the second if the coordination has one of its own */
        struct doctor_certificate *certificates;
        size_t certificates_count;
        struct doctor_coordination coordination;
        struct doctor_app app;
        struct doctor_machine machine;
        struct doctor_files files;
};

#endif
