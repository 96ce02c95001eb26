/* vet.h: the parts of `quiver vet`: what is asked for, what is found, and the checks themselves.
 *
 * Nothing of the plugin's is ever run in this process: only a runner loads it. */
#ifndef QUIVER_CLI_VET_VET_H
#define QUIVER_CLI_VET_VET_H

#include "base/buffer.h"
#include "cli/plugin_args.h"
#include "cli/plugin_session.h"

#define VET_PAYLOAD_MAX ((size_t)1 << 20) /* what `quiver try` takes without being asked */

/* Payloads that the author gives. */
struct vet_corpus {
        struct buffer *items;
        size_t count;
};

struct vet_request {
        struct plugin_args args;
        struct plugin_session session; /* its copy is looked at and run */
        uint64_t payloads;             /* 0: as many as is usual */
        uint64_t seed;
        const char *corpus_path; /* NULL: none */
        struct vet_corpus corpus;
        int64_t printed; /* the number of the payload to print, and nothing else; -1: none */
        bool is_quick;
        uint64_t init_ms;
        uint64_t run_ms;     /* for one run of random payloads */
        uint64_t memory_max; /* of a runner; 0: no limit */
        bool is_json;
};

/* --- what was found (vet_report.c) --- */

enum vet_level { VET_OK, VET_NOTE, VET_WARNING, VET_ERROR };

struct vet_finding {
        enum vet_level level;
        const char *check;
        char *text;
        char *hint; /* what to do about it; NULL */
};

struct vet_report {
        bool is_json; /* else each is printed as it is found */
        struct vet_finding *findings;
        size_t count;
        size_t errors, warnings;
};

/* `check` is a word that lives for ever; `hint` is what to do about it, or NULL. */
__attribute__((format(printf, 5, 6))) void vet_find(
        struct vet_report *report, enum vet_level level, const char *check, const char *hint, const char *format, ...);
/* The last words: a summary, or all of it as JSON. */
void vet_finish(const struct vet_report *report, const struct vet_request *request, const struct plugin_report *probe);
void vet_report_free(struct vet_report *report);

/* --- the file (vet_elf.c, vet_links.c) --- */

/* What can be said without running anything.  False: it is no plugin for this machine, and all else is pointless. */
bool vet_elf(const struct vet_request *request, struct vet_report *report);
/* Symbols and libraries that are missing.  `is_loaded`: a runner could open it all the same. */
void vet_links(const struct vet_request *request, bool is_loaded, struct vet_report *report);

/* --- in a runner (vet_init.c, vet_payloads.c) --- */

/* Loads it, inits and closes it once, then many times.  False: it does not get ready. */
bool vet_init(struct vet_request *request, struct plugin_report *ret_probe, struct vet_report *report);
/* Random payloads; with several seats and in batches too if the plugin can. */
void vet_payloads(struct vet_request *request, const struct plugin_report *probe, struct vet_report *report);

/* --- growth (vet_growth.c) --- */

#define VET_QUARTERS 4

/* What a runner held as it went through its tasks.  Starts zeroed. */
struct vet_growth {
        pid_t pid;
        bool is_broken; /* there was more than one runner */
        unsigned quarters;
        uint64_t bytes[VET_QUARTERS]; /* after each quarter of the tasks */
        uint64_t descriptors_first, descriptors_last;
};

void vet_growth_start(struct vet_growth *g, pid_t pid);
/* To be called for each number of settled tasks, while the runner is alive. */
void vet_growth_look(struct vet_growth *g, uint64_t settled, uint64_t all);
void vet_growth_report(const struct vet_growth *g, const char *check, uint64_t all, struct vet_report *report);

/* --- payloads (vet_generate.c) --- */

/* The payload of that number: always the same for the same seed and corpus.  The corpus comes first, as it is; later
 * half of them are made out of it. */
void vet_generate(uint64_t seed, uint64_t number, const struct vet_corpus *corpus, struct buffer *to);
/* A random number below the limit. */
uint64_t vet_below(uint64_t *state, uint64_t limit);

/* --- payloads of the author (vet_corpus.c) --- */

/* A file with a payload per line, or a folder with a payload per file.  0, or -errno with the text set. */
int vet_corpus_load(struct vet_corpus *corpus, const char *path, struct error *error);
void vet_corpus_free(struct vet_corpus *corpus);
/* Appends one of them with a few changes. */
void vet_mutate(uint64_t *state, const struct vet_corpus *corpus, struct buffer *to);

/* --- what to type (vet_command.c) --- */

/* Appends a command for the shell that hands this payload to the plugin by `quiver try`, with `more` options (""). What
 * cannot be typed is made anew by `quiver vet --print`: no file is left behind. */
void vet_put_command(const struct vet_request *request, const char *more, uint64_t number, const struct buffer *payload,
        struct buffer *to);

#endif
