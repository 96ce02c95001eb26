/* judge.h: what the figures mean, as findings.  Without I/O and without a clock. */
#ifndef QUIVER_CLI_DOCTOR_JUDGE_H
#define QUIVER_CLI_DOCTOR_JUDGE_H

#include <jansson.h>

#include "cli/doctor/figures.h"
#include "cli/doctor/findings.h"

/* All of the figures. */
void doctor_judge(const struct doctor_figures *figures, struct findings *to);

/* Its parts. */
void judge_deployment(const struct doctor_deployment *d, struct findings *to);
void judge_clock(const struct doctor_figures *figures, struct findings *to);
void judge_certificates(const struct doctor_certificate *list, size_t count, struct findings *to);
void judge_coordination(const struct doctor_coordination *c, struct findings *to);
void judge_app(const struct doctor_app *app, struct findings *to);
void judge_machine(const struct doctor_machine *m, struct findings *to);
void judge_files(const struct doctor_files *files, struct findings *to);

/* The problems of an app as `quiver status` has them (view/problems.h). */
void judge_problems(const json_t *problems, struct findings *to);

#endif
