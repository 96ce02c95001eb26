/* call.h: how the harness waits for an answer, shared by the files that make calls. */
#ifndef QUIVER_TESTS_CONTRACT_CALL_H
#define QUIVER_TESTS_CONTRACT_CALL_H

#include "harness.h"

struct call_waiting {
        struct world *w;
        bool is_done;
};

struct call_waiting call_prepare(struct world *w, struct store_request *request,
        void (*copy)(struct world *w, struct store_request *request), struct call_waiting *waiting);
/* The rest of a call that has been started: done() must not have been called inside the start. */
int call_finish(struct world *w, struct store_request *request, struct call_waiting *waiting);

/* Starts a request, waits for it and returns its status.  `keep` copies what the reply points to. */
#define CALL(w, start, struct_pointer, keep)                                                                           \
        ({                                                                                                             \
                struct call_waiting waiting_;                                                                          \
                (void)call_prepare((w), &(struct_pointer)->request, (keep), &waiting_);                                \
                start((w)->store, (struct_pointer));                                                                   \
                call_finish((w), &(struct_pointer)->request, &waiting_);                                               \
        })

/* Copies that live to the end of the test. */
struct span keep(struct world *w, struct span bytes);
void *keep_array(struct world *w, const void *array, size_t count, size_t size);
void keep_note(struct world *w, struct task_note *note);
struct store_task *keep_tasks(struct world *w, const struct store_task *tasks, uint32_t count);
void keep_listed(struct world *w, struct store_listed *listed);

#endif
