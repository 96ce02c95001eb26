#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/json.h"
#include "cli/vet/vet.h"

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
        json_t *json = json_object();
        json_t *list = json_array();
        for (size_t i = 0; i < report->count; i++) {
                const struct vet_finding *f = &report->findings[i];
                json_t *finding = json_object();
                (void)json_object_set_new(finding, "level", json_string(level_names[f->level]));
                (void)json_object_set_new(finding, "check", json_string(f->check));
                (void)json_object_set_new(finding, "text", cli_json_text(f->text));
                if (f->hint)
                        (void)json_object_set_new(finding, "hint", cli_json_text(f->hint));
                (void)json_array_append_new(list, finding);
        }
        (void)json_object_set_new(json, "plugin", cli_json_text(request->plugin));
        if (probe->is_ready) {
                (void)json_object_set_new(json, "name", cli_json_text(probe->name));
                (void)json_object_set_new(json, "version", cli_json_text(probe->version));
        }
        (void)json_object_set_new(json, "ok", json_boolean(!report->errors));
        (void)json_object_set_new(json, "errors", json_integer((json_int_t)report->errors));
        (void)json_object_set_new(json, "warnings", json_integer((json_int_t)report->warnings));
        (void)json_object_set_new(json, "seed", json_integer((json_int_t)request->seed));
        (void)json_object_set_new(json, "findings", list);
        (void)json_dumpf(json, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
        (void)putchar('\n');
        json_decref(json);
}

void vet_finish(const struct vet_report *report, const struct vet_request *request, const struct plugin_report *probe)
{
        if (report->is_json) {
                finish_json(report, request, probe);
                return;
        }
        (void)printf("%s: %zu error%s, %zu warning%s\n", request->plugin, report->errors,
                report->errors == 1 ? "" : "s", report->warnings, report->warnings == 1 ? "" : "s");
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
