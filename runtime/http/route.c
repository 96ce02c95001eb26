#include "http/route.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "http/api/endpoints.h"

static const struct http_route routes[] = {
        { VERB_GET, "/livez", ROLE_NONE, "", false, false, http_get_live },
        { VERB_GET, "/readyz", ROLE_NONE, "verbose", false, false, http_get_ready },
        { VERB_GET, "/metrics", ROLE_READ, "", false, false, http_get_metrics },
        { VERB_POST, "/v1/tasks/:handler", ROLE_SUBMIT, "key lane delay at unique merge debounce timeout attempts wait",
                true, false, http_post_task },
        { VERB_POST, "/v1/tasks", ROLE_SUBMIT, "", true, true, http_post_tasks },
        { VERB_GET, "/v1/tasks", ROLE_READ, "state handler key host error reason older before order limit cursor",
                false, false, http_get_tasks },
        { VERB_GET, "/v1/tasks/:id", ROLE_READ, "", false, false, http_get_task },
        { VERB_GET, "/v1/tasks/:id/payload", ROLE_READ, "", false, false, http_get_payload },
        { VERB_POST, "/v1/tasks/:id/cancel", ROLE_OPERATE, "", false, false, http_cancel_task },
        { VERB_POST, "/v1/tasks/:id/move", ROLE_OPERATE, "lane force", false, false, http_move_task },
        { VERB_POST, "/v1/tasks/:id/reschedule", ROLE_OPERATE, "delay at", false, false, http_reschedule_task },
        { VERB_POST, "/v1/tasks/:id/requeue", ROLE_OPERATE, "edit", true, false, http_requeue_task },
        { VERB_POST, "/v1/tasks/:id/drop", ROLE_OPERATE, "", false, false, http_drop_task },
        { VERB_GET, "/v1/dead", ROLE_READ, "handler key error cause reason older before limit cursor", false, false,
                http_get_dead },
        { VERB_POST, "/v1/dead/requeue", ROLE_OPERATE,
                "handler key error cause reason older before all dry_run limit cursor", false, false,
                http_requeue_dead },
        { VERB_POST, "/v1/dead/drop", ROLE_OPERATE,
                "handler key error cause reason older before all dry_run limit cursor", false, false, http_drop_dead },
        { VERB_POST, "/v1/cancel", ROLE_OPERATE, "state handler key host error older before all dry_run limit cursor",
                false, false, http_cancel_tasks },
        { VERB_GET, "/v1/keys", ROLE_READ, "state order limit cursor", false, false, http_get_keys },
        { VERB_POST, "/v1/work/:handler", ROLE_WORK_OR_OPERATE, "wait worker", true, false, http_take_work },
        { VERB_POST, "/v1/work/:handler/:id/heartbeat", ROLE_WORK_OR_OPERATE, "", true, false, http_work_heartbeat },
        { VERB_POST, "/v1/work/:handler/:id/outcome", ROLE_WORK_OR_OPERATE, "", true, false, http_work_outcome },
        { VERB_GET, "/v1/keys/:key", ROLE_READ, "", false, false, http_get_key },
        { VERB_POST, "/v1/keys/:key/:verb", ROLE_OPERATE, "reason", false, false, http_act_on_key },
        { VERB_POST, "/v1/pause", ROLE_OPERATE, "reason", false, false, http_pause },
        { VERB_POST, "/v1/resume", ROLE_OPERATE, "", false, false, http_resume },
        { VERB_POST, "/v1/handlers/:handler/pause", ROLE_OPERATE, "reason", false, false, http_pause },
        { VERB_POST, "/v1/handlers/:handler/resume", ROLE_OPERATE, "", false, false, http_resume },
        { VERB_POST, "/v1/reload", ROLE_OPERATE, "dry_run", false, false, http_reload },
        { VERB_POST, "/v1/members/:member/drain", ROLE_OPERATE, "reason", false, false, http_drain },
        { VERB_POST, "/v1/members/:member/activate", ROLE_OPERATE, "", false, false, http_activate },
        { VERB_GET, "/", ROLE_NONE, "", false, false, http_get_page },
        { VERB_GET, "/page/:file", ROLE_NONE, "", false, false, http_get_page },
        { VERB_GET, "/v1/me", ROLE_READ, "", false, false, http_get_me },
        { VERB_GET, "/v1/history", ROLE_READ, "", false, false, http_get_history },
        { VERB_GET, "/v1/status", ROLE_READ, "", false, false, http_get_status },
        { VERB_GET, "/v1/openapi.json", ROLE_READ, "", false, false, http_get_openapi },
        { VERB_GET, "/v1/events", ROLE_READ, "", false, false, http_get_events },
        { VERB_GET, "/v1/shards", ROLE_READ, "", false, false, http_get_shards },
        { VERB_GET, "/v1/handlers", ROLE_READ, "", false, false, http_get_handlers },
        { VERB_GET, "/v1/members", ROLE_READ, "", false, false, http_get_members },
        { VERB_GET, "/v1/locks", ROLE_READ, "", false, false, http_get_locks },
        { VERB_GET, "/v1/app", ROLE_READ, "", false, false, http_get_app },
        { VERB_POST, "/v1/app", ROLE_OPERATE, "max_members", false, false, http_post_app },
        { VERB_POST, "/v1/app/upgrade", ROLE_OPERATE, "features all dry_run", false, false, http_upgrade_app },
        { VERB_POST, "/v1/results/take", ROLE_CONSUME_OR_OPERATE, "max lease", false, false, http_take_results },
        { VERB_POST, "/v1/results/commit", ROLE_CONSUME_OR_OPERATE, "", true, false, http_commit_results },
        { VERB_GET, "/v1/schedules", ROLE_READ, "limit cursor", false, false, http_get_schedules },
        { VERB_GET, "/v1/schedules/:name", ROLE_READ, "times", false, false, http_get_schedule },
        { VERB_PUT, "/v1/schedules/:name", ROLE_OPERATE, "times dry_run", true, false, http_put_schedule },
        { VERB_DELETE, "/v1/schedules/:name", ROLE_OPERATE, "force", false, false, http_delete_schedule },
        { VERB_POST, "/v1/schedules/:name/pause", ROLE_OPERATE, "", false, false, http_pause_schedule },
        { VERB_POST, "/v1/schedules/:name/resume", ROLE_OPERATE, "", false, false, http_resume_schedule },
        { VERB_POST, "/v1/schedules/:name/run", ROLE_OPERATE, "", false, false, http_run_schedule },
        { VERB_POST, "/v1/schedules/:name/backfill", ROLE_OPERATE, "from to limit dry_run", false, false,
                http_backfill_schedule },
        { VERB_GET, "/v1/limits", ROLE_READ, "", false, false, http_get_limits },
        { VERB_GET, "/v1/limits/:name", ROLE_READ, "limit cursor", false, false, http_get_limit },
        { VERB_PUT, "/v1/limits/:name", ROLE_OPERATE, "", true, false, http_put_limit },
        { VERB_DELETE, "/v1/limits/:name", ROLE_OPERATE, "", false, false, http_delete_limit },
};

