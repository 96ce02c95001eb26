/* id.c: `quiver id`: unique 64-bit ids, and what is in one. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/numbers.h"
#include "cli/command.h"
#include "cli/open.h"
#include "cli/print.h"
#include "client/ids.h"
#include "id/machine.h"
#include "id/text.h"
#include "view/json.h"
#include "view/text.h"

#define BLOCK 4096u

enum { LAYOUT_OF_THE_APP = -1 };

struct id_request {
        const char *config;
        const char *machine;
        const char *text; /* decode */
        uint64_t count;
        int32_t layout; /* enum id_kind, or LAYOUT_OF_THE_APP */
        bool has_base32, has_base58, has_json;
};

static enum id_base base_of(const struct id_request *q)
{
        return q->has_base32 ? ID_BASE_32 : q->has_base58 ? ID_BASE_58 : ID_BASE_10;
}

/* --- giving ------------------------------------------------------------------------------------------------------- */

static void print_block(const struct id_request *q, const struct id_block *block)
{
        char text[ID_TEXT_MAX];
        for (uint32_t i = 0; i < block->count; i++) {
                const char *id = id_format(block->first + i * block->step, base_of(q), text);
                if (q->has_json)
                        (void)printf("{\"id\":\"%s\"}\n", id);
                else
                        (void)puts(id);
        }
}

static int give(struct cli_store *s, void *self)
{
        struct id_request *q = self;
        struct error error = { "" };
        struct id_layout standard;
        uint32_t fixed = SLOT_ANY;
        if (q->layout != LAYOUT_OF_THE_APP)
                standard = id_layout_standard((enum id_kind)q->layout);
        const struct id_layout *layout = q->layout == LAYOUT_OF_THE_APP ? NULL : &standard;
        int r = q->machine ? id_machine(q->machine, layout ? layout : &s->info->record->ids, &fixed, &error) : 0;
        client_ids_set(s->client, layout, fixed, s->config.ids.horizon_ms);
        while (r == 0 && q->count && !ferror(stdout)) {
                struct id_block block;
                r = client_ids_take(s->client, (uint32_t)min_u64(q->count, BLOCK), &block, &error);
                if (r < 0)
                        break;
                print_block(q, &block);
                q->count -= block.count;
        }
        (void)fflush(stdout);
        if (r == -EBUSY || r == -EDOM || r == -EOVERFLOW)
                return cli_fail(s->command, -EINVAL, error.text);
        return r < 0 ? cli_fail(s->command, r, error.text) : EXIT_DONE;
}

/* --- decoding ----------------------------------------------------------------------------------------------------- */

/* Without an option the text itself says it: digits alone are decimal; base 32 has 13 letters, base 58 has 11. */
static enum id_base base_of_text(const struct id_request *q)
{
        size_t size = strlen(q->text);
        if (q->has_base32 || q->has_base58)
                return base_of(q);
        if (strspn(q->text, "0123456789") == size)
                return ID_BASE_10;
        return size > 11 ? ID_BASE_32 : ID_BASE_58;
}

static void show(const struct id_request *q, const struct id_layout *layout, uint64_t id)
{
        struct id_parts parts = id_decompose(layout, id);
        uint64_t at_ms = id_time_ms(layout, parts.time);
        char decimal[ID_TEXT_MAX], base32[ID_TEXT_MAX], base58[ID_TEXT_MAX], at[TEXT_TIME_MAX];
        (void)id_format(id, ID_BASE_10, decimal);
        (void)id_format(id, ID_BASE_32, base32);
        (void)id_format(id, ID_BASE_58, base58);
        if (q->has_json) {
                json_t *o = json_object();
                view_json_set_text(o, "id", decimal);
                view_json_set_text(o, "base32", base32);
                view_json_set_text(o, "base58", base58);
                view_json_set_text(o, "layout", id_kind_name(layout->kind));
                view_json_number(o, "at_ms", at_ms);
                view_json_number(o, "slot", parts.slot);
                view_json_number(o, "sequence", parts.sequence);
                cli_json_print(o);
                return;
        }
        (void)printf("%-9s %s\n%-9s %s\n%-9s %s\n", "id", decimal, "base32", base32, "base58", base58);
        (void)printf("%-9s %s\n%-9s %s\n", "layout", id_kind_name(layout->kind), "time", text_time(at, at_ms));
        if (layout->kind == ID_SNOWFLAKE && layout->slot_bits == 10)
                (void)printf(
                        "%-9s %u (data centre %u, worker %u)\n", "slot", parts.slot, parts.slot >> 5, parts.slot & 31);
        else
                (void)printf("%-9s %u\n", "slot", parts.slot);
        (void)printf("%-9s %" PRIu64 "\n", "sequence", parts.sequence);
}

