/* top_keys.c: a key of the keyboard → what changes, or what is to be done. */
#include <inttypes.h>
#include <string.h>

#include "cli/top/top.h"
#include "view/json.h"
#include "view/text.h"

#define PAGE_ROWS  10u
#define FILTER_MAX 64u

/* --- bytes → keys --- */

size_t top_key_read(const char *bytes, size_t size, int *ret_key)
{
        static const struct {
                const char *bytes;
                int key;
        } sequences[] = {
                { "[A", KEY_UP },
                { "[B", KEY_DOWN },
                { "OA", KEY_UP },
                { "OB", KEY_DOWN },
                { "[5~", KEY_PAGE_UP },
                { "[6~", KEY_PAGE_DOWN },
                { "[H", KEY_FIRST },
                { "[F", KEY_LAST },
                { "[Z", KEY_BACK_TAB },
        };
        unsigned char first = (unsigned char)*bytes;
        if (first != KEY_ESCAPE || size == 1 || (bytes[1] != '[' && bytes[1] != 'O')) {
                *ret_key = first == '\r' ? KEY_ENTER : first == '\b' ? KEY_BACKSPACE : first;
                return 1;
        }
        for (size_t i = 0; i < sizeof(sequences) / sizeof(sequences[0]); i++) {
                size_t length = strlen(sequences[i].bytes);
                if (size > length && !memcmp(bytes + 1, sequences[i].bytes, length)) {
                        *ret_key = sequences[i].key;
                        return 1 + length;
                }
        }
        /* A sequence ends with its first byte from @ to ~. */
        size_t length = 2;
        while (length < size && (bytes[length] < '@' || bytes[length] > '~'))
                length++;
        *ret_key = KEY_UNKNOWN;
        return length < size ? length + 1 : size;
}

/* --- actions --- */

void top_forget(struct top_state *state)
{
        json_decref(state->asked.item);
        state->asked = (struct top_action){ 0 };
        if (state->mode == TOP_ASK)
                state->mode = TOP_LIST;
}

/* The value as one word: a leading "-" needs no "--" behind a "=". */
static void put_option(struct buffer *to, const char *option, const json_t *item, const char *name)
{
        struct buffer value = { 0 };
        struct buffer word = { 0 };
        top_bytes(item, name, &value);
        if (value.size) {
                text_put_word(&word, span_of_text(buffer_text(&value)));
                const char *text = buffer_text(&word);
                bool has_dashes = value.data[0] == '-';
                buffer_printf(to, " %s%s%s", option, has_dashes ? "=" : " ", has_dashes ? text + 3 : text);
        }
        buffer_free(&value);
        buffer_free(&word);
}

static void put_member(struct buffer *to, const json_t *item, const char *name)
{
        struct buffer value = { 0 };
        top_bytes(item, name, &value);
        if (value.size) {
                buffer_put(to, " ", 1);
                text_put_word(to, (struct span){ (const char *)value.data, value.size });
        }
        buffer_free(&value);
}

static const char *handler_member(const json_t *item)
{
        return top_is_problem(item) ? "handler" : "name";
}

void top_command(struct buffer *to, const struct top_action *action)
{
        switch (action->verb) {
        case TOP_PAUSE:
                buffer_printf(to, "quiver pause --reason '" TOP_PAUSE_REASON "'");
                put_member(to, action->item, handler_member(action->item));
                break;
        case TOP_RESUME:
                buffer_printf(to, "quiver resume");
                put_member(to, action->item, handler_member(action->item));
                break;
        case TOP_REQUEUE:
                buffer_printf(to, "quiver dead requeue");
                put_option(to, "--handler", action->item, "handler");
                put_option(to, "--reason", action->item, "reason");
                put_option(to, "--error", action->item, "error");
                break;
        case TOP_HOLD:
                buffer_printf(to, "quiver key hold");
                put_member(to, action->item, "key");
                break;
        case TOP_UNHOLD:
                buffer_printf(to, "quiver key unhold");
                put_member(to, action->item, "key");
                break;
        }
}

void top_question(struct buffer *to, const struct top_action *action)
{
        /* The answer comes first: a long command is cut. */
        buffer_printf(to, "y/n? ");
        if (action->verb == TOP_REQUEUE)
                buffer_printf(to, "requeue %" PRIu64 " task%s: ", action->count, text_plural(action->count));
        top_command(to, action);
}

static enum top_do ask(struct top_state *state, enum top_verb verb, json_t *item)
{
        state->asked = (struct top_action){ .verb = verb, .item = json_incref(item) };
        state->mode = TOP_ASK;
        return verb == TOP_REQUEUE ? TOP_DO_COUNT : TOP_DO_NOTHING;
}

static enum top_do say(struct top_state *state, const char *text)
{
        buffer_clear(&state->message);
        buffer_printf(&state->message, "%s", text);
        return TOP_DO_NOTHING;
}

