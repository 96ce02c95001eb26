/* call.h: the inside of the client library: any store request as a blocking call.
 *
 * A handle has a thread that runs a loop, and the loop drives the store.  A call lives on its caller's stack: the
 * caller fills in the request, the client's thread starts it and takes what the caller wants from the reply, then the
 * caller wakes up. client.h is built on this, and so are the commands that read and act (client/admin.h). */
#ifndef QUIVER_CLIENT_CALL_H
#define QUIVER_CLIENT_CALL_H

#include <pthread.h>
#include <quiver/client.h>
#include <semaphore.h>

#include "store/admin.h"
#include "store/app.h"
#include "store/results.h"
#include "store/rooms.h"
#include "store/schedules.h"
#include "store/store.h"

/* Zero it, then set the first three fields and the request. */
struct client_call {
        /* Starts the request at the store.  CALL_START() defines one. */
        void (*start)(struct qv_client *client, struct client_call *call);
        /* Copies what is wanted from the reply, whose memory is then freed.  On the client's thread, and only after
         * success; may be NULL. */
        void (*take)(struct client_call *call);
        void *self;      /* for take() */
        bool is_patient; /* waiting is its purpose, so it is never reported as slow */

        union {
                struct store_request request;
                struct store_open open;
                struct store_submit submit;
                struct store_reply reply;
                struct store_consume consume;
                struct store_commit commit;
                struct store_count count;
                struct store_list list;
                struct store_find find;
                struct store_cancel cancel;
                struct store_reschedule reschedule;
                struct store_move move;
                struct store_dead dead;
                struct store_dead_groups dead_groups;
                struct store_keys keys;
                struct store_key_act key_act;
                struct store_desired_get desired_get;
                struct store_desired_set desired_set;
                struct store_status_list status_list;
                struct store_import import;
                struct store_remembered_list remembered_list;
                struct store_fsck fsck;
                struct store_app_get app_get;
                struct store_app_set app_set;
                struct store_schedule_list schedule_list;
                struct store_schedule_set schedule_set;
                struct store_room_list room_list;
                struct store_room_read room_read;
                struct store_room_append room_append;
                struct store_room_set room_set;
                struct store_room_truncate room_truncate;
                struct store_room_delete room_delete;
        };

        /* private */
        struct qv_client *client;
        struct client_call *next;
        uint64_t started_ns; /* when the client's thread took it up */
        sem_t ended;
};

/* start_OP() for one of the operations above: CALL_START(submit). */
#define CALL_START(op)                                                                                                 \
        static void start_##op(struct qv_client *client, struct client_call *call)                                     \
        {                                                                                                              \
                store_##op(client_store(client), &call->op);                                                           \
        }

/* Starts the request and waits for it.  Any thread except the client's.  0, or -errno with the text set. */
int client_call(struct qv_client *client, struct client_call *call, struct error *error);

/* For an interactive program: slow() is called on the caller's thread when a call of any handle, opening included, has
 * had no answer for a second.  Set it before the first handle is opened. */
void client_when_slow(void (*slow)(void *self), void *self);

/* Opens a store with any options; tests create one with may_create.  `*options` is only read. */
int client_open(const struct store_options *options, struct qv_client **ret_client, struct error *error);

/* Borrowed; only for the client's thread. */
struct store *client_store(struct qv_client *client);

/* The rooms that the handle follows (client/follow.c); on the client's thread. */
struct client_follows *client_follows(struct qv_client *client);
struct uv_loop_s *client_loop(struct qv_client *client);

/* The nonce under which the handle consumes results. */
const uint8_t *client_consumer(const struct qv_client *client);

/* The store's description from when it was opened. */
const struct store_info *client_store_info(const struct qv_client *client);

/* The state folder of the configuration that the handle was opened with; NULL: none.  Set once, by the opener. */
void client_set_state(struct qv_client *client, const char *state);
const char *client_state(const struct qv_client *client);

/* This thread's error text, emptied.  Every function of client.h begins with it. */
struct error *client_error_start(void);

#endif
