#include "host/handler/reload_order.h"

#include <stdio.h>
#include <string.h>

#include "base/buffer.h"

static bool is_token(struct span text)
{
        bool is_fit = text.size > 0 && text.size <= RELOAD_TOKEN_MAX;
        for (size_t i = 0; is_fit && i < text.size; i++)
                is_fit = text.data[i] > ' ' && text.data[i] < 0x7f;
        return is_fit;
}

bool reload_order_find(struct reload_order *order, const char *nonce, const struct store_desired *items, size_t count)
{
        char name[sizeof(RELOAD_ORDER_NAME) + 2 * STORE_NONCE_SIZE];
        (void)snprintf(name, sizeof(name), RELOAD_ORDER_NAME "%s", nonce);
        for (size_t i = 0; i < count; i++) {
                struct span token = items[i].value;
                if (!span_is(items[i].name, span_of_text(name)) || !is_token(token) ||
                        span_is(token, span_of_text(order->token)))
                        continue;
                *order = (struct reload_order){ .state = ORDER_ASKED, .number = order->number + 1 };
                memcpy(order->token, token.data, token.size);
                return true;
        }
        return false;
}

/* --- the texts --- */

/* Cuts between two characters: half a UTF-8 character is not valid JSON. */
static void set_text(char to[RELOAD_ORDER_TEXT + 1], struct buffer *text)
{
        const char *from = buffer_text(text);
        size_t size = strlen(from);
        if (size > RELOAD_ORDER_TEXT) {
                size = RELOAD_ORDER_TEXT;
                while (size && ((unsigned char)from[size] & 0xc0) == 0x80)
                        size--;
        }
        memcpy(to, from, size);
        to[size] = 0;
        buffer_free(text);
}

static const char *text_of(const json_t *object, const char *name)
{
        const char *text = json_string_value(json_object_get(object, name));
        return text ? text : "";
}

/* "NAME: WHAT: WHY" */
static void put_item(struct buffer *to, const json_t *item, const char *what, const char *why)
{
        buffer_printf(to, "%s%s: %s%s%s", to->size ? "; " : "", text_of(item, "handler"), what, *why ? ": " : "", why);
}

static void put_problems(struct buffer *to, const json_t *problems)
{
        size_t i;
        json_t *problem;
        json_array_foreach(problems, i, problem)
        {
                buffer_printf(to, "%s%s", i ? "; " : "", json_string_value(problem));
        }
        buffer_printf(to, "%snothing was changed", to->size ? "; " : "");
}

/* Refused handlers come first, because the text may be cut. */
static void put_plan(struct buffer *to, const json_t *plan)
{
        for (int is_rest = 0; is_rest < 2; is_rest++) {
                size_t i;
                json_t *item;
                json_array_foreach(plan, i, item)
                {
                        const char *action = text_of(item, "action");
                        bool is_refused = !strcmp(action, "refused") || !strcmp(action, "held back");
                        if (is_refused != !is_rest || !strcmp(action, "unchanged"))
                                continue;
                        put_item(to, item, action, text_of(item, "why"));
                }
        }
        if (!to->size)
                buffer_printf(to, "every handler is unchanged");
}

static bool is_failure(const char *outcome)
{
        return !strcmp(outcome, "refused") || !strcmp(outcome, "held back") || !strcmp(outcome, "rolled back");
}

static void put_outcomes(struct buffer *to, const json_t *outcomes)
{
        for (int is_rest = 0; is_rest < 2; is_rest++) {
                size_t i;
                json_t *item;
                json_array_foreach(outcomes, i, item)
                {
                        const char *outcome = text_of(item, "outcome");
                        if (is_failure(outcome) != !is_rest)
                                continue;
                        put_item(to, item, outcome, text_of(item, "text"));
                }
        }
        if (!to->size)
                buffer_printf(to, "it brought no new version of a handler");
}

bool reload_order_answer(struct reload_order *order, uint32_t number, const json_t *reply, uint32_t *ret_reload)
{
        struct buffer text = { 0 };
        if (number != order->number)
                return false;
        order->has_failed = json_is_true(json_object_get(reply, "failed"));
        if (order->state == ORDER_TAKEN) {
                order->state = ORDER_DECIDED;
                put_outcomes(&text, json_object_get(reply, "outcomes"));
                set_text(order->text, &text);
                return false;
        }
        if (json_object_get(reply, "problems"))
                put_problems(&text, json_object_get(reply, "problems"));
        else
                put_plan(&text, json_object_get(reply, "handlers"));
        set_text(order->has_failed ? order->text : order->plan, &text);
        order->state = order->has_failed ? ORDER_REFUSED : ORDER_TAKEN;
        *ret_reload = (uint32_t)json_integer_value(json_object_get(reply, "reload"));
        return order->state == ORDER_TAKEN;
}

void reload_order_put(const struct reload_order *order, json_t *document)
{
        static const char *const names[] = { "", "asked", "refused", "taken", "decided" };
        if (order->state == ORDER_NONE)
                return;
        json_t *plan = json_string(order->plan);
        json_t *text = json_string(order->text);
        (void)json_object_set_new(document, "reload",
                json_pack("{s:s, s:s, s:b, s:o, s:o}", "token", order->token, "state", names[order->state], "failed",
                        order->has_failed, "plan", plan ? plan : json_string("(not UTF-8)"), "text",
                        text ? text : json_string("(not UTF-8)")));
}
