#include "host/last_run.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/strings.h"
#include "base/units.h"

#define VERSION      1
#define HEX          "0123456789abcdef"
#define NONCE_DIGITS (2 * STORE_NONCE_SIZE)

int last_run_put(struct buffer *to, const struct last_run *run)
{
        char nonce[NONCE_DIGITS + 1];
        char alive[48];
        (void)units_hex(nonce, run->nonce, sizeof(run->nonce));
        (void)snprintf(alive, sizeof(alive), "%" PRIu64 ":%" PRIu64, run->alive_id[0], run->alive_id[1]);
        json_t *json = json_pack("{s:i, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "version", VERSION, "boot", run->boot_id,
                "alive", alive, "nonce", nonce, "app", run->app, "store", run->store, "coordination", run->coordination,
                "session", run->session);
        if (!json)
                return -EILSEQ; /* a path in a URL that is not UTF-8 */
        char *text = memory_or_abort(json_dumps(json, JSON_COMPACT | JSON_PRESERVE_ORDER));
        buffer_put(to, text, strlen(text));
        buffer_put(to, "\n", 1);
        text_free_secret(text);
        json_decref(json);
        return 0;
}

/* --- reading --- */

static bool take_text(const json_t *json, const char *field, char *ret, size_t room)
{
        const char *text = json_string_value(json_object_get(json, field));
        if (!text || strlen(text) >= room)
                return false;
        memcpy(ret, text, strlen(text) + 1);
        return true;
}

static bool take_nonce(const json_t *json, uint8_t nonce[STORE_NONCE_SIZE])
{
        char text[NONCE_DIGITS + 1];
        if (!take_text(json, "nonce", text, sizeof(text)) || strspn(text, HEX) != NONCE_DIGITS)
                return false;
        for (unsigned i = 0; i < STORE_NONCE_SIZE; i++) {
                char byte[3] = { text[2 * i], text[2 * i + 1], 0 };
                nonce[i] = (uint8_t)strtoul(byte, NULL, 16);
        }
        return true;
}

static bool take_alive(const json_t *json, uint64_t id[2])
{
        char text[48];
        char rest;
        return take_text(json, "alive", text, sizeof(text)) && strspn(text, "0123456789:") == strlen(text) &&
               sscanf(text, "%20" SCNu64 ":%20" SCNu64 "%c", &id[0], &id[1], &rest) == 2;
}

static const char *take_all(const json_t *json, struct last_run *run)
{
        if (json_integer_value(json_object_get(json, "version")) != VERSION)
                return "version";
        if (!take_text(json, "boot", run->boot_id, sizeof(run->boot_id)))
                return "boot";
        if (!take_alive(json, run->alive_id))
                return "alive";
        if (!take_nonce(json, run->nonce))
                return "nonce";
        if (!take_text(json, "app", run->app, sizeof(run->app)))
                return "app";
        if (!take_text(json, "store", run->store, sizeof(run->store)))
                return "store";
        if (!take_text(json, "coordination", run->coordination, sizeof(run->coordination)))
                return "coordination";
        if (!take_text(json, "session", run->session, sizeof(run->session)))
                return "session";
        return NULL;
}

int last_run_parse(struct span text, struct last_run *ret, struct error *error)
{
        json_error_t why;
        json_t *json = json_loadb(text.data, text.size, JSON_REJECT_DUPLICATES, &why);
        struct last_run *run = memory_zero(1, sizeof(*run));
        int r = 0;
        if (!json)
                r = error_set(error, -EBADMSG, "not JSON: %.100s", why.text);
        else if (!json_is_object(json))
                r = error_set(error, -EBADMSG, "not a JSON object");
        const char *field = r == 0 ? take_all(json, run) : NULL;
        if (field)
                r = error_set(error, -EBADMSG, "the field \"%s\" is missing, or not as this version writes it", field);
        if (r == 0)
                *ret = *run;
        explicit_bzero(run, sizeof(*run));
        free(run);
        json_decref(json);
        return r;
}

/* --- judging --- */

const char *last_run_objection(const struct last_run *last, const struct last_run *now)
{
        if (!*now->boot_id || strcmp(last->boot_id, now->boot_id) != 0)
                return "it ran before this machine was started, or on another machine";
        if (last->alive_id[0] != now->alive_id[0] || last->alive_id[1] != now->alive_id[1])
                return "it ran on another folder, of which this one is a copy";
        if (strcmp(last->app, now->app) != 0)
                return "it was of another app";
        if (strcmp(last->store, now->store) != 0)
                return "it had another store";
        if (strcmp(last->coordination, now->coordination) != 0)
                return "it had another coordination";
        return NULL;
}
