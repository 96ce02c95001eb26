/* file_schedules.h: keeps the schedules of this host's configuration in the store (schedules_apply.h says how hosts
 * agree): at the start, after a reload, when another host has applied a newer configuration, and again after a
 * failure. */
#ifndef QUIVER_HOST_SCHEDULE_FILE_SCHEDULES_H
#define QUIVER_HOST_SCHEDULE_FILE_SCHEDULES_H

#include <jansson.h>
#include <uv.h>

#include "config/config.h"
#include "look/schedules_apply.h"
#include "store/admin.h"

struct file_schedules {
        struct store *store; /* set by the caller; NULL: not open */
        const char *host;    /* set by the caller */
        uv_timer_t timer;    /* starts the next try */
        uint64_t version;    /* of the configuration in force on this host */
        bool is_stopped;
        bool has_failed;              /* the last pass failed */
        struct schedules_apply *pass; /* under way */
        struct schedules_apply *next; /* runs after `pass`, or when the timer fires */
        struct schedules_apply *last; /* the last complete pass; NULL: none */
        char failure[ERROR_TEXT_MAX]; /* the failure that was last logged */
};

void file_schedules_init(struct file_schedules *f, uv_loop_t *loop);
/* Applies the schedules of the configuration in force on this host. */
void file_schedules_take(struct file_schedules *f, const struct config *config);
/* The desired state was read: applies the schedules again if another host's configuration is in force that we do not
 * know. */
void file_schedules_desired(
        struct file_schedules *f, const struct config *config, const struct store_desired *items, uint32_t count);
/* Adds "schedules" to the status document, if the configuration has some or there is a conflict. */
void file_schedules_report(const struct file_schedules *f, json_t *document);
/* No pass starts after this. */
void file_schedules_stop(struct file_schedules *f);
void file_schedules_close(struct file_schedules *f);
void file_schedules_free(struct file_schedules *f);

#endif
