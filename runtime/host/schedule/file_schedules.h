/* file_schedules.h: sees to it that the schedules of this host's configuration stand in the store (schedules_apply.h
 * says how hosts agree): when the host starts, after a reload, when another host has taken up a newer configuration,
 * and again after a failure. */
#ifndef QUIVER_HOST_SCHEDULE_FILE_SCHEDULES_H
#define QUIVER_HOST_SCHEDULE_FILE_SCHEDULES_H

#include <jansson.h>
#include <uv.h>

#include "config/config.h"
#include "look/schedules_apply.h"
#include "store/admin.h"

struct file_schedules {
        struct store *store; /* set by the caller; NULL: it is not open */
        const char *host;    /* set by the caller */
        uv_timer_t timer;    /* the next try */
        uint64_t version;    /* of the configuration in force on this host */
        bool is_stopped;
        bool has_failed;              /* The last pass could not be made. */
        struct schedules_apply *pass; /* under way */
        struct schedules_apply *next; /* after it, or when the timer fires */
        struct schedules_apply *last; /* how it went; NULL: none was made */
        char failure[ERROR_TEXT_MAX]; /* what was said last */
};

void file_schedules_init(struct file_schedules *f, uv_loop_t *loop);
/* These are in force on this host. */
void file_schedules_take(struct file_schedules *f, const struct config *config);
/* The desired state was read: is another configuration in force than the one that is known here? */
void file_schedules_desired(
        struct file_schedules *f, const struct config *config, const struct store_desired *items, uint32_t count);
/* Adds "schedules" to the status document, if the configuration has some or a person should know of something. */
void file_schedules_report(const struct file_schedules *f, json_t *document);
/* Starts nothing any more. */
void file_schedules_stop(struct file_schedules *f);
void file_schedules_close(struct file_schedules *f);
void file_schedules_free(struct file_schedules *f);

#endif
