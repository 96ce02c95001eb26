#include "store/limit_share.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/numbers.h"

#define NONCE_DIGITS (2 * STORE_NONCE_SIZE)

static uint64_t round_up(uint64_t amount, uint64_t by)
{
        return (amount + by - 1) / by;
}

/* A number in digits alone up to TASK_NUMBER_MAX, and what follows it; false: there is none. */
static bool take_number(struct span *text, char end, uint64_t *ret_number)
{
        uint64_t number = 0;
        size_t size = 0;
        while (size < text->size && text->data[size] >= '0' && text->data[size] <= '9' && size <= 16)
                number = number * 10 + (uint64_t)(text->data[size++] - '0');
        bool is_end = size == text->size;
        if (!size || size > 16 || number > TASK_NUMBER_MAX || (end ? is_end || text->data[size] != end : !is_end))
                return false;
        text->data += size + !is_end;
        text->size -= size + !is_end;
        *ret_number = number;
        return true;
}

/* --- definitions ------------------------------------------------------------------------------------------------- */

const char *limit_wrong(const struct store_limit *limit)
{
        if (!limit->version || limit->version > TASK_NUMBER_MAX)
                return "limit: a version is from 1";
        if (!limit->rate == !limit->concurrency)
                return "limit: either a rate or a concurrency";
        if (limit->rate > STORE_LIMIT_MAX || limit->concurrency > STORE_LIMIT_MAX || limit->burst > STORE_LIMIT_MAX)
                return "limit: rate, burst and concurrency are at most 1000000";
        if (limit->rate && (!limit->burst || !limit->period_ms || limit->period_ms > STORE_LIMIT_PERIOD_MS))
                return "limit: a rate has a burst from 1 and a period up to a day";
        if (limit->grace_ms > STORE_LIMIT_LEASE_MS)
                return "limit: a grace is at most an hour";
        if (!limit->values_max || limit->values_max > STORE_LIMIT_VALUES)
                return "limit: values_max is from 1 to 100000";
        return NULL;
}

void limit_put(struct buffer *to, const struct store_limit *limit)
{
        buffer_printf(to, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64,
                limit->version, limit->rate, limit->period_ms, limit->burst, limit->concurrency, limit->grace_ms,
                limit->values_max);
}

bool limit_read(struct span text, struct store_limit *limit)
{
        struct store_limit read = { .name = limit->name };
        if (!take_number(&text, ' ', &read.version) || !take_number(&text, ' ', &read.rate) ||
                !take_number(&text, ' ', &read.period_ms) || !take_number(&text, ' ', &read.burst) ||
                !take_number(&text, ' ', &read.concurrency) || !take_number(&text, ' ', &read.grace_ms) ||
                !take_number(&text, 0, &read.values_max) || limit_wrong(&read))
                return false;
        *limit = read;
        return true;
}

/* --- rates ------------------------------------------------------------------------------------------------------- */

struct bucket {
        uint64_t level; /* a token is period_ms of it */
        uint64_t at_ms;
        uint64_t closed_ms; /* until then it is closed; 0: it is not */
        bool is_anew; /* the record could not be used: this one is to be stored in any case, else it never fills up */
};

static uint64_t capacity(const struct store_limit *limit)
{
        return limit->burst * limit->period_ms;
}

/* Until when it is closed, as it is now; 0: it is not.  No closure is longer: the clock was set back. */
static uint64_t closed_now(uint64_t closed_ms, uint64_t now_ms)
{
        return closed_ms > now_ms ? min_u64(closed_ms, now_ms + STORE_LIMIT_LEASE_MS) : 0;
}

static uint64_t close_until(const struct limit_share *s, uint64_t closed_ms)
{
        return s->close_ms ? max_u64(closed_ms, s->now_ms + s->close_ms) : closed_ms;
}

/* As it is now.  `at_ms` stays ahead if the clock was set back by less than it takes to fill up: that time has been
 * counted.  If it was set back further, nobody can wait for it: what is counted begins anew, empty. */
