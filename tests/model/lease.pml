/* The lease, the handover and the fence of one shard (runtime/store/README.md, "The lease"; runtime/host/shard/shard.h),
 * with two hosts, a network that loses and delays, pauses, crashes, and a coordination tree that may be wiped.
 *
 * Checked in every reachable state:
 *   fenced      the store executes a call only for the grant under which it was sent, in order, each once
 *   one owner   a handler is started only by the host that the store's lease names
 *   drained     a shard is released only when none of its handlers runs
 *   epochs      grow with each new owner
 *   once        an outcome is about a task in flight; no task is done twice; no host runs a task beside itself
 *   kept        when nothing can happen any more, every task is done
 *
 * Not modelled: several keys, side queues, firm wants (a want only shortens a wait), the guard (a release like any).
 *
 * Time is what is left of each lease: a tick takes one from all of them at once.  A pause is nothing but the others
 * going on.  Each -DWITHOUT_X takes one check out; run.sh demands that each of these models fails. */

#ifndef TTL
#define TTL 1
#endif
#ifndef TO_DO
#define TO_DO 2 /* tasks, of one key */
#endif
#ifndef FAULTS
#define FAULTS 3 /* of any kind: a message or an answer lost, or so late that its sender has given up; the handler says
                  * no; a move; a wiped tree; a crash */
#endif

#define HOSTS    2
#define TASKS    2 /* if one is to do, the other is done from the start */
#define MESSAGES 2 /* under way at once */
#define NOBODY   255

/* Requests. */
#define NONE    0
#define ACQUIRE 1
#define ADVANCE 2
#define RENEW   3
#define RELEASE 4

/* Verdicts. */
#define GRANTED 1
#define BUSY    2
#define STALE   3
#define OK      4
#define FENCED  5

/* Where a task is in the store. */
#define QUEUED 0
#define FLIGHT 1
#define PARKED 2
#define DONE   3

/* What a host knows of a task. */
#define UNKNOWN 0
#define READY   1
#define RUNNING 2
#define SAID_YES 3 /* the outcome is still to be told */
#define SAID_NO  4

typedef Message {
        byte kind;
        byte host, nonce, epoch, call;
        byte task, said;   /* ADVANCE: the outcome that it commits; NOBODY: none */
        byte attempt;      /* whose answer it is */
        byte grant, order; /* ghost: the grant under which it was sent, and its place among that grant's calls */
};

typedef Host {
        byte nonce; /* new with each start */
        byte epoch; /* at which it owns the shard; 0: it does not */
        bool is_parting; /* a release was sent: no more until the next grant */
        byte call;
        byte left;    /* until its own deadline */
        byte waits;   /* for the answer to this request */
        byte asked;   /* ACQUIRE: the epoch */
        byte pending; /* what the answer is worth as a lease, counted from before it was sent */
        byte attempt;
        byte task, said;
        byte verdict; /* the answer; NONE: it has not come */
        byte got_call, got_epoch, got_tasks;
        byte tasks[TASKS];
        bool is_running; /* a handler, on the task `which` */
        bool is_stopped; /* it is told to stop: its lease was lost */
        byte which;
        byte grant, order, got_grant; /* ghost */
};

Message net[MESSAGES];
Host hosts[HOSTS];

/* The store's record. */
byte s_epoch, s_holder, s_nonce, s_left, s_call;
bool s_is_held;
byte s_claimed = NOBODY; /* by the last call */
byte s_places[TASKS];
byte s_grant, s_order; /* ghost: grants so far; calls executed under this one */

/* The assignment. */
byte c_owner, c_nonce, c_epoch = 1;

byte faults = FAULTS; /* still to come */

#define is_over  (s_places[0] == DONE && s_places[1] == DONE)
#define may_fail (faults > 0 && !is_over)

/* --- the checks, each of which can be taken out -------------------------------------------------------------------- */

#ifdef WITHOUT_NONCE
#define is_same_nonce(m) true
#else
#define is_same_nonce(m) (s_holder == m.host && s_nonce == m.nonce)
#endif

#ifdef WITHOUT_HOLDER
#define is_ours(m) s_is_held
#else
#define is_ours(m) (s_is_held && s_epoch == m.epoch && is_same_nonce(m))
#endif

