/* internal.h: what the files of the mock share.  The door is quiver/mock.h. */
#ifndef QUIVER_MOCK_INTERNAL_H
#define QUIVER_MOCK_INTERNAL_H

#include <pthread.h>
#include <quiver/mock.h>
#include <setjmp.h>
#include <stdbool.h>

enum service {
        SERVICE_LOG,
        SERVICE_CONFIG,
        SERVICE_ERROR,
        SERVICE_RESULT,
        SERVICE_SUBMIT,
        SERVICE_RETRY_AFTER,
        SERVICE_PROGRESS,
        SERVICE_CHECKPOINT,
        SERVICE_TRYLOCK,
        SERVICE_UNLOCK,
        SERVICE_NEXT_ID,
        SERVICE_ROOM_APPEND,
        SERVICE_EXT,
        SERVICES,
};

/* Memory that is freed together.  A list starts as NULL; each block is an allocation of its own, so that a sanitizer
 * sees where it ends. */
struct block;

/* `size` zeroed bytes.  Running out of memory ends the test. */
void *qv_mock_keep(struct block **list, size_t size);
/* A copy with a NUL behind it; of NULL, "". */
void *qv_mock_keep_bytes(struct block **list, const void *data, size_t size);
char *qv_mock_keep_text(struct block **list, const char *text);
void qv_mock_drop(struct block **list);

struct setting {
        struct setting *next;
        const char *name;
        const char *value;
        const char *lent; /* the copy that the instance sees; NULL: there is no instance */
        bool is_read;     /* by init */
};

/* What was appended to a room. */
struct room_entry {
        struct room_entry *next;
        const char *room;
        const void *data; /* NULL: nothing */
        size_t size;
        uint64_t number;
};

struct lock {
        struct lock *next;
        const char *name;
        uint64_t token;
        uint64_t until_ms;            /* free from then on */
        const struct qv_mock *holder; /* the seat; NULL: another host's */
        bool is_tasks;                /* taken while a task was handled: free when that ends */
};

/* What a start has gathered; committed or dropped when it ends. */
struct staged {
        const char *error;
        const char *result;
        size_t result_size;
        struct qv_submit *submits;
        size_t submits_count, submits_room;
        int64_t retry_after_ms;
};

struct record {
        struct qv_mock_task task; /* first: the test holds a pointer to it */
        const void *payload;
        size_t payload_size;
        struct qv_header2 *headers; /* all of them */
        size_t headers_count;
        struct qv_task *lent; /* what the plugin sees; NULL: not running */
        struct block *loans;  /* freed with it */
        struct staged staged;
};

/* The host as the plugin sees it: made for init, gone after close. */
struct seat {
        struct qv_host host; /* first: services get a pointer to it */
        struct qv_mock *mock;
};

struct qv_mock {
        /* The seats of one process share what belongs to the first of them: load(), the clock, locks, ids. */
        struct qv_mock *first;
        struct qv_mock *next_seat;   /* a list that begins with the first */
        pthread_mutex_t shared_lock; /* the first's: guards what is shared */
        struct block *shared_kept;   /* the first's: the locks */
        struct qv_plugin plugin;
        struct block *kept; /* until qv_mock_free() */

        struct seat *loader; /* what load() was given; NULL: the plugin is not loaded, or has no load() */
        struct seat *seat;   /* NULL: no instance */
        struct block *loans;
        void *self;
        pthread_t thread; /* the seat's: where init was called */
        bool is_in_init;
        const char *init_error;
        struct setting *settings;

        bool is_same_key; /* as batch.same_key */
        uint64_t tasks_made;
        uint64_t fence_epoch, fence_start;   /* of the latest start that was no zombie's */
        uint64_t zombie_epoch, zombie_start; /* what the running start shows instead; 0: nothing */
        jmp_buf crash_point;                 /* valid while tasks run */
        uint32_t stop_word;                  /* atomic; 1: stop */

        uint64_t now_ms;      /* atomic */
        uint64_t deadline_ms; /* atomic; the earliest of the running tasks'; UINT64_MAX: none */
        uint64_t last_id;
        uint64_t last_token;
        struct lock *locks;
        struct room_entry *rooms; /* the first's; oldest first */

        int32_t failures[SERVICES];
        size_t calls[SERVICES];
        void (*hook)(struct qv_mock *mock, const char *service, void *arg);
        void *hook_arg;

        /* log may be called by any thread: this guards what it touches. */
        pthread_mutex_t log_lock;
        struct record *const *running; /* written by the seat's thread with the lock held */
        uint32_t running_count;
        struct block *log_blocks;
        struct qv_mock_log **logs;
        size_t logs_count, logs_room;
};

/* Calls load, once, before the first init: a host does it once per process. */
int32_t qv_mock_load(struct qv_mock *mock);

/* The instance is no more: what it borrowed is freed. */
void qv_mock_end_instance(struct qv_mock *mock);

/* The test called the mock wrongly. */
__attribute__((format(printf, 1, 2), noreturn)) void qv_mock_wrong(const char *format, ...);

/* Whether a header's value has a control character. */
bool qv_mock_is_bytes(const void *value, size_t size);
/* NULL if it is fine, else what is wrong with it. */
const char *qv_mock_check_key(const char *key);
const char *qv_mock_check_handler(const char *name);
/* 0, or what submit returns, with `problem` naming the field. */
int32_t qv_mock_check_submit(const struct qv_submit *submit, char *problem, size_t size);
/* Copies it and all it points to. */
void qv_mock_stage_submit(struct qv_mock *mock, struct staged *staged, const struct qv_submit *submit);

enum service qv_mock_service(const char *name);
void qv_mock_fill_services(struct qv_host *host);

/* Adds a line, cut to QV_LOG_MAX.  Any thread. */
void qv_mock_put_log(struct qv_mock *mock, int32_t level, const char *text);
/* Which tasks run from now on: what log lines are attributed to.  NULL, 0: none. */
void qv_mock_set_running(struct qv_mock *mock, struct record *const *running, uint32_t count);

/* The behaviour behind trylock and unlock; arguments are checked already. */
int32_t qv_mock_room_put(struct qv_mock *mock, const char *room, const void *data, size_t size, uint64_t *ret_number);
int32_t qv_mock_lock_take(struct qv_mock *mock, const char *name, uint64_t ttl_ms, uint64_t *ret_token);
/* The start has ended: what it took is free. */
void qv_mock_lock_end(struct qv_mock *mock);
int32_t qv_mock_lock_give(struct qv_mock *mock, const char *name, uint64_t token);

#endif
