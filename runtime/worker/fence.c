#include "worker/fence.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"

#define PREFIX      "worker/"
#define SEAT_PREFIX "seat/"

/* Reads digits up to the end or another character; false: no digits, or the number is out of range. */
static bool take_number(struct span *text, uint64_t *ret_number)
{
        uint64_t number = 0;
        size_t at = 0;
        for (; at < text->size && text->data[at] >= '0' && text->data[at] <= '9'; at++) {
                number = number * 10 + (uint64_t)(text->data[at] - '0');
                if (number > TASK_NUMBER_MAX)
                        return false;
        }
        if (!at)
                return false;
        *text = (struct span){ text->data + at, text->size - at };
        *ret_number = number;
        return true;
}

static bool take_character(struct span *text, char c)
{
        if (!text->size || text->data[0] != c)
                return false;
        *text = (struct span){ text->data + 1, text->size - 1 };
        return true;
}

void fence_put(char text[FENCE_TEXT_MAX], const struct work_fence *fence)
{
        (void)snprintf(
                text, FENCE_TEXT_MAX, "%" PRIu64 ".%" PRIu64 ".%" PRIu64, fence->epoch, fence->start, fence->seq);
}

int fence_parse(struct span text, struct work_fence *ret_fence, struct error *error)
{
        struct work_fence fence;
        if (!take_number(&text, &fence.epoch) || !take_character(&text, '.') || !take_number(&text, &fence.start) ||
                !take_character(&text, '.') || !take_number(&text, &fence.seq) || text.size)
                return error_set(error, -EINVAL, "fence: give back the text that the task came with");
        *ret_fence = fence;
        return 0;
}

int worker_name_check(struct span name, struct error *error)
{
        bool is_good = name.size && name.size <= WORKER_NAME_MAX;
        for (size_t i = 0; is_good && i < name.size; i++)
                is_good = isascii((unsigned char)name.data[i]) &&
                          (isalnum((unsigned char)name.data[i]) || strchr("._:@-", name.data[i]));
        return is_good && !memchr(name.data, 0, name.size)
                       ? 0
                       : error_set(error, -EINVAL, "a worker's name has 1 to %u letters, digits, or any of . _ : @ -",
                                 WORKER_NAME_MAX);
}

void holder_put(char text[NOTE_HOLDER_MAX + 1], const struct work_fence *fence, const char *worker)
{
        (void)snprintf(
                text, NOTE_HOLDER_MAX + 1, PREFIX "%" PRIu64 ".%" PRIu64 "/%s", fence->epoch, fence->start, worker);
}

/* Takes the prefix, the two numbers and the following slash. */
static bool take_start(struct span *holder, struct span prefix, struct work_fence *ret_fence)
{
        if (holder->size < prefix.size || memcmp(holder->data, prefix.data, prefix.size) != 0)
                return false;
        *holder = (struct span){ holder->data + prefix.size, holder->size - prefix.size };
        return take_number(holder, &ret_fence->epoch) && take_character(holder, '.') &&
               take_number(holder, &ret_fence->start) && take_character(holder, '/');
}

bool holder_parse(struct span holder, struct work_fence *ret_fence, struct span *ret_worker)
{
        struct work_fence fence = { 0 };
        if (!take_start(&holder, SPAN_TEXT(PREFIX), &fence) || worker_name_check(holder, NULL) < 0)
                return false;
        *ret_fence = fence;
        *ret_worker = holder;
        return true;
}

void seat_start_put(char text[NOTE_HOLDER_MAX + 1], const struct work_fence *fence)
{
        (void)snprintf(text, NOTE_HOLDER_MAX + 1, SEAT_PREFIX "%" PRIu64 ".%" PRIu64 "/", fence->epoch, fence->start);
}

bool seat_start_is(struct span start)
{
        struct span prefix = SPAN_TEXT(SEAT_PREFIX);
        return start.size >= prefix.size && !memcmp(start.data, prefix.data, prefix.size);
}

void seat_holder_put(char text[NOTE_HOLDER_MAX + 1], const struct work_fence *fence,
        const uint8_t nonce[STORE_NONCE_SIZE], const char *host)
{
        char hex[2 * STORE_NONCE_SIZE + 1];
        (void)snprintf(text, NOTE_HOLDER_MAX + 1, SEAT_PREFIX "%" PRIu64 ".%" PRIu64 "/%s/%.*s", fence->epoch,
                fence->start, units_hex(hex, nonce, STORE_NONCE_SIZE), (int)SEAT_HOST_MAX, host);
}

bool seat_holder_parse(
        struct span holder, struct work_fence *ret_fence, uint8_t ret_nonce[STORE_NONCE_SIZE], struct span *ret_host)
{
        struct work_fence fence = { 0 };
        size_t hex = (size_t)2 * STORE_NONCE_SIZE;
        if (!take_start(&holder, SPAN_TEXT(SEAT_PREFIX), &fence) || holder.size < hex ||
                !units_hex_read(holder.data, hex, ret_nonce, STORE_NONCE_SIZE))
                return false;
        holder = (struct span){ holder.data + hex, holder.size - hex };
        if (!take_character(&holder, '/') || holder.size > SEAT_HOST_MAX || worker_name_check(holder, NULL) < 0)
                return false;
        *ret_fence = fence;
        *ret_host = holder;
        return true;
}