#ifdef WITHOUT_CALL
#define is_next(m)   true
#define is_repeat(m) false
#else
#define is_next(m)   (m.call == s_call + 1)
#define is_repeat(m) (m.call == s_call)
#endif

#ifdef WITHOUT_JUMP
#define JUMP 0
#else
#define JUMP 2
#endif

#ifdef WITHOUT_STALE
#define is_stale(m) false
#else
#define is_stale(m) (m.epoch < s_epoch || (m.epoch == s_epoch && !is_same_nonce(m)))
#endif

#ifdef WITHOUT_BUSY
#define is_busy(m) false
#else
#define is_busy(m) (s_is_held && s_left > 0 && !is_same_nonce(m))
#endif

#ifdef WITHOUT_DEADLINE
#define is_in_time(h) true
#else
#define is_in_time(h) (hosts[h].left > 0)
#endif

/* A lease counts from before it was asked for. */
#ifdef WITHOUT_SENT
#define worth(h) TTL
#else
#define worth(h) hosts[h].pending
#endif

/* A repeated call returns what it claimed the first time. */
#ifdef WITHOUT_REPEAT
#define claimed_before NOBODY
#else
#define claimed_before s_claimed
#endif

/* What runs here, or has ended and is not told yet, is not started again when a grant returns it. */
#ifdef WITHOUT_MERGE
#define is_news(h, t) true
#else
#define is_news(h, t) (hosts[h].tasks[t] == UNKNOWN)
#endif

/* And what a grant does not return has been told: the answer was lost. */
#ifdef WITHOUT_GONE
#define is_told(h, t) false
#else
#define is_told(h, t) (hosts[h].tasks[t] >= SAID_YES)
#endif

/* A grant while we have the shard, or believe so, goes on with what we have, but only if nobody was granted it in
 * between: then the store is at our last call, or at the one under way, and jumps from there. */
#ifdef WITHOUT_GAP
#define is_gap(h) false
#else
#define is_gap(h) (hosts[h].got_call > hosts[h].call + JUMP + 1)
#endif

/* One at a time, also while a handler whose lease was lost has not stopped yet. */
#ifdef WITHOUT_BUSY_KEY
#define is_free(h) true
#else
#define is_free(h) !hosts[h].is_running
#endif

/* Whoever has sent a release acts no more, even if it got no answer and may have the shard back: it may still arrive. */
#ifdef WITHOUT_PARTING
#define PARTING false
#else
#define PARTING true
#endif

/* Release only when nothing runs. */
#ifdef WITHOUT_DRAIN
#define is_drained(h) true
#else
#define is_drained(h) !hosts[h].is_running
#endif

/* --- the store ----------------------------------------------------------------------------------------------------- */

#define is_awaited(m) (hosts[m.host].nonce == m.nonce && hosts[m.host].waits != NONE && hosts[m.host].attempt == m.attempt)

/* The answer, unless it is lost or nobody waits for it any more. */
inline answer(m, v, claims)
{
        if
        :: is_awaited(m) ->
                hosts[m.host].verdict = v;
                hosts[m.host].got_call = s_call;
                hosts[m.host].got_epoch = s_epoch;
                hosts[m.host].got_tasks = claims;
                hosts[m.host].got_grant = s_grant
        :: is_awaited(m) && may_fail -> faults--
        :: else
        fi
}

inline in_flight(set)
{
        set = 0;
        t = 0;
        do
        :: t < TASKS ->
                if
                :: s_places[t] == FLIGHT -> set = set | (1 << t)
                :: else
                fi;
                t++
        :: else -> break
        od
}

inline execute_acquire(m)
{
        if
        :: is_stale(m) -> answer(m, STALE, 0)
        :: else ->
                if
                :: m.epoch != s_epoch && is_busy(m) -> answer(m, BUSY, 0)
                :: else ->
                        /* epochs */
                        assert(m.epoch > s_epoch || (m.epoch == s_epoch && s_holder == m.host && s_nonce == m.nonce));
                        s_epoch = m.epoch;
                        s_holder = m.host;
                        s_nonce = m.nonce;
                        s_is_held = true;
                        s_left = TTL;
                        s_call = s_call + JUMP;
                        s_claimed = NOBODY;
                        s_grant++;
                        s_order = 0;
                        in_flight(set);
                        answer(m, GRANTED, set)
                fi
        fi
}

