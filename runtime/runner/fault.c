#include "runner/fault.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "runner/output.h"
#include "runner/symbol.h"

#define FRAMES_MAX 24
#define SIGNAL_STACK_SIZE                                                                                              \
        ((size_t)64 << 10) /* wide vector registers take up to 11 KiB of it, the unwinder and symbols 8 KiB */
#define HANDLER_SECONDS 2  /* longer than a backtrace takes */
#define ASKED_WAIT_MS   200
#define STACK_EDGE      ((uintptr_t)64 << 10) /* an access this near to the end of a stack is a stack overflow */
#define NULL_EDGE       ((uint64_t)64 << 10)  /* an access this near to 0 is a null pointer */

static const int fatal[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGTRAP };
#define FATAL_COUNT (sizeof(fatal) / sizeof(*fatal))

static pid_t own_pid;
static bool is_forked;
static _Thread_local struct ring_seat *my_seat;
static _Thread_local uint32_t my_number;
static _Thread_local void *my_stack;           /* the signal stack */
static _Thread_local uintptr_t my_stack_limit; /* the lowest address of the thread's own stack; 0: unknown */
static _Thread_local size_t my_stack_size;

/* The text of the last failed assertion or of the C library's own complaint ("free(): invalid pointer"); NULL: this C
 * library does not keep it. */
struct abort_message {
        unsigned size; /* of the struct and the text */
        char text[];
};
static struct abort_message *const *abort_message;

/* The thread of each seat, which a SIGABRT from the host makes write its backtrace. */
static struct {
        struct ring_seat *seat;
        _Atomic pid_t thread; /* 0: none */
} threads[RING_SEATS_MAX];

/* For threads that do not belong to a seat; NULL: none.  Several may crash at once: the first takes the record. */
static struct ring_fault *thread_record;
static atomic_flag thread_record_is_taken = ATOMIC_FLAG_INIT;

static _Atomic int asked_count; /* seats that were asked and have not written their backtrace yet */

/* --- the record -------------------------------------------------------------------------------------------------- */

/* Publishes kind, signal and address before the backtrace is made: making it may fault again. */
static void note(struct ring_fault *fault, enum ring_fault_kind kind, int signal, int code, uint64_t address)
{
        fault->signal = signal;
        fault->code = code;
        fault->address = address;
        fault->text_size = fault->cause_size = 0;
        memset(fault->places, 0, sizeof(fault->places));
        atomic_store_explicit(&fault->kind, kind, memory_order_release);
}

static void put_frame(struct ring_fault *fault, struct signal_text *text, uintptr_t address, bool is_return)
{
        size_t line = 0;
        for (const char *at = text->text + fault->cause_size; (at = strchr(at, '\n')); at++)
                line++;
        uint64_t place = symbol_put(text, address, is_return);
        if (line < RING_FAULT_LINES)
                fault->places[line] = place;
        signal_text_put(text, "\n");
        fault->text_size = (uint32_t)text->used; /* updated after each frame, because the next one may fault */
}

