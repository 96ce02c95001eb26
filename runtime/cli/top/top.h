/* top.h: what `quiver top` shows and what its keys do.
 *
 * Plain data, no I/O, no clock: what was fetched and a state go in, text comes out (top_view.c); a key of the keyboard
 * changes the state or says what is to be done (top_keys.c).  top.c has the loop. */
#ifndef QUIVER_CLI_TOP_TOP_H
#define QUIVER_CLI_TOP_TOP_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/span.h"
#include "view/table.h"

enum top_page { TOP_OVERVIEW, TOP_KEYS, TOP_SHARDS, TOP_MEMBERS, TOP_DEAD, TOP_PAGES };
extern const char *const top_page_names[TOP_PAGES]; /* "overview" */

enum top_mode {
        TOP_LIST,
        TOP_DETAIL,
        TOP_HELP,
        TOP_FILTER, /* a filter is being typed */
        TOP_ASK     /* y or n is waited for */
};

enum top_verb { TOP_PAUSE, TOP_RESUME, TOP_REQUEUE, TOP_HOLD, TOP_UNHOLD };
#define TOP_PAUSE_REASON "asked for in quiver top"

/* What a person asked for, until it is done or refused. */
struct top_action {
        enum top_verb verb;
        json_t *item;   /* the row that it is about; NULL: everything (TOP_RESUME) */
        uint64_t count; /* TOP_REQUEUE: so many tasks; set by whoever looked */
};

/* Zeroed, then top_state_init(). */
struct top_state {
        bool is_read_only;
        enum top_page page;
        enum top_mode mode;
        unsigned sort[TOP_PAGES]; /* which of the page's orders */
        struct buffer filter;
        size_t selected;        /* row */
        size_t scroll;          /* of a detail or the help: so many lines are above the screen */
        struct buffer identity; /* of the selected row: where it is after the next fetch */
        struct top_action asked;
        struct buffer message; /* what happened last; escaped */
};

/* What was fetched.  NULL: nothing yet. */
struct top_data {
        json_t *status;       /* as status_as_json() made it */
        json_t *keys;         /* as key_as_json() made them */
        uint64_t keys_total;  /* how many there are */
        struct buffer detail; /* TOP_DETAIL of a key: what key_as_text() made; empty: not looked at */
        uint64_t age_ms;      /* of all this */
        struct buffer error;  /* why the last fetch failed; empty: it did not */
};

void top_state_init(struct top_state *state);
void top_state_free(struct top_state *state);
void top_data_free(struct top_data *data);

/* --- rows (top_rows.c) --- */

/* What the page lists, filtered and in its order; json_decref() it.  The selection follows the row that it was on. */
json_t *top_rows(struct top_state *state, const struct top_data *data);
/* The row is the selected one from now on. */
void top_select(struct top_state *state, const json_t *rows, size_t row);
/* NULL: there is none. */
json_t *top_selected(const struct top_state *state, const json_t *rows);
/* The name of the order that the page has. */
const char *top_sort_name(const struct top_state *state);
unsigned top_sorts(enum top_page page);
/* Appends the bytes that a member stands for, also if they are no text and so in base64. */
void top_bytes(const json_t *item, const char *name, struct buffer *to);
/* Whether the row is a problem, not a handler. */
bool top_is_problem(const json_t *item);

/* --- pages (top_pages.c) --- */

struct top_line {
        char *text; /* escaped */
        enum tone tone;
        bool is_row;
        size_t row;
};

/* Zeroed is empty. */
struct top_lines {
        struct top_line *list;
        size_t count, room;
};

/* Takes the text out of the buffer, which is empty afterwards. */
void top_line_add(struct top_lines *lines, enum tone tone, struct buffer *text);
void top_lines_free(struct top_lines *lines);
/* One sentence about the state of what the page shows. */
void top_title(struct buffer *to, const struct top_state *state, const struct top_data *data);
void top_page_lines(struct top_lines *lines, const struct top_state *state, const json_t *rows);
void top_detail_lines(
        struct top_lines *lines, const struct top_state *state, const struct top_data *data, const json_t *rows);
void top_help_lines(struct top_lines *lines, bool is_read_only);

/* --- the screen (top_view.c) --- */

struct top_size {
        unsigned columns, lines;
        bool has_color;
};

/* At most so many lines of at most so many columns, each with its newline.  state->scroll becomes what there is to
 * scroll at most. */
void top_view(struct buffer *to, struct top_state *state, const struct top_data *data, const json_t *rows,
        const struct top_size *size);

/* The same for a paper: nothing is selected, no key is explained, and what does not fit is counted.  `lines` 0: all. */
void top_print(struct buffer *to, const struct top_state *state, const struct top_data *data, const json_t *rows,
        const struct top_size *size);

/* --- keys (top_keys.c) --- */

enum top_key {
        KEY_ENTER = '\n',
        KEY_TAB = '\t',
        KEY_ESCAPE = 27,
        KEY_BACKSPACE = 127,
        KEY_UP = 256,
        KEY_DOWN,
        KEY_PAGE_UP,
        KEY_PAGE_DOWN,
        KEY_FIRST,
        KEY_LAST,
        KEY_BACK_TAB,
        KEY_UNKNOWN
};

/* The first key of what was read, which is not empty.  Returns how many bytes it has. */
size_t top_key_read(const char *bytes, size_t size, int *ret_key);

enum top_do {
        TOP_DO_NOTHING, /* but draw */
        TOP_DO_QUIT,
        TOP_DO_FETCH, /* look at the store now */
        TOP_DO_COUNT, /* state->asked wants to know how many tasks it is about */
        TOP_DO_ACT,   /* state->asked is agreed to */
        TOP_DO_CANCEL /* it is not */
};

enum top_do top_key(struct top_state *state, const struct top_data *data, const json_t *rows, int key);

/* The command that does the same, for a shell. */
void top_command(struct buffer *to, const struct top_action *action);
/* The question: what will be done, and the command. */
void top_question(struct buffer *to, const struct top_action *action);
/* Nothing is asked any more. */
void top_forget(struct top_state *state);

#endif