#define ROUTES (sizeof(routes) / sizeof(routes[0]))

static int hex_digit(char c)
{
        if (c >= '0' && c <= '9')
                return c - '0';
        c = (char)tolower((unsigned char)c);
        return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool http_decode(struct buffer *to, struct span text, bool has_plus)
{
        for (size_t i = 0; i < text.size; i++) {
                char c = text.data[i];
                if (c == '+' && has_plus)
                        c = ' ';
                if (c == '%') {
                        int high = i + 2 < text.size ? hex_digit(text.data[i + 1]) : -1;
                        int low = i + 2 < text.size ? hex_digit(text.data[i + 2]) : -1;
                        if (high < 0 || low < 0 || !(high | low))
                                return false;
                        c = (char)(high << 4 | low);
                        i += 2;
                }
                buffer_put(to, &c, 1);
        }
        buffer_put(to, "", 1);
        return true;
}

/* --- parameters --------------------------------------------------------------------------------------------------- */

/* The texts have room for all parameters, so none of them moves. */
static int add_parameter(
        struct http_exchange *x, const char *name, struct span value, bool has_plus, struct error *error)
{
        if (x->parameters_count == HTTP_PARAMETERS_MAX)
                return error_set(error, -EINVAL, "more than %u parameters", HTTP_PARAMETERS_MAX);
        size_t at = x->texts.size;
        if (!http_decode(&x->texts, value, has_plus))
                return error_set(error, -EINVAL, "%s: a %% is not followed by two hexadecimal digits", name);
        x->parameters[x->parameters_count++] = (struct http_parameter){ name, (const char *)x->texts.data + at };
        return 0;
}

/* The known name that equals the bytes; NULL: none.  `known` is one text, words separated by spaces; the word is copied
 * to the exchange's texts. */
static const char *known_name(struct http_exchange *x, const char *known, struct span name)
{
        while (*known) {
                size_t size = strcspn(known, " ");
                if (size == name.size && !memcmp(known, name.data, size)) {
                        size_t at = x->texts.size;
                        buffer_put(&x->texts, known, size);
                        buffer_put(&x->texts, "", 1);
                        return (const char *)x->texts.data + at;
                }
                known += size + (known[size] == ' ');
        }
        return NULL;
}

static int parse_query(struct http_exchange *x, const struct http_route *route, struct error *error)
{
        struct span rest = x->head->query;
        while (rest.size) {
                const char *end = memchr(rest.data, '&', rest.size);
                struct span pair = { rest.data, end ? (size_t)(end - rest.data) : rest.size };
                rest = (struct span){ rest.data + pair.size + (end != NULL), rest.size - pair.size - (end != NULL) };
                if (!pair.size)
                        continue;
                const char *equals = memchr(pair.data, '=', pair.size);
                struct span name = { pair.data, equals ? (size_t)(equals - pair.data) : pair.size };
                struct span value = { pair.data + name.size + (equals != NULL),
                        pair.size - name.size - (equals != NULL) };
                const char *known = known_name(x, route->parameters, name);
                if (!known)
                        return error_set(error, -EINVAL, "no parameter %.*s; there are: %s", (int)name.size, name.data,
                                route->parameters[0] ? route->parameters : "none");
                if (http_parameter(x, known))
                        return error_set(error, -EINVAL, "%s: is given twice", known);
                int r = add_parameter(x, known, value, true, error);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* --- the path ----------------------------------------------------------------------------------------------------- */

/* Whether the path has the route's form.  Without an exchange, no parameters are kept. */
static bool match(const char *form, struct span path, struct http_exchange *x, int *ret_status, struct error *error)
{
        const char *at = path.data;
        const char *end = path.data + path.size;
        while (*form && at < end) {
                size_t form_size = strcspn(form + 1, "/");
                const char *stop = memchr(at + 1, '/', (size_t)(end - at - 1));
                struct span part = { at + 1, (size_t)((stop ? stop : end) - at - 1) };
                if (form[1] == ':') {
                        if (!part.size)
                                return false;
                        if (x) {
                                struct span name = { form + 2, form_size - 1 };
                                char word[32];
                                (void)snprintf(word, sizeof(word), "%.*s", (int)name.size, name.data);
                                const char *kept = known_name(x, word, span_of_text(word));
                                *ret_status = add_parameter(x, kept, part, false, error);
                        }
                } else if (part.size != form_size || memcmp(part.data, form + 1, form_size) != 0) {
                        return false;
                }
                form += form_size + 1;
                at = part.data + part.size;
        }
        return !*form && at == end;
}

const struct http_route *http_route_find(struct http_exchange *x, unsigned *ret_status, struct error *error)
{
        const struct http_head *head = x->head;
        enum http_verb verb = head->verb == VERB_HEAD ? VERB_GET : head->verb;
        int r = 0;
        bool is_path_known = false;
        x->parameters_count = 0;
        buffer_clear(&x->texts);
        /* Decoding never grows a text; names are copied too, each once. */
        (void)buffer_reserve(&x->texts, 2 * HTTP_HEAD_MAX + HTTP_PARAMETERS_MAX * 64);
        for (size_t i = 0; i < ROUTES; i++) {
                if (!match(routes[i].path, head->path, NULL, NULL, NULL))
                        continue;
                is_path_known = true;
                if (routes[i].verb != verb)
                        continue;
                (void)match(routes[i].path, head->path, x, &r, error);
                if (r == 0)
                        r = parse_query(x, &routes[i], error);
                *ret_status = 400;
                return r < 0 ? NULL : &routes[i];
        }
        *ret_status = is_path_known ? 405 : 404;
        (void)error_set(error, -ENOENT, is_path_known ? "%.*s does not take this method" : "there is no %.*s",
                (int)head->path.size, head->path.data);
        return NULL;
}