static uintptr_t program_counter(const ucontext_t *context)
{
#if defined(__x86_64__)
        return (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
        return (uintptr_t)context->uc_mcontext.pc;
#else
        return (uintptr_t)context->uc_mcontext.__gregs[REG_PC];
#endif
}

/* After a call through an invalid pointer the unwinder has no function to start from.  The call has saved the return
 * address, which names the caller. */
static uintptr_t caller_of_nowhere(const ucontext_t *context)
{
#if defined(__x86_64__)
        return *(const uintptr_t *)context->uc_mcontext.gregs[REG_RSP];
#elif defined(__aarch64__)
        return (uintptr_t)context->uc_mcontext.regs[30];
#else
        return (uintptr_t)context->uc_mcontext.__gregs[REG_RA];
#endif
}

static bool is_runner_code(const void *address)
{
        extern const char __executable_start[], etext[]; /* set by the linker */
        return (uintptr_t)address >= (uintptr_t)__executable_start && (uintptr_t)address < (uintptr_t)etext;
}

/* How many of `count` frames are left without the outermost ones, which start the thread and the seat and are the same
 * in every trace. */
static int without_start(void *const *frames, int count)
{
        int left = count;
        while (left && !is_runner_code(frames[left - 1]))
                left--;
        while (left && is_runner_code(frames[left - 1]))
                left--;
        return left ? left : count;
}

/* How often the frame at `i` repeats: one line is enough for an endless recursion. */
static int count_repeats(void *const *frames, int count, int i)
{
        int repeats = 0;
        while (i + 1 + repeats < count && frames[i + 1 + repeats] == frames[i])
                repeats++;
        return repeats;
}

/* Writes the frames of the interrupted code, without those of the signal handler. */
static void put_interrupted(struct ring_fault *fault, struct signal_text *text, const ucontext_t *context)
{
        void *frames[FRAMES_MAX + 4];
        uintptr_t at = program_counter(context);
        int count = without_start(frames, backtrace(frames, FRAMES_MAX + 4));
        int i = 0;
        while (i < count && (uintptr_t)frames[i] != at)
                i++;
        put_frame(fault, text, at, false);
        if (i == count)
                put_frame(fault, text, caller_of_nowhere(context), true);
        for (i++; i < count; i++) {
                int repeats = count_repeats(frames, count, i);
                put_frame(fault, text, (uintptr_t)frames[i], true);
                if (repeats > 1) {
                        signal_text_put(text, "and again, ");
                        signal_text_put_number(text, repeats);
                        signal_text_put(text, " times or more\n");
                        i += repeats;
                }
        }
        fault->text_size = (uint32_t)text->used;
}

/* At the limit malloc() returns NULL, and a plugin that does not check it crashes. */
static void put_memory_limit(struct signal_text *text)
{
        struct rlimit limit;
        if (getrlimit(RLIMIT_DATA, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
                return;
        signal_text_put(text, "a null pointer, under a memory limit of ");
        signal_text_put_number(text, (int64_t)(limit.rlim_cur >> 20));
        signal_text_put(text, " MiB (limits.memory): malloc may have returned NULL\n");
}

/* Adds the cause as far as the signal alone does not show it. */
static void put_cause(struct signal_text *text, int signal, uint64_t address)
{
        const struct abort_message *message = abort_message ? *abort_message : NULL;
        if (signal == SIGSEGV && my_stack_limit && address < my_stack_limit + STACK_EDGE &&
                address + STACK_EDGE > my_stack_limit) {
                signal_text_put(text, "stack overflow: this thread's stack has ");
                signal_text_put_number(text, (int64_t)(my_stack_size >> 10));
                signal_text_put(text, " KiB\n");
        }
        if (signal == SIGSEGV && address < NULL_EDGE)
                put_memory_limit(text);
        if (signal == SIGABRT && message && message->size > sizeof(*message) && message->text[0]) {
                signal_text_put(text, message->text);
                if (text->used && text->text[text->used - 1] != '\n')
                        signal_text_put(text, "\n");
        }
}

static void put_signal_trace(struct ring_fault *fault, const ucontext_t *context)
{
        struct signal_text text;
        signal_text_init(&text, fault->text, sizeof(fault->text));
        if (fault->code != SI_USER)
                put_cause(&text, fault->signal, fault->address);
        fault->cause_size = (uint32_t)text.used;
        put_interrupted(fault, &text, context);
}

/* For use outside a signal handler: writes all frames except the `skipped` innermost ones. */
static void put_call_trace(struct ring_fault *fault, const char *first_line, int skipped)
{
        void *frames[FRAMES_MAX];
        struct signal_text text;
        signal_text_init(&text, fault->text, sizeof(fault->text));
        signal_text_put(&text, first_line);
        signal_text_put(&text, "\n");
        fault->text_size = fault->cause_size = (uint32_t)text.used;
        int count = without_start(frames, backtrace(frames, FRAMES_MAX));
        for (int i = skipped; i < count; i++)
                put_frame(fault, &text, (uintptr_t)frames[i], true);
}

/* --- signals ----------------------------------------------------------------------------------------------------- */

static void set_default(int signal)
{
        struct sigaction action = { .sa_handler = SIG_DFL };
        sigset_t set;
        (void)sigaction(signal, &action, NULL);
        (void)sigemptyset(&set);
        (void)sigaddset(&set, signal);
        (void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

/* Ends the process by that signal, so that the wait status shows it. */
static _Noreturn void die_of(int signal)
{
        set_default(signal);
        (void)syscall(SYS_tgkill, getpid(), gettid(), signal);
        _exit(128 + signal);
}

static bool is_from_outside(const siginfo_t *info)
{
        return info->si_code <= 0 && info->si_pid != own_pid;
}

static bool is_asked(const siginfo_t *info)
{
        return info->si_code == SI_QUEUE && info->si_value.sival_ptr == threads;
}

/* Whether the host has raised the stop flag for the task that the seat holds. */
static bool is_told_to_stop(const struct ring_seat *seat)
{
        uint64_t ticket = atomic_load(&seat->ticket);
        return ticket && atomic_load(&seat->stop) == RING_STOP(ticket);
}

/* Writes the backtrace of this thread's seat.  The code SI_USER marks it as an abort by the host and not a crash. */
static void say_where(const ucontext_t *context)
{
        note(&my_seat->fault, FAULT_SIGNAL, SIGABRT, SI_USER, 0);
        put_signal_trace(&my_seat->fault, context);
}

/* Makes every stopped seat write its backtrace.  The kernel may have delivered SIGABRT to any thread, also to that of a
 * stopped seat. */
static void ask_stopped_seats(const ucontext_t *context)
{
        siginfo_t info;
        memset(&info, 0, sizeof(info));
        info.si_signo = SIGABRT;
        info.si_code = SI_QUEUE;
        info.si_pid = own_pid;
        info.si_value.sival_ptr = threads;
        for (size_t i = 0; i < RING_SEATS_MAX; i++) {
                pid_t thread = atomic_load(&threads[i].thread);
                if (!thread || thread == gettid() || !is_told_to_stop(threads[i].seat))
                        continue;
                atomic_fetch_add(&asked_count, 1);
                if (syscall(SYS_rt_tgsigqueueinfo, own_pid, thread, SIGABRT, &info) < 0)
                        atomic_fetch_sub(&asked_count, 1);
        }
        if (my_seat && is_told_to_stop(my_seat))
                say_where(context);
        for (int i = 0; i < ASKED_WAIT_MS && atomic_load(&asked_count) > 0; i++)
                (void)nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

/* Writes this seat's backtrace for ask_stopped_seats() on another thread, and waits until that ends the process. */
static _Noreturn void answer_where(const ucontext_t *context)
{
        if (my_seat)
                say_where(context);
        atomic_fetch_sub(&asked_count, 1);
        for (;;)
                (void)pause();
}

/* The record of this thread; NULL: it has none.  Called once by a process that dies. */
static struct ring_fault *own_record(void)
{
        if (my_seat)
                return &my_seat->fault;
        return thread_record && !atomic_flag_test_and_set(&thread_record_is_taken) ? thread_record : NULL;
}

/* All signals in `fatal` are blocked here: a second fault ends the process at once, and the record keeps what was
 * written until then. */
static void on_fatal(int signal, siginfo_t *info, void *context)
{
        if (getpid() != own_pid)
                die_of(signal);
        /* An unwinder in an endless loop must not keep the process alive. */
        set_default(SIGALRM);
        (void)alarm(HANDLER_SECONDS);
        if (is_from_outside(info)) {
                if (signal == SIGABRT)
                        ask_stopped_seats(context);
        } else if (is_asked(info)) {
                answer_where(context);
        } else {
                bool has_address = info->si_code > 0;
                struct ring_fault *record = own_record();
                if (record) {
                        note(record, FAULT_SIGNAL, signal, info->si_code, has_address ? (uint64_t)info->si_addr : 0);
                        put_signal_trace(record, context);
                }
        }
        die_of(signal);
}

/* --- exit() ------------------------------------------------------------------------------------------------------ */

/* Ends the process here: the plugin's exit handlers and destructors may hang, or crash because seats still run. */
static void on_exit_called(int status, void *unused)
{
        (void)unused;
        if (getpid() != own_pid)
                return;
        struct ring_fault *record = own_record();
        if (record) {
                note(record, FAULT_EXIT, 0, status, 0);
                put_call_trace(record, "exit() was called", 2);
        }
        output_flush();
        _exit(status);
}

_Noreturn void fault_give_up(const char *text)
{
        if (my_seat) {
                note(&my_seat->fault, FAULT_EXIT, 0, EXIT_FAILURE, 0);
                put_call_trace(&my_seat->fault, text, 1);
        }
        _exit(EXIT_FAILURE);
}

/* --- set-up ------------------------------------------------------------------------------------------------------ */

static void on_fork_in_child(void)
{
        is_forked = true;
}

bool fault_is_forked(void)
{
        return is_forked;
}

void fault_watch_threads(struct ring_fault *record)
{
        thread_record = record;
}

void fault_catch_exit(void)
{
        (void)on_exit(on_exit_called, NULL);
}

void fault_install(void)
{
        void *frame;
        own_pid = getpid();
        (void)backtrace(&frame, 1); /* loads the unwinder now: a signal handler must not allocate */
        struct sigaction action = { .sa_sigaction = on_fatal, .sa_flags = SA_SIGINFO | SA_ONSTACK };
        (void)sigemptyset(&action.sa_mask);
        for (size_t i = 0; i < FATAL_COUNT; i++)
                (void)sigaddset(&action.sa_mask, fatal[i]);
        for (size_t i = 0; i < FATAL_COUNT; i++)
                (void)sigaction(fatal[i], &action, NULL);
        (void)pthread_atfork(NULL, NULL, on_fork_in_child);
        abort_message = dlvsym(RTLD_DEFAULT, "__abort_msg", "GLIBC_PRIVATE");
        fault_catch_exit();
}

static void find_stack(void)
{
        pthread_attr_t attributes;
        void *lowest = NULL;
        my_stack_limit = 0;
        if (pthread_getattr_np(pthread_self(), &attributes) != 0)
                return;
        if (pthread_attr_getstack(&attributes, &lowest, &my_stack_size) == 0)
                my_stack_limit = (uintptr_t)lowest;
        (void)pthread_attr_destroy(&attributes);
}

int fault_begin(struct ring_seat *seat, uint32_t number)
{
        void *memory = mmap(NULL, SIGNAL_STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
                return -errno;
        stack_t stack = { .ss_sp = memory, .ss_size = SIGNAL_STACK_SIZE };
        if (sigaltstack(&stack, NULL) < 0) {
                int r = -errno;
                (void)munmap(memory, SIGNAL_STACK_SIZE);
                return r;
        }
        my_stack = memory;
        find_stack();
        my_seat = seat;
        my_number = number;
        threads[number].seat = seat;
        atomic_store(&threads[number].thread, gettid());
        return 0;
}

void fault_end(void)
{
        atomic_store(&threads[my_number].thread, 0);
        my_seat = NULL;
        (void)sigaltstack(&(stack_t){ .ss_flags = SS_DISABLE }, NULL);
        (void)munmap(my_stack, SIGNAL_STACK_SIZE);
}
