/* findings.h: what `quiver doctor` says: each finding has a level, one sentence with the figure, and what to do. */
#ifndef QUIVER_CLI_DOCTOR_FINDINGS_H
#define QUIVER_CLI_DOCTOR_FINDINGS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

enum finding_level {
        FINDING_OK,
        FINDING_NOTE,    /* worth knowing; nothing must be done */
        FINDING_WARNING, /* it will hurt one day */
        FINDING_ERROR,   /* something does not work, or tasks may be lost */
        FINDING_LEVELS
};

/* In the order in which they are shown. */
enum finding_subject {
        SUBJECT_SETTINGS,
        SUBJECT_CLOCK,
        SUBJECT_STORE,
        SUBJECT_COORDINATION,
        SUBJECT_APP,
        SUBJECT_HOSTS,
        SUBJECT_FILES,
        SUBJECT_MACHINE,
        SUBJECTS
};

struct finding {
        enum finding_level level;
        enum finding_subject subject;
        const char *check; /* which one, for programs: "redis-eviction" */
        char *text;
        char *advice; /* a command or a setting; "" for what needs nothing */
};

/* Zero-initialised is empty. */
struct findings {
        struct finding *items;
        size_t count;
        size_t counts[FINDING_LEVELS];
};

/* `advice` is copied; NULL: nothing is to be done.  What comes from a server or a file is escaped. */
__attribute__((format(printf, 6, 7))) void findings_add(struct findings *f, enum finding_level level,
        enum finding_subject subject, const char *check, const char *advice, const char *format, ...);
void findings_free(struct findings *f);

const char *finding_level_name(enum finding_level level);
const char *finding_subject_name(enum finding_subject subject);

/* By subject, the worst first; what is ok is one line unless `has_all`. */
void findings_as_text(struct buffer *to, const struct findings *f, bool has_all, bool has_color);
/* An array of { level, subject, check, text, advice }. */
json_t *findings_as_json(const struct findings *f);

#endif