inline settle(m)
{
        if
        :: m.task != NOBODY ->
                /* once */
                assert(s_places[m.task] == FLIGHT);
                s_places[m.task] = (m.said == SAID_YES -> DONE : PARKED)
        :: else
        fi
}

/* The next task in order; a parked one is due at any time.  Nothing is claimed past a task that is not done: all
 * tasks here are of one key. */
inline claim()
{
        s_claimed = NOBODY;
        t = 0;
        do
        :: t < TASKS && s_places[t] == DONE -> t++
        :: t < TASKS && (s_places[t] == QUEUED || s_places[t] == PARKED) ->
                s_places[t] = FLIGHT;
                s_claimed = t;
                break
        :: else -> break
        od
}

inline fenced(m)
{
        assert(m.grant == s_grant && m.order == s_order + 1);
        s_order++
}

inline execute_advance(m)
{
        if
        :: is_ours(m) && is_next(m) ->
                fenced(m);
                settle(m);
                claim();
                s_call = m.call;
                s_left = TTL;
                answer(m, OK, (s_claimed == NOBODY -> 0 : 1 << s_claimed))
        :: else ->
                if
                :: is_ours(m) && is_repeat(m) ->
                        s_left = TTL;
                        answer(m, OK, (claimed_before == NOBODY -> 0 : 1 << claimed_before))
                :: else -> answer(m, FENCED, 0)
                fi
        fi
}

inline execute_renew(m)
{
        if
        :: is_ours(m) ->
                s_left = TTL;
                answer(m, OK, 0)
        :: else -> answer(m, FENCED, 0)
        fi
}

inline execute_release(m)
{
        if
        :: is_ours(m) && is_next(m) ->
                fenced(m);
                /* drained */
                assert(hosts[m.host].nonce != m.nonce || !hosts[m.host].is_running);
                s_is_held = false;
                s_left = 0;
                s_call = m.call;
                s_claimed = NOBODY;
                answer(m, OK, 0)
        :: else ->
                if
                :: !s_is_held && s_epoch == m.epoch && s_call == m.call && is_same_nonce(m) -> answer(m, OK, 0)
                :: else -> answer(m, FENCED, 0)
                fi
        fi
}

inline forget_message(m)
{
        m.kind = NONE;
        m.host = 0;
        m.nonce = 0;
        m.epoch = 0;
        m.call = 0;
        m.task = 0;
        m.said = 0;
        m.attempt = 0;
        m.grant = 0;
        m.order = 0
}

inline execute(m)
{
        if
        :: m.kind == ACQUIRE -> execute_acquire(m)
        :: m.kind == ADVANCE -> execute_advance(m)
        :: m.kind == RENEW -> execute_renew(m)
        :: m.kind == RELEASE -> execute_release(m)
        fi;
        forget_message(m)
}

/* --- what nobody controls ------------------------------------------------------------------------------------------ */

inline tick()
{
        s_left = (s_left > 0 -> s_left - 1 : 0);
        t = 0;
        do
        :: t < HOSTS ->
                hosts[t].left = (hosts[t].left > 0 -> hosts[t].left - 1 : 0);
                hosts[t].pending = (hosts[t].pending > 0 -> hosts[t].pending - 1 : 0);
                t++
        :: else -> break
        od
}

inline assign(to)
{
        c_owner = to;
        c_nonce = hosts[c_owner].nonce
}

active proctype world()
{
        byte t, set;
end:
        do
        /* Messages arrive in any order, at any time after their sender has given up, or never. */
        :: atomic { net[0].kind != NONE -> execute(net[0]); t = 0; set = 0 }
        :: atomic { net[1].kind != NONE -> execute(net[1]); t = 0; set = 0 }
        :: atomic { net[0].kind != NONE && may_fail -> faults--; forget_message(net[0]) }
        :: atomic { net[1].kind != NONE && may_fail -> faults--; forget_message(net[1]) }
        :: atomic { s_left > 0 || hosts[0].left > 0 || hosts[1].left > 0 || hosts[0].pending > 0 || hosts[1].pending > 0 ->
                        tick(); t = 0 }
        /* The leader plans a move; or sees that the owner is gone; or begins anew with what is not above the store's. */
        :: atomic { may_fail -> faults--; assign(1 - c_owner); c_epoch++ }
        :: atomic { hosts[c_owner].nonce != c_nonce -> assign(c_owner); c_epoch++ }
        :: atomic { hosts[c_owner].nonce != c_nonce -> assign(1 - c_owner); c_epoch++ }
        :: atomic { may_fail -> faults--; assign(1 - c_owner) }
        :: atomic { may_fail && c_epoch > 1 -> faults--; assign(1 - c_owner); c_epoch-- }
        od
}

