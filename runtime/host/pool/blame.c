#include "host/pool/blame.h"

#include <signal.h>

#define NO_SEAT UINT32_MAX

bool blame_was_told(const struct ring_fault_view *fault)
{
        return fault->kind == FAULT_SIGNAL && fault->signal == SIGABRT && fault->code == SI_USER;
}

static uint32_t seat_at_fault(const struct death *death)
{
        for (uint32_t i = 0; i < death->seats; i++)
                if (death->faults[i].kind != FAULT_NONE && !blame_was_told(&death->faults[i]))
                        return i;
        return NO_SEAT;
}

static void set(struct blamed *b, enum outcome outcome, enum blame_why why, bool is_suspect)
{
        b->outcome = outcome;
        b->why = why;
        b->is_suspect = is_suspect;
}

static size_t count_on_seat(const struct blamed *running, size_t count, uint32_t seat)
{
        size_t n = 0;
        for (size_t i = 0; i < count; i++)
                n += running[i].seat == seat;
        return n;
}

/* The host killed the runner because tasks ran for too long: those are charged, their neighbours are not.  In a batch
 * it is unknown which task hung. */
static void blame_overdue(struct blamed *running, size_t count)
{
        for (size_t i = 0; i < count; i++) {
                bool is_overdue = running[i].stopped == BLAME_TIMEOUT || running[i].stopped == BLAME_STALL;
                if (is_overdue && count_on_seat(running, count, running[i].seat) > 1)
                        set(&running[i], OUTCOME_INTERRUPTED, BLAME_UNSURE, true);
                else if (is_overdue)
                        set(&running[i], OUTCOME_TIMED_OUT, running[i].stopped, false);
                else if (running[i].stopped == BLAME_CANCEL)
                        set(&running[i], OUTCOME_INTERRUPTED, BLAME_CANCEL, false);
                else
                        set(&running[i], OUTCOME_INTERRUPTED, BLAME_NEIGHBOUR, false);
        }
}

/* The sender of a SIGKILL is unknown: the handler itself, the OOM killer or a person.  Every other end of a process
 * that the host did not cause leaves a fault record, or can only be caused by the process's own code. */
static bool may_be_from_outside(const struct death *death, enum blame_why killed)
{
        return killed == BLAME_NOTHING && death->signal == SIGKILL;
}

void blame(struct blamed *running, size_t count, const struct death *death, enum blame_why killed, bool is_solo)
{
        if (killed == BLAME_TIMEOUT || killed == BLAME_STALL || killed == BLAME_CANCEL) {
                blame_overdue(running, count);
                return;
        }
        enum blame_why why = killed == BLAME_SCRIBBLE ? BLAME_SCRIBBLE : BLAME_CRASH;
        uint32_t fault = seat_at_fault(death);
        size_t on_seat = count_on_seat(running, count, fault);
        bool is_lone = count == 1 && (on_seat || !may_be_from_outside(death, killed));
        for (size_t i = 0; i < count; i++) {
                struct blamed *b = &running[i];
                if (killed == BLAME_SHUTDOWN)
                        set(b, OUTCOME_INTERRUPTED, BLAME_SHUTDOWN, false);
                else if (is_lone || (is_solo && count == 1) || (on_seat == 1 && b->seat == fault))
                        set(b, OUTCOME_CRASHED, why, false);
                else if (on_seat && b->seat != fault)
                        set(b, OUTCOME_INTERRUPTED, BLAME_NEIGHBOUR, false);
                else
                        /* No seat has a fault record, the record belongs to a batch (which a suspect's runner may have,
                         * too: tasks of one key), or it was a SIGKILL. */
                        set(b, OUTCOME_INTERRUPTED, BLAME_UNSURE, true);
        }
}