static int decode_as(struct id_request *q, const struct id_layout *layout)
{
        uint64_t id;
        if (!id_parse(span_of_text(q->text), base_of_text(q), &id)) {
                (void)fprintf(stderr,
                        "quiver id: %s is no id in base %d; --base32 or --base58 says what it is written in\n", q->text,
                        (int)base_of_text(q));
                return EXIT_FAILED;
        }
        show(q, layout, id);
        return EXIT_DONE;
}

static int decode(struct cli_store *s, void *self)
{
        return decode_as(self, &s->info->record->ids);
}

/* --- the command -------------------------------------------------------------------------------------------------- */

static const struct option_choice layouts[] = { { "snowflake", ID_SNOWFLAKE }, { "sonyflake", ID_SONYFLAKE }, { 0 } };

int cmd_id(int argc, char **argv)
{
        struct id_request q = { .count = 1, .layout = LAYOUT_OF_THE_APP };
        const struct option table[] = {
                OPT_CONFIG(&q.config),
                OPT_NUMBER("-n, --count N", &q.count, 1, UINT32_MAX, "so many, each larger than the one before"),
                OPT_CHOICE("--layout LAYOUT", &q.layout, layouts,
                        "snowflake or sonyflake, with its own bits and epoch (default: the app's)"),
                OPT_TEXT("--machine SLOT", &q.machine,
                        "this slot, or \"address\"; refused if another has it (default: any)"),
                OPT_FLAG("--base32", &q.has_base32, "13 letters instead of 19 digits"),
                OPT_FLAG("--base58", &q.has_base58, "11 letters"),
                OPT_JSON(&q.has_json),
        };
        struct options o = {
                .usage = "id [-n N] | decode ID",
                .about =
                        "Prints unique 64-bit ids, made of the time, a slot that this process leases meanwhile, and a\n"
                        "sequence. No two of an app and a layout are ever equal, whatever crashes and whatever clocks\n"
                        "do: a clock that is behind by up to a second is waited for, one further behind is an error.\n"
                        "decode shows what is in an id; with --layout it needs no store. An app has one layout\n"
                        "(quiver app show); ids of two layouts may be equal.",
                OPTIONS_TABLE(table),
                .words_max = 2,
                .examples = "  quiver id\n"
                            "  quiver id -n 1000 --base58\n"
                            "  quiver id decode 1427970479175499776 --layout snowflake\n",
        };
        int code;
        if (!options_read(&o, argc, argv, &code))
                return code;
        if (q.has_base32 && q.has_base58)
                return options_wrong(&o, "--base32 or --base58, not both");
        if (!o.words_count)
                return cli_act(&o, q.config, give, &q);
        if (strcmp(o.words[0], "decode") != 0 || o.words_count != 2)
                return options_wrong(&o, "which id? quiver id decode ID");
        q.text = o.words[1];
        if (q.layout == LAYOUT_OF_THE_APP)
                return cli_act(&o, q.config, decode, &q);
        struct id_layout layout = id_layout_standard((enum id_kind)q.layout);
        return decode_as(&q, &layout);
}