/* --- a host -------------------------------------------------------------------------------------------------------- */

#define me hosts[h]

inline fill(m, what)
{
        m.kind = what;
        m.host = h;
        m.nonce = me.nonce;
        m.epoch = (what == ACQUIRE -> me.asked : me.epoch);
        m.call = (what == ADVANCE || what == RELEASE -> me.call + 1 : 0);
        m.task = me.task;
        m.said = me.said;
        m.attempt = me.attempt;
        m.grant = me.grant;
        m.order = (what == ADVANCE || what == RELEASE -> me.order + 1 : 0)
}

#define has_room (net[0].kind == NONE || net[1].kind == NONE)

inline send(what)
{
        me.waits = what;
        me.pending = TTL;
        if
        :: net[0].kind == NONE -> fill(net[0], what)
        :: else -> fill(net[1], what)
        fi
}

/* The outcome that is to be told, if there is one. */
inline choose_outcome()
{
        me.task = NOBODY;
        me.said = 0;
        t = 0;
        do
        :: t < TASKS ->
                if
                :: me.tasks[t] == SAID_YES || me.tasks[t] == SAID_NO ->
                        me.task = t;
                        me.said = me.tasks[t]
                :: else
                fi;
                t++
        :: else -> break
        od;
        t = 0
}

inline take(set)
{
        t = 0;
        do
        :: t < TASKS ->
                if
                :: (set & (1 << t)) && is_news(h, t) -> me.tasks[t] = READY
                :: else
                fi;
                t++
        :: else -> break
        od;
        t = 0
}

/* All that is remembered of a lease.  A handler that runs is told to stop, and does at some time. */
inline lose()
{
        me.is_stopped = me.is_running;
        me.is_parting = false;
        me.epoch = 0;
        me.call = 0;
        me.left = 0;
        me.grant = 0;
        me.order = 0;
        t = 0;
        do
        :: t < TASKS -> me.tasks[t] = UNKNOWN; t++
        :: else -> break
        od;
        t = 0
}

inline forget_answer()
{
        me.waits = NONE;
        me.asked = 0;
        me.pending = 0;
        me.verdict = NONE;
        me.got_call = 0;
        me.got_epoch = 0;
        me.got_tasks = 0;
        me.got_grant = 0;
        me.task = NOBODY;
        me.said = 0
}

inline forget_told(set)
{
        t = 0;
        do
        :: t < TASKS ->
                if
                :: !(set & (1 << t)) && is_told(h, t) -> me.tasks[t] = UNKNOWN
                :: else
                fi;
                t++
        :: else -> break
        od;
        t = 0
}

inline granted()
{
        if
        :: me.epoch != 0 && is_gap(h) -> lose()
        :: else
        fi;
        me.epoch = me.asked;
        me.is_parting = false;
        me.call = me.got_call;
        me.left = worth(h);
        me.grant = me.got_grant;
        me.order = 0;
        forget_told(me.got_tasks);
        take(me.got_tasks)
}

inline advanced()
{
        me.call++;
        me.order++;
        me.left = worth(h);
        if
        :: me.task != NOBODY -> me.tasks[me.task] = UNKNOWN
        :: else
        fi;
        take(me.got_tasks)
}

inline hear()
{
        if
        :: me.verdict == GRANTED -> granted()
        :: me.verdict == OK && me.waits == ADVANCE -> advanced()
        :: me.verdict == OK && me.waits == RENEW -> me.left = worth(h)
        :: me.verdict == OK && me.waits == RELEASE -> lose()
        :: me.verdict == FENCED -> lose()
        :: me.verdict == BUSY -> skip
        :: me.verdict == STALE ->
                /* Reported; the leader issues one above it. */
                if
                :: c_owner == h && c_nonce == me.nonce && me.got_epoch >= c_epoch -> c_epoch = me.got_epoch + 1
                :: else
                fi;
                if
                :: me.epoch != 0 && me.epoch < me.got_epoch -> lose()
                :: else
                fi
        fi;
        forget_answer()
}

