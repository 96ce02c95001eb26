#include "host/pool/blame.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define NO_SEAT UINT32_MAX

/* The record of a seat that the host's SIGABRT made write its backtrace (runner/fault.h): not a crash. */
static bool was_told(const struct ring_fault_view *fault)
{
        return fault->kind == FAULT_SIGNAL && fault->signal == SIGABRT && fault->code == SI_USER;
}

static uint32_t seat_at_fault(const struct death *death)
{
        for (uint32_t i = 0; i < death->seats; i++)
                if (death->faults[i].kind != FAULT_NONE && !was_told(&death->faults[i]))
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
                else if (is_lone || is_solo || (on_seat == 1 && b->seat == fault))
                        set(b, OUTCOME_CRASHED, why, false);
                else if (on_seat && b->seat != fault)
                        set(b, OUTCOME_INTERRUPTED, BLAME_NEIGHBOUR, false);
                else
                        /* No seat has a fault record, the record belongs to a batch, or it was a SIGKILL. */
                        set(b, OUTCOME_INTERRUPTED, BLAME_UNSURE, true);
        }
}

static void describe_end(char *text, size_t size, const struct death *death)
{
        const char *name = sigabbrev_np(death->signal);
        if (name)
                (void)snprintf(text, size, "killed by SIG%s", name);
        else if (death->signal)
                (void)snprintf(text, size, "killed by signal %d", death->signal);
        else
                (void)snprintf(text, size, "the process ended with exit status %d", death->exit_status);
}

static void describe_crash(char *text, size_t size, uint32_t seat, const struct death *death)
{
        if (!death) {
                (void)snprintf(text, size, "crashed");
                return;
        }
        const struct ring_fault_view *f = seat < death->seats ? &death->faults[seat] : NULL;
        size_t n = (size_t)snprintf(text, size, "crashed: ");
        if (!f || f->kind == FAULT_NONE) {
                describe_end(text + n, size - n, death);
                return;
        }
        if (f->kind == FAULT_EXIT) {
                /* The first line is the reason: exit() was called, the thread was ended, descriptors were closed. */
                int first = (int)strcspn(f->text, "\n");
                (void)snprintf(text + n, size - n, "%.*s, exit status %d%s", first, f->text, death->exit_status,
                        f->text + first);
                return;
        }
        const char *name = f->signal > 0 && f->signal < 65 ? sigabbrev_np(f->signal) : NULL;
        char place[40] = "";
        /* A signal that a process sends itself, as abort() does, has no address. */
        if (f->code > 0)
                (void)snprintf(place, sizeof(place), " at address 0x%" PRIx64, f->address);
        (void)snprintf(text + n, size - n, "SIG%s%s%s%s", name ? name : "?", place, *f->text ? "\n" : "", f->text);
}

/* The seat's backtrace at the host's SIGABRT; "" if there is none. */
static const char *last_stand(uint32_t seat, const struct death *death)
{
        return seat < death->seats && was_told(&death->faults[seat]) ? death->faults[seat].text : "";
}

const char *blame_text(char *text, size_t size, enum blame_why why, uint32_t seat, const struct death *death)
{
        switch (why) {
        case BLAME_CRASH:
                describe_crash(text, size, seat, death);
                break;
        case BLAME_TIMEOUT:
                (void)snprintf(text, size, "timed out: it ran past its timeout and did not stop when told\n%s",
                        last_stand(seat, death));
                break;
        case BLAME_STALL:
                (void)snprintf(text, size, "timed out: no progress for too long, and it did not stop when told\n%s",
                        last_stand(seat, death));
                break;
        case BLAME_SCRIBBLE:
                (void)snprintf(text, size, "crashed: the handler wrote over the memory shared with the host");
                break;
        case BLAME_NEIGHBOUR:
                (void)snprintf(text, size, "interrupted: another task of the same process crashed or hung");
                break;
        case BLAME_UNSURE:
                (void)snprintf(text, size,
                        "interrupted: the process died, and which of its tasks caused it is unknown; "
                        "this one runs alone next");
                break;
        case BLAME_SHUTDOWN:
                (void)snprintf(text, size, "interrupted: the host ended the process");
                break;
        case BLAME_CANCEL:
                (void)snprintf(text, size, "interrupted: cancelled");
                break;
        case BLAME_INIT:
                (void)snprintf(text, size, "init did not return in time");
                break;
        case BLAME_NOTHING:
                *text = 0;
                break;
        }
        return text;
}