static enum top_do ask_pause(struct top_state *state, const struct top_data *data, json_t *item)
{
        const json_t *paused = json_object_get(json_object_get(data->status, "totals"), "paused");
        const char *name = item ? view_json_get_text(item, handler_member(item)) : "";
        if (!*name)
                return say(state, "Which handler? Select one, then p.");
        if (json_object_get(paused, name))
                return ask(state, TOP_RESUME, item);
        /* A pause of everything is taken back as a whole: that of one handler would change nothing. */
        return json_object_get(paused, "") ? ask(state, TOP_RESUME, NULL) : ask(state, TOP_PAUSE, item);
}

static enum top_do act(struct top_state *state, const struct top_data *data, json_t *item, int key)
{
        if (state->is_read_only)
                return say(state, "This view is read-only: it was started with --read-only.");
        if (key == 'p')
                return state->page == TOP_OVERVIEW ? ask_pause(state, data, item)
                                                   : say(state, "p pauses a handler: press 1 for the handlers.");
        if (key == 'r')
                return state->page == TOP_DEAD && item
                               ? ask(state, TOP_REQUEUE, item)
                               : say(state, "r requeues dead tasks: press 5 and select a cause.");
        if (state->page != TOP_KEYS || !item)
                return say(state, "h and u hold and unhold a key: press 2 and select one.");
        return ask(state, key == 'h' ? TOP_HOLD : TOP_UNHOLD, item);
}

/* --- looking --- */

static enum top_do turn_to(struct top_state *state, unsigned page)
{
        state->page = (enum top_page)(page % TOP_PAGES);
        state->mode = TOP_LIST;
        state->selected = 0;
        buffer_clear(&state->identity);
        buffer_clear(&state->filter);
        /* Keys are only looked at while they are shown. */
        return state->page == TOP_KEYS ? TOP_DO_FETCH : TOP_DO_NOTHING;
}

static enum top_do move(struct top_state *state, const json_t *rows, size_t row)
{
        if (state->mode == TOP_LIST)
                top_select(state, rows, row);
        else
                state->scroll = row;
        return TOP_DO_NOTHING;
}

static enum top_do type(struct top_state *state, int key)
{
        if (key == KEY_ESCAPE)
                buffer_clear(&state->filter);
        if (key == KEY_ESCAPE || key == KEY_ENTER)
                state->mode = TOP_LIST;
        else if (key == KEY_BACKSPACE)
                while (state->filter.size && (state->filter.data[--state->filter.size] & 0xc0) == 0x80)
                        continue;
        else if (key >= ' ' && key < 256 && state->filter.size < FILTER_MAX)
                buffer_put(&state->filter, &(char){ (char)key }, 1);
        return TOP_DO_NOTHING;
}

static enum top_do look(struct top_state *state, const json_t *rows, int key)
{
        size_t at = state->mode == TOP_LIST ? state->selected : state->scroll;
        switch (key) {
        case KEY_TAB:
                return turn_to(state, state->page + 1);
        case KEY_BACK_TAB:
                return turn_to(state, state->page + TOP_PAGES - 1);
        case 'j':
        case KEY_DOWN:
                return move(state, rows, at + 1);
        case 'k':
        case KEY_UP:
                return move(state, rows, at ? at - 1 : 0);
        case KEY_PAGE_DOWN:
                return move(state, rows, at + PAGE_ROWS);
        case KEY_PAGE_UP:
                return move(state, rows, at > PAGE_ROWS ? at - PAGE_ROWS : 0);
        case 'g':
        case KEY_FIRST:
                return move(state, rows, 0);
        case 'G':
        case KEY_LAST:
                return move(state, rows, SIZE_MAX);
        case KEY_ENTER:
                state->mode = state->mode == TOP_LIST && json_array_size(rows) ? TOP_DETAIL : TOP_LIST;
                state->scroll = 0;
                return state->mode == TOP_DETAIL ? TOP_DO_FETCH : TOP_DO_NOTHING;
        case KEY_ESCAPE:
                if (state->mode == TOP_LIST)
                        buffer_clear(&state->filter);
                state->mode = TOP_LIST;
                return TOP_DO_NOTHING;
        case 's':
                state->sort[state->page] = (state->sort[state->page] + 1) % top_sorts(state->page);
                return TOP_DO_NOTHING;
        case '/':
                state->mode = TOP_FILTER;
                return TOP_DO_NOTHING;
        case '?':
                state->mode = TOP_HELP;
                state->scroll = 0;
                return TOP_DO_NOTHING;
        case ' ':
                return TOP_DO_FETCH;
        default:
                return key >= '1' && key < '1' + TOP_PAGES ? turn_to(state, (unsigned)(key - '1')) : TOP_DO_NOTHING;
        }
}

enum top_do top_key(struct top_state *state, const struct top_data *data, const json_t *rows, int key)
{
        if (state->mode == TOP_ASK)
                return key == 'y' || key == 'Y' ? TOP_DO_ACT : TOP_DO_CANCEL;
        if (state->mode == TOP_FILTER)
                return type(state, key);
        buffer_clear(&state->message);
        if (key == 'q')
                return TOP_DO_QUIT;
        if (key == 'p' || key == 'r' || key == 'h' || key == 'u')
                return act(state, data, top_selected(state, rows), key);
        return look(state, rows, key);
}