#define should_own     (c_owner == h && c_nonce == me.nonce -> c_epoch : 0)
#define has_outcome    (me.tasks[0] >= SAID_YES || me.tasks[1] >= SAID_YES)
#define has_ready      (me.tasks[0] == READY || me.tasks[1] == READY)
#define has_none       (me.tasks[0] == UNKNOWN && me.tasks[1] == UNKNOWN)
/* The doorbell: something can be claimed. */
#define has_work       (s_places[0] == QUEUED || s_places[0] == PARKED || \
                        (s_places[0] == DONE && (s_places[1] == QUEUED || s_places[1] == PARKED)))
#define is_named       (s_is_held && s_holder == h && s_nonce == me.nonce)
#define is_owner       (is_named && s_epoch == me.epoch)
#define is_idle        (me.waits == NONE)
#define is_acting      (me.epoch != 0 && !me.is_parting)

/* Lost for certain, or only slow. */
#define is_mine(m)    (m.kind != NONE && m.host == h && m.nonce == me.nonce && m.attempt == me.attempt)
#define is_lost       (!is_mine(net[0]) && !is_mine(net[1]))
#define is_unanswered (me.waits != NONE && me.verdict == NONE && (is_lost || may_fail))

inline give_up()
{
        if
        :: is_lost
        :: else -> faults--
        fi;
        me.attempt++
}

inline begin(task)
{
        /* one owner; once */
        assert(is_named);
        assert(!me.is_running);
        me.tasks[task] = RUNNING;
        me.is_running = true;
        me.which = task
}

inline finish(what)
{
        /* once: what ends under its lease counts */
        assert(me.is_stopped || me.tasks[me.which] == RUNNING);
        if
        :: !me.is_stopped -> me.tasks[me.which] = what
        :: else
        fi;
        me.is_running = false;
        me.is_stopped = false;
        me.which = 0
}

proctype a_host(byte h)
{
        byte t;
end:
        do
        :: atomic { is_idle && has_room && should_own != 0 && (should_own != me.epoch || me.is_parting) ->
                        me.asked = should_own; send(ACQUIRE) }
        :: atomic { is_idle && has_room && is_acting && (has_outcome || (has_none && has_work)) ->
                        choose_outcome(); send(ADVANCE) }
        /* An idle owner renews as well.  That changes nothing, and would keep the model from coming to rest, unless it
         * is no owner any more. */
        :: atomic { is_idle && has_room && is_acting && me.left == 0 && (has_ready || !is_owner) -> send(RENEW) }
        :: atomic { is_idle && has_room && me.epoch != 0 && should_own == 0 && is_drained(h) && !has_outcome ->
                        me.is_parting = PARTING; send(RELEASE) }

        :: atomic { me.verdict != NONE -> hear() }
        /* No answer: the same again, or anew.  What was sent may still arrive. */
        :: atomic { is_unanswered && has_room -> give_up(); send(me.waits) }
        :: atomic { is_unanswered && has_room && me.waits != ACQUIRE ->
                        give_up(); forget_answer(); me.asked = me.epoch; send(ACQUIRE) }

        :: atomic { is_acting && me.tasks[0] == READY && is_in_time(h) && is_free(h) -> begin(0) }
        :: atomic { is_acting && me.tasks[1] == READY && is_in_time(h) && is_free(h) -> begin(1) }
        :: atomic { me.is_running -> finish(SAID_YES) }
        :: atomic { me.is_running && may_fail -> faults--; finish(SAID_NO) }

        /* It starts again as another. */
        :: atomic { may_fail ->
                        faults--; me.nonce++; me.is_running = false; me.which = 0; lose(); forget_answer() }
        od
}

/* kept: only when nothing else can happen. */
active proctype judge()
{
        byte t;
        atomic {
                timeout ->
                do
                :: t < TASKS -> assert(s_places[t] == DONE); t++
                :: else -> break
                od
        }
}

init
{
        atomic {
                hosts[0].task = NOBODY;
                hosts[1].task = NOBODY;
                s_holder = NOBODY;
                s_places[1] = (TO_DO == 1 -> DONE : QUEUED);
                run a_host(0);
                run a_host(1)
        }
}