static struct bucket bucket_now(const struct store_limit *limit, struct span record, bool is_there, uint64_t now_ms)
{
        uint64_t full = capacity(limit);
        struct bucket b = { 0 };
        if (!is_there)
                return (struct bucket){ .level = full, .at_ms = now_ms };
        bool is_readable = take_number(&record, ' ', &b.level);
        bool has_closed = is_readable && memchr(record.data, ' ', record.size);
        is_readable = is_readable && take_number(&record, has_closed ? ' ' : 0, &b.at_ms) &&
                      (!has_closed || take_number(&record, 0, &b.closed_ms));
        if (!is_readable || b.at_ms > now_ms + round_up(full, limit->rate))
                return (struct bucket){ .at_ms = now_ms, .is_anew = true };
        b.closed_ms = closed_now(b.closed_ms, now_ms);
        if (now_ms > b.at_ms) {
                uint64_t missing = b.level < full ? full - b.level : 0;
                bool is_full = now_ms - b.at_ms >= round_up(missing, limit->rate);
                b.level = is_full ? full : b.level + (now_ms - b.at_ms) * limit->rate;
                b.at_ms = now_ms;
        }
        b.level = min_u64(b.level, full);
        return b;
}

static void take_tokens(struct limit_share *s)
{
        const struct store_limit *limit = s->limit;
        struct bucket b = bucket_now(limit, s->record, s->is_record_there, s->now_ms);
        b.closed_ms = close_until(s, b.closed_ms);
        s->granted = b.closed_ms ? 0 : min_u64(s->want, b.level / limit->period_ms);
        b.level -= s->granted * limit->period_ms;
        s->left_ms = s->granted ? s->lease_ms : 0;
        if (s->granted < s->want)
                s->retry_ms = round_up(limit->period_ms - min_u64(b.level, limit->period_ms), limit->rate) +
                              (b.at_ms - s->now_ms);
        s->closed_ms = b.closed_ms ? b.closed_ms - s->now_ms : 0;
        s->retry_ms = s->want ? max_u64(s->retry_ms, s->closed_ms) : 0;
        s->rest_ms = max_u64(b.at_ms + round_up(capacity(limit) - b.level, limit->rate), b.closed_ms);
        s->is_changed = s->granted > 0 || b.is_anew || s->close_ms;
        buffer_printf(&s->after, "%" PRIu64 " %" PRIu64, b.level, b.at_ms);
        if (b.closed_ms)
                buffer_printf(&s->after, " %" PRIu64, b.closed_ms);
}

/* --- concurrency ------------------------------------------------------------------------------------------------- */

struct share_holder {
        struct span nonce;
        uint64_t shares;
        uint64_t until_ms;
        uint64_t call; /* 0: its calls have no numbers */
};

/* Takes the first holder off the record; false: there is none that can be read. */
static bool holder_next(struct span *record, struct share_holder *holder)
{
        if (record->size <= NONCE_DIGITS || record->data[NONCE_DIGITS] != ':' ||
                strspn(record->data, "0123456789abcdef") != NONCE_DIGITS)
                return false;
        holder->nonce = (struct span){ record->data, NONCE_DIGITS };
        record->data += NONCE_DIGITS + 1;
        record->size -= NONCE_DIGITS + 1;
        const char *space = memchr(record->data, ' ', record->size);
        char end = space ? ' ' : 0;
        holder->call = 0;
        if (!take_number(record, ':', &holder->shares))
                return false;
        bool has_call = memchr(record->data, ':', space ? (size_t)(space - record->data) : record->size);
        return take_number(record, has_call ? ':' : end, &holder->until_ms) &&
               (!has_call || take_number(record, end, &holder->call)) && (!space || record->size);
}

static bool is_readable(struct span record)
{
        struct share_holder holder;
        uint32_t count = 0;
        while (record.size)
                if (!holder_next(&record, &holder) || ++count > STORE_LIMIT_HOLDERS + 2)
                        return false;
        return count > 0;
}

static void put_holder(struct limit_share *s, struct span nonce, uint64_t shares, uint64_t until_ms, uint64_t call)
{
        buffer_printf(&s->after, "%s%.*s:%" PRIu64 ":%" PRIu64, s->after.size ? " " : "", (int)nonce.size, nonce.data,
                shares, until_ms);
        if (call)
                buffer_printf(&s->after, ":%" PRIu64, call);
        s->rest_ms = max_u64(s->rest_ms, until_ms + (shares ? s->limit->grace_ms : 0));
}

static const struct span nobody = SPAN_TEXT("00000000000000000000000000000000");
static const struct span closed = SPAN_TEXT("ffffffffffffffffffffffffffffffff");

/* What a record says of all but the one who asks, and of that one. */
struct shares_held {
        uint64_t others;
        bool is_own;
        uint64_t own_call;
        uint64_t first_ms; /* when the first of the others' shares comes back by itself; UINT64_MAX: none */
        uint32_t holders;
        uint64_t closed_ms; /* until then; 0: it is not */
};

