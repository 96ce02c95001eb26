#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/print.h"
#include "cli/vet/vet.h"
#include "view/json.h"
#include "view/text.h"

#define INDENT "                        " /* where the texts start */

static const char *const level_names[] = { "ok", "note", "warning", "error" };

/* Line by line, indented; what a terminal should not get is replaced. */
static void print_indented(const char *text)
{
        for (const char *c = text; *c; c++) {
                if (*c == '\n')
                        (void)printf("%s", c[1] ? "\n" INDENT : "");
                else
                        (void)putchar((unsigned char)*c < ' ' || *c == 0x7f ? '?' : *c);
        }
        (void)putchar('\n');
}

static void print_finding(const struct vet_finding *f)
{
        (void)printf("  %-8s %-12s ", level_names[f->level], f->check);
        print_indented(f->text);
        if (f->hint) {
                (void)printf(INDENT);
                print_indented(f->hint);
        }
        (void)fflush(stdout);
}

void vet_find(
        struct vet_report *report, enum vet_level level, const char *check, const char *hint, const char *format, ...)
{
        char text[4096];
        va_list args;
        va_start(args, format);
        (void)vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        report->findings = array_grow(report->findings, report->count, sizeof(*report->findings));
        struct vet_finding *f = &report->findings[report->count++];
        *f = (struct vet_finding){ .level = level, .check = check, .text = text_copy(text), .hint = text_copy(hint) };
        report->errors += level == VET_ERROR;
        report->warnings += level == VET_WARNING;
        if (!report->is_json)
                print_finding(f);
}

static void finish_json(
        const struct vet_report *report, const struct vet_request *request, const struct plugin_report *probe)
{
        json_t *json = json_pack("{s:o}", "plugin", view_json_text(request->args.plugin));
        json_t *list = json_array();
        for (size_t i = 0; i < report->count; i++) {
                const struct vet_finding *f = &report->findings[i];
                json_t *finding = json_pack("{s:s, s:s, s:o}", "level", level_names[f->level], "check", f->check,
                        "text", view_json_text(f->text));
                if (f->hint)
                        (void)json_object_set_new(finding, "hint", view_json_text(f->hint));
                (void)json_array_append_new(list, finding);
        }
        if (probe->is_ready) {
                (void)json_object_set_new(json, "name", view_json_text(probe->name));
                (void)json_object_set_new(json, "version", view_json_text(probe->version));
        }
        (void)json_object_update_new(json,
                json_pack("{s:b, s:I, s:I, s:I, s:o}", "ok", !report->errors, "errors", (json_int_t)report->errors,
                        "warnings", (json_int_t)report->warnings, "seed", (json_int_t)request->seed, "findings", list));
        cli_json_print_wide(json);
}

void vet_finish(const struct vet_report *report, const struct vet_request *request, const struct plugin_report *probe)
{
        if (report->is_json) {
                finish_json(report, request, probe);
                return;
        }
        (void)printf("%s: %zu error%s, %zu warning%s\n", request->args.plugin, report->errors,
                text_plural(report->errors), report->warnings, text_plural(report->warnings));
}

void vet_report_free(struct vet_report *report)
{
        for (size_t i = 0; i < report->count; i++) {
                free(report->findings[i].text);
                free(report->findings[i].hint);
        }
        free(report->findings);
        *report = (struct vet_report){ 0 };
}
