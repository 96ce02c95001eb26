/* pool_calls.c: calls of the host's services by runners' seats, and the answers on their way back. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/memory.h"
#include "host/pool/pool_call.h"
#include "host/pool/pool_io_private.h"

/* A seat that gives up waiting may call again while its previous call is still under way.  This bounds the calls per
 * seat of a runner that does so on purpose. */
#define CALLS_OF_A_SEAT 4u

static bool reply(struct process *p, uint32_t seat, uint32_t word, int status, uint64_t first, uint64_t second)
{
        const uint64_t numbers[2] = { first, second };
        return ring_host_reply(&p->ring, seat, word, status, numbers);
}

bool pool_call_answer(struct pool_call *call, int status, uint64_t number, uint64_t second_number)
{
        struct process *p = call->process;
        bool is_awaited = p && reply(p, call->seat, call->word, status, number, second_number);
        if (p)
                DL_DELETE(p->calls, call);
        free(call->bytes);
        free(call);
        return is_awaited;
}

/* The word of the seat's latest call under way, and how many calls it has. */
static uint32_t latest_of(const struct process *p, uint32_t seat, uint32_t *ret_count)
{
        uint32_t word = 0;
        *ret_count = 0;
        for (const struct pool_call *call = p->calls; call; call = call->next) {
                if (call->seat != seat)
                        continue;
                word = call->word;
                ++*ret_count;
        }
        return word;
}

static void pass_on(struct pool_io *io, struct process *p, uint32_t seat, const struct ring_call_view *view)
{
        struct pool_call *call = memory_zero(1, sizeof(*call));
        call->service = (enum ring_service)view->service;
        call->pid = p->handle.pid;
        call->ticket = view->ticket;
        call->number = view->number;
        memcpy(call->name, view->name, sizeof(call->name));
        call->bytes = memory_zero(view->size + 1, 1);
        memcpy(call->bytes, view->bytes, view->size);
        call->size = view->size;
        call->process = p;
        call->seat = seat;
        call->word = view->word;
        DL_APPEND(p->calls, call);
        io->events->call(io->owner, call, pool_io_task(p, view->ticket));
}

void pool_calls_take(struct pool_io *io, struct process *p)
{
        for (uint32_t seat = 0; seat < io->shape.seats; seat++) {
                struct ring_call_view view;
                uint32_t count;
                uint32_t known = latest_of(p, seat, &count);
                if (!ring_host_call(&p->ring, seat, known, &view))
                        continue;
                if (view.service >= RING_SERVICES || !(io->start.can_call & 1u << view.service))
                        (void)reply(p, seat, view.word, -ENOTSUP, 0, 0);
                else if (count >= CALLS_OF_A_SEAT)
                        (void)reply(p, seat, view.word, -EAGAIN, 0, 0);
                else
                        pass_on(io, p, seat, &view);
        }
}

void pool_calls_forget(struct process *p)
{
        while (p->calls) {
                struct pool_call *call = p->calls;
                DL_DELETE(p->calls, call);
                call->process = NULL;
        }
}