/* Those who are gone are left out; the others stay, but for the one who asks. */
static void read_holders(struct limit_share *s, struct span nonce, struct span record, struct shares_held *held)
{
        const struct store_limit *limit = s->limit;
        struct share_holder h;
        while (record.size && holder_next(&record, &h)) {
                if (span_is(h.nonce, closed)) {
                        held->closed_ms = closed_now(h.until_ms, s->now_ms);
                        continue;
                }
                /* No lease is longer: the clock was set back. */
                h.until_ms = min_u64(h.until_ms, s->now_ms + STORE_LIMIT_LEASE_MS);
                uint64_t back_ms = h.until_ms + (h.shares ? limit->grace_ms : 0);
                if (back_ms <= s->now_ms)
                        continue;
                if (span_is(h.nonce, nonce)) {
                        held->is_own = true;
                        held->own_call = h.call;
                        continue;
                }
                held->others = min_u64(held->others + h.shares, TASK_NUMBER_MAX);
                held->holders++;
                if (h.shares)
                        held->first_ms = min_u64(held->first_ms, back_ms - s->now_ms);
                else
                        s->has_waiting = true;
                put_holder(s, h.nonce, h.shares, h.until_ms, h.call);
        }
}

static void take_shares(struct limit_share *s)
{
        const struct store_limit *limit = s->limit;
        char text[NONCE_DIGITS + 1];
        struct span nonce = { text, NONCE_DIGITS };
        struct shares_held held = { .first_ms = UINT64_MAX };
        for (unsigned i = 0; i < STORE_NONCE_SIZE; i++)
                (void)snprintf(text + 2 * i, 3, "%02x", s->holder[i]);
        s->is_changed = true;
        if (s->is_record_there && !is_readable(s->record)) {
                held.others = limit->concurrency;
                held.first_ms = s->lease_ms + limit->grace_ms;
                put_holder(s, nobody, limit->concurrency, s->now_ms + s->lease_ms, 0);
        } else {
                read_holders(s, nonce, s->record, &held);
        }
        if (held.own_call > s->call) {
                s->is_changed = false; /* A newer call was here before it, and nobody waits for its answer. */
                return;
        }
        held.closed_ms = close_until(s, held.closed_ms);
        bool has_room = !held.closed_ms && held.others < limit->concurrency && held.holders < STORE_LIMIT_HOLDERS;
        uint64_t room = has_room ? limit->concurrency - held.others : 0;
        /* What runs is counted, whether or not there is room for it. */
        bool is_listed = held.is_own || held.holders < STORE_LIMIT_HOLDERS;
        s->granted = max_u64(min_u64(s->want, room), is_listed ? s->keep : 0);
        s->is_over = s->granted > room;
        s->left_ms = s->granted ? s->lease_ms : 0;
        if (s->granted)
                put_holder(s, nonce, s->granted, s->now_ms + s->lease_ms, s->call);
        else if (s->want && held.holders < STORE_LIMIT_HOLDERS)
                put_holder(s, nonce, 0, s->now_ms + STORE_LIMIT_WAIT_MS, s->call);
        if (held.closed_ms) {
                put_holder(s, closed, 0, held.closed_ms, 0);
                s->closed_ms = held.closed_ms - s->now_ms;
        }
        if (s->granted < s->want)
                s->retry_ms = max_u64(held.first_ms == UINT64_MAX ? s->lease_ms : held.first_ms, s->closed_ms);
}

/* --- both -------------------------------------------------------------------------------------------------------- */

void limit_share_take(struct limit_share *s)
{
        s->granted = s->left_ms = s->retry_ms = s->rest_ms = s->closed_ms = 0;
        s->has_waiting = s->is_over = false;
        if (s->limit->rate)
                take_tokens(s);
        else
                take_shares(s);
}

void limit_share_look(
        const struct store_limit *limit, struct span record, uint64_t now_ms, struct store_limit_value *value)
{
        struct share_holder h;
        if (limit->rate) {
                struct bucket b = bucket_now(limit, record, true, now_ms);
                value->tokens = b.level / limit->period_ms;
                value->closed_ms = b.closed_ms ? b.closed_ms - now_ms : 0;
                return;
        }
        while (record.size && holder_next(&record, &h)) {
                uint64_t closed_ms = closed_now(h.until_ms, now_ms);
                if (span_is(h.nonce, closed))
                        value->closed_ms = closed_ms ? closed_ms - now_ms : 0;
                else if (!h.shares)
                        value->waiting += h.until_ms > now_ms;
                else if (h.until_ms + limit->grace_ms > now_ms) {
                        value->held = min_u64(value->held + h.shares, TASK_NUMBER_MAX);
                        value->holders++;
                }
        }
}
