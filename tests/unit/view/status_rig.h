/* status_rig.h: an app of four shards and what its store counts, to which a test adds what hosts say. */
#ifndef QUIVER_TESTS_STATUS_RIG_H
#define QUIVER_TESTS_STATUS_RIG_H

#include "check.h"

#include <stdlib.h>

#include "store/app.h"
#include "view/json.h"
#include "view/status.h"

#define SHARDS 4u
#define LINES  24u

static const struct store_info info = { .driver = "sqlite",
        .app = "shop",
        .coordination = "local:/run/q",
        .durability = "all of it",
        .refuses = "",
        .shards = SHARDS };

struct rig {
        struct store_counts counts[SHARDS];
        struct status status;
        struct buffer text;
        bool is_pipe; /* then there is no end of the screen */
};

/* Shard 0 is quiet and owned by host 0xaa, 1 is busy and owned by it, 2 was owned by 0xbb, 3 is nobody's. */
static inline int set_up(void **state)
{
        struct rig *rig = calloc(1, sizeof(*rig));
        assert_non_null(rig);
        for (uint32_t i = 0; i < SHARDS; i++)
                rig->counts[i].shard = i;
        rig->counts[0].is_held = rig->counts[1].is_held = rig->counts[2].is_held = true;
        rig->counts[0].left_ms = rig->counts[1].left_ms = 900;
        rig->counts[0].epoch = rig->counts[1].epoch = rig->counts[2].epoch = 7;
        memset(rig->counts[0].holder, 0xaa, STORE_NONCE_SIZE);
        memset(rig->counts[1].holder, 0xaa, STORE_NONCE_SIZE);
        memset(rig->counts[2].holder, 0xbb, STORE_NONCE_SIZE);
        rig->counts[1].queued[LANE_HIGH] = 1;
        rig->counts[1].queued[LANE_NORMAL] = 20;
        rig->counts[1].queued[LANE_LOW] = 300;
        rig->counts[1].in_flight = 4;
        rig->counts[1].oldest_ms = 1500;
        rig->counts[2].dead = 2;
        rig->counts[2].oldest_ms = 90;
        rig->counts[1].submitted = 1000;
        rig->counts[2].submitted = 10;
        rig->counts[1].done = 675;
        status_init(&rig->status, &info, "sqlite:/tmp/q.db", rig->counts);
        *state = rig;
        return 0;
}

static inline int tear_down(void **state)
{
        struct rig *rig = *state;
        status_free(&rig->status);
        buffer_free(&rig->text);
        free(rig);
        return 0;
}

static inline void add_bytes(struct rig *rig, uint8_t nonce, uint64_t age_ms, const char *data, size_t size)
{
        struct store_status found = { .age_ms = age_ms, .document = { data, size } };
        memset(found.nonce, nonce, sizeof(found.nonce));
        status_add_document(&rig->status, &found);
}

static inline void add(struct rig *rig, uint8_t nonce, uint64_t age_ms, const char *document)
{
        add_bytes(rig, nonce, age_ms, document, strlen(document));
}

static inline void desire(struct rig *rig, struct span name, struct span value)
{
        status_add_desired(&rig->status, &(struct store_desired){ name, value });
}

static inline const json_t *handler(const struct rig *rig, size_t i)
{
        return json_array_get(rig->status.handlers, i);
}

static inline const char *text_of(struct rig *rig)
{
        buffer_clear(&rig->text);
        status_as_text(&rig->text, &rig->status, &(struct status_screen){ .lines = rig->is_pipe ? 0 : LINES });
        return buffer_text(&rig->text);
}

static inline void assert_json(json_t *json, const char *expected)
{
        char *text = json_dumps(json, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(5));
        assert_non_null(text);
        assert_string_equal(text, expected);
        free(text);
        json_decref(json);
}

#define AA "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define BB "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

#define DOCUMENT                                                                                                       \
        "{\"name\":\"a\",\"state\":\"running\",\"weight\":2,\"pid\":77,\"version\":\"0.9\",\"machine\":\"web\","       \
        "\"started_ms\":5,\"seats\":8,\"running\":[[1,3],[2,5],[99,1],[-1,1],[1,-2],\"x\"],\"rates\":{\"done\":1.5,"   \
        "\"retried\":0.5,\"failed\":0.0},"                                                                             \
        "\"handlers\":[{\"name\":\"mail\",\"plugin\":\"mail.so\",\"version\":\"1.2\",\"generation\":3,"                \
        "\"state\":\"open\",\"waiting\":1,\"running\":4,\"done\":675,\"oldest_ms\":1000}],"                            \
        "\"unserved\":[\"fax\"],\"move_pending\":[1,3]}"

#define WITH_RIG(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

#endif
