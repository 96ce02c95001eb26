/* events.h: a task's history in the form of client.h, copied behind its owner. */
#ifndef QUIVER_CLIENT_EVENTS_H
#define QUIVER_CLIENT_EVENTS_H

#include <quiver/client.h>
#include <string.h>

#include "task/note.h"

/* Copies the text with a NUL to *at, and moves *at past it. */
static inline const char *text_put(char **at, struct span text)
{
        char *start = *at;
        if (text.size)
                memcpy(start, text.data, text.size);
        start[text.size] = 0;
        *at = start + text.size + 1;
        return start;
}

/* The number of events, and the bytes that their texts take. */
static inline size_t events_measure(struct span events, size_t *ret_bytes)
{
        struct note_event event;
        size_t count = 0;
        *ret_bytes = 0;
        for (; note_event_next(&events, &event); count++)
                *ret_bytes += event.kind.size + 1 + event.text.size + 1;
        return count;
}

/* Copies the events to `to` and their texts to *at; both have enough room. */
static inline void events_copy(struct span events, struct qv_client_event *to, char **at)
{
        struct note_event event;
        for (; note_event_next(&events, &event); to++) {
                to->at_ms = event.at_ms;
                to->kind = text_put(at, event.kind);
                to->text = text_put(at, event.text);
                for (char *c = *at - 1 - event.text.size; *c; c++)
                        if (*c == NOTE_NEWLINE)
                                *c = '\n';
        }
}

#endif
