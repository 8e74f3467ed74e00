/* SPDX-License-Identifier: Apache-2.0 OR MIT OR GPL-2.0-only
 *
 * A TCP congestion control whose decisions are made in user space.
 *
 * Each acknowledgement puts a record into a ring. User space writes cwnd and pacing rate into the connection's
 * slot, and the next acknowledgement applies them. If an answer is late (two round trips, and at least 20 ms), the
 * connection goes on as Reno until answers come again; so does a connection without a slot for all its life.
 *
 * Functions without `static` are programs: nw_NAME is tcp_congestion_ops' NAME. nw_choose is a program for a cgroup.
 */
#include "shared.h"
#include "stpd.h"

char nw_license[] __attribute__((section("license"))) = "Dual MIT/GPL";

struct name {
	char text[16];
};

#define MAP(name) name __attribute__((section(".maps"), used))

struct {
	UINT(type, MAP_RINGBUF);
	UINT(max_entries, RING_BYTES);
} MAP(records);

struct {
	UINT(type, MAP_ARRAY);
	UINT(max_entries, SLOTS);
	UINT(map_flags, MAPPABLE);
	TYPE(key, u32);
	TYPE(value, struct slot);
} MAP(slots);

struct {
	UINT(type, MAP_STACK);
	UINT(max_entries, SLOTS);
	TYPE(value, u32);
} MAP(free_slots);

struct {
	UINT(type, MAP_ARRAY);
	UINT(max_entries, 1);
	UINT(map_flags, MAPPABLE);
	TYPE(key, u32);
	TYPE(value, struct control);
} MAP(control);

struct {
	UINT(type, MAP_ARRAY);
	UINT(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct name);
} MAP(chosen);

struct {
	UINT(type, MAP_ARRAY);
	UINT(max_entries, 1);
	TYPE(key, u32);
	TYPE(value, struct stpd_parameters);
} MAP(stpd);

struct {
	UINT(type, MAP_ARRAY);
	UINT(max_entries, STPD_PRODUCTS);
	TYPE(key, u32);
	TYPE(value, struct stpd_gains);
} MAP(gains);

#define PATIENCE_NS 20000000ull
#define MAX_CWND (1u << 20)
#define MAX_RATE 125000000000ull
#define NO_SSTHRESH 0x7fffffffu
#define CHOSEN 0x6e77u

/* What is remembered of a connection: at most 104 bytes, in icsk_ca_priv. */
struct connection {
	u64 waiting;  /* time of the oldest record that may lack an answer */
	u64 event;    /* an answer that does not know this is none */
	u32 slot;     /* number + 1; 0: none */
	u32 number;
	u32 episodes;
	u32 undos;
	u32 prr_delivered;
	u32 prior_cwnd;
	u32 mode;
	u8 state;
	u8 changed;
	u8 begun;       /* what is below is set */
	u8 in_recovery; /* as the controller has been told */
};

/* … by a controller inside the kernel. */
struct native {
	struct connection connection;
	struct stpd_state stpd;
	u32 rtt_us;
	u32 min_rtt_us;
	/* Counts of which it has been told. */
	u32 lost;
	u32 episodes;
	u32 undos;
	u32 episode_losses;
};

_Static_assert(sizeof(struct native) <= 104, "icsk_ca_priv");

INLINE struct connection *connection(struct sock *sk)
{
	return (struct connection *)((struct inet_connection_sock *)sk)->icsk_ca_priv;
}

INLINE struct control *get_control(void)
{
	u32 zero = 0;
	return map_lookup(&control, &zero);
}

INLINE struct slot *get_slot(struct connection *c)
{
	u32 number = c->slot - 1;
	return map_lookup(&slots, &number);
}

INLINE u32 in_flight(struct tcp_sock *tp)
{
	return tp->packets_out - (tp->sacked_out + tp->lost_out) + tp->retrans_out;
}

INLINE u32 max(u32 a, u32 b)
{
	return a > b ? a : b;
}

INLINE u32 min(u32 a, u32 b)
{
	return a < b ? a : b;
}

/* A bit field has no address: the loader tells the byte and the shifts. */
INLINE u32 is_cwnd_limited(struct tcp_sock *tp)
{
	u64 value = *((u8 *)tp + __builtin_preserve_field_info(tp->is_cwnd_limited, 0));
	value <<= __builtin_preserve_field_info(tp->is_cwnd_limited, 4);
	value >>= __builtin_preserve_field_info(tp->is_cwnd_limited, 5);
	/* As the kernel judges in slow start. */
	return value || (tp->snd_cwnd < tp->snd_ssthresh && tp->snd_cwnd < 2 * tp->max_packets_out);
}

/* Puts what holds for any record; NULL if the ring is full. */
INLINE struct record *begin_record(struct sock *sk, u32 kind, u64 now, struct control *control)
{
	struct connection *c = connection(sk);
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct record *r = ring_reserve(&records, sizeof(*r), 0);

	if (!r) {
		__sync_fetch_and_add(&control->lost_records, 1);
		return 0;
	}
	r->time = now;
	r->slot = c->slot - 1;
	r->connection = c->number;
	r->kind = kind;
	r->state = c->state;
	r->flags = (is_cwnd_limited(tp) ? CWND_LIMITED : 0) | (tp->app_limited ? APP_LIMITED : 0) |
		   (sk->__sk_common.skc_family == 10 ? IPV6 : 0);
	r->retransmits = ((struct inet_connection_sock *)sk)->icsk_retransmits;
	r->episodes = c->episodes;
	r->undos = c->undos;
	r->mss = tp->mss_cache;
	r->tcp_header = tp->tcp_header_len;
	r->cwnd = tp->snd_cwnd;
	r->srtt_us = tp->srtt_us >> 3;
	r->rttvar_us = tp->rttvar_us >> 2;
	r->rtt_us = -1;
	r->newly_delivered = 0;
	r->sample_delivered = 0;
	r->sample_interval_us = 0;
	r->sample_prior_delivered = 0;
	r->packets_out = tp->packets_out;
	r->sacked_out = tp->sacked_out;
	r->in_flight = in_flight(tp);
	r->prior_in_flight = r->in_flight;
	r->delivered = tp->delivered;
	r->delivered_ce = tp->delivered_ce;
	r->lost = tp->lost;
	r->sent = tp->data_segs_out;
	r->retransmitted = tp->total_retrans;
	r->window = 0;
	r->unused = 0;
	return r;
}

/* User space is woken only if it sleeps. The addition is a full barrier: what is reserved is seen by who falls
 * asleep, or that it sleeps is seen here. */
INLINE void end_record(struct record *r, struct control *control)
{
	u64 asleep = __sync_fetch_and_add(&control->asleep, 0);

	if (asleep)
		control->asleep = 0;
	ring_submit(r, asleep ? RING_FORCE_WAKEUP : RING_NO_WAKEUP);
}

/* The window in a recovery: towards `target` in proportion to what arrives (RFC 6937), instead of silence until so
 * much has drained. */
INLINE u32 reduced(struct tcp_sock *tp, struct connection *c, u32 target)
{
	u32 flight = in_flight(tp);
	u64 may = (u64)target * c->prr_delivered + c->prior_cwnd - 1;

	if (flight <= target)
		return target;
	may /= max(c->prior_cwnd, 1);
	may = may > tp->prr_out ? may - tp->prr_out : 0;
	/* The first retransmission leaves at once. */
	if (!tp->prr_out && !may)
		may = 1;
	return flight + (u32)may;
}

/* No faster than the application permits (SO_MAX_PACING_RATE). */
INLINE void set_rate(struct sock *sk, u64 rate)
{
	u64 most = sk->sk_max_pacing_rate;
	sk->sk_pacing_rate = rate < most ? rate : most;
}

/* Pacing as the kernel's own: 2 windows per round trip in slow start, 1.2 after it. */
INLINE void usual_rate(struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	u64 rate = (u64)tp->mss_cache * max(tp->snd_cwnd, tp->packets_out) * 8 * 1000000;

	rate = rate * (tp->snd_cwnd < tp->snd_ssthresh / 2 ? 200 : 120) / 100;
	if (tp->srtt_us)
		set_rate(sk, rate / tp->srtt_us);
}

/* Who senses delay must not cause it by sending in bursts. */
INLINE void pace(struct sock *sk)
{
	if (sk->sk_pacing_status == PACING_NONE)
		sk->sk_pacing_status = PACING_NEEDED;
}

/* The RTT of the newest packet that arrived, below 0 if there is none. Where it had been sent twice, the kernel takes
 * the RTT from timestamps, in whole milliseconds and too short by up to one: for who senses delay, a queue that is not
 * there, for ever. One of a thousand others is taken for such a one. */
INLINE s32 exact_rtt_us(const struct rate_sample *rs)
{
	u64 rtt_us = rs->rtt_us;

	return rs->rtt_us > 0 && rs->rtt_us < NO_SSTHRESH && rtt_us % 1000 ? rtt_us : -1;
}

INLINE void reno(struct sock *sk, u32 delivered)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct connection *c = connection(sk);
	u32 cwnd = tp->snd_cwnd;

	if (c->state == RECOVERY || c->state == CWR) {
		tp->snd_cwnd = reduced(tp, c, max(tp->snd_ssthresh, 2));
	} else if (is_cwnd_limited(tp) || c->state == LOSS) {
		if (cwnd < tp->snd_ssthresh) {
			u32 to = min(cwnd + delivered, tp->snd_ssthresh);
			delivered -= to - cwnd;
			cwnd = to;
		}
		delivered += tp->snd_cwnd_cnt;
		if (delivered >= cwnd) {
			u32 windows = delivered / max(cwnd, 1);
			delivered -= windows * cwnd;
			cwnd += windows;
		}
		tp->snd_cwnd_cnt = delivered;
		tp->snd_cwnd = min(max(cwnd, 1), min(tp->snd_cwnd_clamp, MAX_CWND));
	}
	usual_rate(sk);
}

/* User space is late: from here on as Reno. */
INLINE void begin_fallback(struct sock *sk, struct slot *slot, struct control *control, u32 flight)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct connection *c = connection(sk);

	/* A window beside a rate is only its upper bound. */
	if (c->mode == MODE_CONTROLLED && slot->rate)
		tp->snd_cwnd = min(tp->snd_cwnd, max(flight, 4));
	/* Who was past its start does not start again. */
	if (tp->delivered > 8 * tp->snd_cwnd && tp->snd_ssthresh > tp->snd_cwnd && c->state != LOSS)
		tp->snd_ssthresh = max(tp->snd_cwnd, 2);
	tp->snd_cwnd_cnt = 0;
	c->mode = MODE_FALLBACK;
	slot->fallbacks++;
	__sync_fetch_and_add(&control->fallbacks, 1);
}

INLINE void apply(struct sock *sk, struct slot *slot)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct connection *c = connection(sk);
	u32 cwnd = min(max(slot->cwnd, 1), min(tp->snd_cwnd_clamp, MAX_CWND));
	u64 rate = slot->rate;
	u32 ssthresh = slot->ssthresh;

	if (c->state == RECOVERY || c->state == CWR)
		cwnd = reduced(tp, c, cwnd);
	tp->snd_cwnd = max(cwnd, 1);
	tp->snd_ssthresh = ssthresh ? min(max(ssthresh, 2), NO_SSTHRESH) : NO_SSTHRESH;
	if (rate) {
		/* No slower than a packet per second: a later answer must find something to do. */
		rate = rate > MAX_RATE ? MAX_RATE : rate;
		rate = rate < tp->mss_cache ? tp->mss_cache : rate;
		set_rate(sk, rate);
		pace(sk);
	} else {
		usual_rate(sk);
		if (slot->smooth)
			pace(sk);
	}
	c->mode = MODE_CONTROLLED;
}

INLINE struct record *begin_ack(struct sock *sk, const struct rate_sample *rs, u64 now, struct control *control)
{
	struct record *r = begin_record(sk, RECORD_ACK, now, control);

	if (!r)
		return 0;
	r->newly_delivered = rs->acked_sacked;
	r->prior_in_flight = rs->prior_in_flight;
	r->rtt_us = exact_rtt_us(rs);
	if (rs->delivered > 0 && rs->interval_us > 0) {
		r->sample_delivered = rs->delivered;
		r->sample_interval_us = rs->interval_us;
		r->sample_prior_delivered = rs->prior_delivered;
	}
	if (rs->is_app_limited)
		r->flags |= SAMPLE_APP_LIMITED;
	return r;
}

/* For those who look at connections. */
INLINE void show(struct sock *sk, struct slot *slot, u32 mode, u64 now)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	slot->mode = mode;
	slot->applied_cwnd = tp->snd_cwnd;
	slot->applied_rate = sk->sk_pacing_status == PACING_NONE ? 0 : sk->sk_pacing_rate;
	slot->srtt_us = tp->srtt_us >> 3;
	slot->mss = tp->mss_cache;
	slot->delivered = tp->delivered;
	slot->updated = now;
}

INLINE void on_ack(struct sock *sk, const struct rate_sample *rs)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct connection *c = connection(sk);
	struct control *control;
	struct slot *slot;
	struct record *r;
	u32 delivered = rs->acked_sacked;
	u32 flight = rs->prior_in_flight;
	u64 now, answered, patience;

	/* The answer to a SYN: neither MSS nor window are known. */
	if (sk->__sk_common.skc_state == SYN_SENT || sk->__sk_common.skc_state == SYN_RECEIVED)
		return;
	c->prr_delivered += delivered;
	control = get_control();
	slot = get_slot(c);
	if (!c->slot || !slot || !control) {
		reno(sk, delivered);
		return;
	}
	now = monotonic_ns();
	answered = slot->answered_connection == c->number ? *(volatile u64 *)&slot->answered : 0;
	if (delivered || rs->losses > 0 || c->changed) {
		r = begin_ack(sk, rs, now, control);
		if (r)
			end_record(r, control);
		c->changed = 0;
		if (answered >= c->waiting)
			c->waiting = now;
	}
	patience = (u64)(tp->srtt_us >> 3) * 2000;
	if (patience < PATIENCE_NS)
		patience = PATIENCE_NS;
	if (answered < c->waiting && now - c->waiting > patience) {
		if (c->mode != MODE_FALLBACK)
			begin_fallback(sk, slot, control, flight);
		reno(sk, delivered);
	} else if (answered && answered >= c->event) {
		apply(sk, slot);
	} else if (c->mode == MODE_FALLBACK) {
		reno(sk, delivered);
	}
	show(sk, slot, c->mode, now);
}

/* A slot for a new connection, if there is one. */
INLINE void take_slot(struct connection *c)
{
	struct control *control = get_control();
	struct slot *slot;
	u32 number;

	c->mode = MODE_FALLBACK;
	if (!control)
		return;
	if (map_pop(&free_slots, &number)) {
		__sync_fetch_and_add(&control->without_slot, 1);
		return;
	}
	slot = map_lookup(&slots, &number);
	if (!slot)
		return;
	c->mode = MODE_NEW;
	c->slot = number + 1;
	c->number = (u32)__sync_fetch_and_add(&control->connections, 1) + 1;
	slot->mode = MODE_NEW;
	slot->fallbacks = 0;
	slot->applied_cwnd = 0;
	slot->applied_rate = 0;
	slot->delivered = 0;
	slot->connection = c->number;
}

void nw_init(u64 *ctx)
{
	struct connection *c = connection((struct sock *)ctx[0]);

	__builtin_memset(c, 0, sizeof(*c));
	take_slot(c);
}

void nw_release(u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct connection *c = connection(sk);
	struct control *control = get_control();
	struct slot *slot = get_slot(c);
	u32 number = c->slot - 1;
	struct record *r;

	if (!c->slot || !slot || !control)
		return;
	r = begin_record(sk, RECORD_CLOSED, monotonic_ns(), control);
	if (r)
		end_record(r, control);
	slot->connection = 0;
	c->slot = 0;
	map_push(&free_slots, &number, 0);
}

/* Linux 6.10 and newer. */
void nw_cong_control(u64 *ctx)
{
	on_ack((struct sock *)ctx[0], (const struct rate_sample *)ctx[3]);
}

/* Before it. */
void nw_cong_control_2(u64 *ctx)
{
	on_ack((struct sock *)ctx[0], (const struct rate_sample *)ctx[1]);
}

/* Whether the retransmission timer has expired. */
INLINE int enter_state(struct sock *sk, u8 state)
{
	struct connection *c = connection(sk);

	if (state == c->state && state != LOSS)
		return 0;
	c->changed = 1;
	if ((state == RECOVERY || state == CWR) && c->state != RECOVERY && c->state != CWR) {
		c->episodes++;
		c->prr_delivered = 0;
		c->prior_cwnd = ((struct tcp_sock *)sk)->snd_cwnd;
	}
	c->state = state;
	return state == LOSS;
}

void nw_set_state(u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct connection *c = connection(sk);
	struct control *control;
	struct record *r;

	if (!enter_state(sk, ctx[1]))
		return;
	/* The kernel has set the window for slow start; what was answered before knows nothing of it. */
	control = get_control();
	if (!c->slot || !control)
		return;
	c->event = monotonic_ns();
	r = begin_record(sk, RECORD_TIMEOUT, c->event, control);
	if (r)
		end_record(r, control);
}

u32 nw_ssthresh(u64 *ctx)
{
	struct tcp_sock *tp = (struct tcp_sock *)ctx[0];
	return max(tp->snd_cwnd >> 1, 2);
}

u32 nw_undo_cwnd(u64 *ctx)
{
	struct tcp_sock *tp = (struct tcp_sock *)ctx[0];
	struct connection *c = connection((struct sock *)ctx[0]);

	c->undos++;
	c->changed = 1;
	return max(tp->snd_cwnd, tp->prior_cwnd);
}

u32 nw_min_tso_segs(u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	/* Two of 1,500 bytes take a millisecond of a link of 24 Mbit/s. */
	return sk->sk_pacing_rate < 24000000 / 8 ? 1 : 2;
}

/* ST-PD, of which each operation has a form of its own where it differs. */

INLINE struct native *native(struct sock *sk)
{
	return (struct native *)((struct inet_connection_sock *)sk)->icsk_ca_priv;
}

INLINE const struct stpd_parameters *stpd_parameters(void)
{
	u32 zero = 0;
	return map_lookup(&stpd, &zero);
}

INLINE const struct stpd_gains *stpd_gains(u32 row)
{
	return map_lookup(&gains, &row);
}

/* At the first acknowledgement or timeout, as user space begins at the first record. */
INLINE void begin_native(struct sock *sk, struct native *n, const struct stpd_parameters *p)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	if (n->connection.begun)
		return;
	n->connection.begun = 1;
	n->stpd.cwnd = (s64)tp->snd_cwnd << 32;
	stpd_begin(&n->stpd, p);
	n->rtt_us = tp->srtt_us >> 3;
	n->min_rtt_us = ~0u;
	n->lost = tp->lost;
}

INLINE u32 newly_lost(struct tcp_sock *tp, struct native *n)
{
	u32 lost = tp->lost - n->lost;

	n->lost = tp->lost;
	return (s32)lost < 0 ? 0 : lost;
}

/* Which recovery the controller knows of: src/connection.rs, tell_events. */
INLINE void follow_recovery(struct native *n, u32 lost)
{
	struct connection *c = &n->connection;
	u8 begins = c->episodes != n->episodes;

	if (c->undos != n->undos && n->episode_losses) {
		n->episode_losses = 0;
		c->in_recovery = 0;
	}
	if (begins || c->state < CWR)
		c->in_recovery = 0;
	if (begins && c->state != CWR) {
		n->episode_losses = 0;
		c->in_recovery = c->state == RECOVERY;
	}
	n->episode_losses += lost;
	n->episodes = c->episodes;
	n->undos = c->undos;
}

INLINE void put_native(struct sock *sk, struct record *r, struct control *control)
{
	if (!r)
		return;
	r->window = native(sk)->stpd.cwnd >> 24;
	end_record(r, control);
}

/* Most packets of one acknowledgement that are told one by one; more change nothing. A super-frame has 45. */
#define MAX_TOLD 48

INLINE void stpd_cong_control(struct sock *sk, const struct rate_sample *rs)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct native *n = native(sk);
	struct connection *c = &n->connection;
	const struct stpd_parameters *p = stpd_parameters();
	struct control *control = get_control();
	struct slot *slot = get_slot(c);
	u32 delivered = rs->acked_sacked, flight = in_flight(tp), i, lost;
	struct record *r = 0;
	struct stpd_ack ack;
	u64 now = 0;

	if (sk->__sk_common.skc_state == SYN_SENT || sk->__sk_common.skc_state == SYN_RECEIVED || !p || !control)
		return;
	c->prr_delivered += delivered;
	if (delivered || rs->losses > 0 || c->changed) {
		if (c->slot && control->listens)
			r = begin_ack(sk, rs, monotonic_ns(), control);
		c->changed = 0;
		begin_native(sk, n, p);
		if (exact_rtt_us(rs) > 0)
			n->rtt_us = rs->rtt_us;
		n->min_rtt_us = min(n->min_rtt_us, n->rtt_us);
		ack.rtt_us = n->rtt_us;
		ack.min_rtt_us = n->min_rtt_us;
		ack.may_rise = is_cwnd_limited(tp) || c->in_recovery;
		ack.delivers = delivered > 0;
		ack.product = flight;
		if (!delivered)
			stpd_on_ack(&n->stpd, &ack, p);
		for (i = 0; i < MAX_TOLD && i < delivered; i++) {
			/* What is in memory is not kept in registers from turn to turn: the verifier would follow every
			 * combination of what it knows of them. */
			__asm__ volatile("" ::: "memory");
			ack.product = flight + (delivered - 1 - i);
			stpd_on_ack(&n->stpd, &ack, p);
		}
		lost = newly_lost(tp, n);
		if (lost)
			stpd_on_loss(&n->stpd);
		follow_recovery(n, lost);
		put_native(sk, r, control);
	}
	i = min(max(n->stpd.cwnd >> 32, 1), tp->snd_cwnd_clamp);
	tp->snd_cwnd = max(c->state == RECOVERY || c->state == CWR ? reduced(tp, c, i) : i, 1);
	tp->snd_ssthresh = NO_SSTHRESH;
	usual_rate(sk);
	pace(sk);
	if (c->slot && slot)
		show(sk, slot, MODE_CONTROLLED, now);
}

void nw_stpd_init(u64 *ctx)
{
	struct native *n = native((struct sock *)ctx[0]);

	__builtin_memset(n, 0, sizeof(*n));
	take_slot(&n->connection);
}

void nw_stpd_release(u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct connection *c = connection(sk);
	struct slot *slot = get_slot(c);
	u32 number = c->slot - 1;

	if (!c->slot || !slot)
		return;
	slot->connection = 0;
	c->slot = 0;
	map_push(&free_slots, &number, 0);
}

void nw_stpd_cong_control(u64 *ctx)
{
	stpd_cong_control((struct sock *)ctx[0], (const struct rate_sample *)ctx[3]);
}

void nw_stpd_cong_control_2(u64 *ctx)
{
	stpd_cong_control((struct sock *)ctx[0], (const struct rate_sample *)ctx[1]);
}

void nw_stpd_set_state(u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct native *n = native(sk);
	const struct stpd_parameters *p = stpd_parameters();
	struct control *control = get_control();
	struct record *r = 0;
	u32 lost;

	if (!enter_state(sk, ctx[1]) || !p || !control)
		return;
	if (n->connection.slot && control->listens)
		r = begin_record(sk, RECORD_TIMEOUT, monotonic_ns(), control);
	begin_native(sk, n, p);
	lost = newly_lost((struct tcp_sock *)sk, n);
	stpd_on_timeout(&n->stpd, p);
	n->connection.in_recovery = 0;
	n->episode_losses = max(lost, 1);
	n->episodes = n->connection.episodes;
	n->undos = n->connection.undos;
	put_native(sk, r, control);
}

/* One step of it alone, for tests: they pass a `struct stpd_step` and read it back. */
struct stpd_step {
	struct stpd_state state;
	struct stpd_ack ack;
};

#define STEP_WORDS (sizeof(struct stpd_step) / 8)

int nw_stpd_step(volatile u64 *context)
{
	const struct stpd_parameters *p = stpd_parameters();
	union {
		struct stpd_step step;
		u64 words[STEP_WORDS];
	} copy;
	u32 i;

	/* The context is read and written only at constant places. */
	_Pragma("unroll") for (i = 0; i < STEP_WORDS; i++)
		copy.words[i] = context[i];
	if (p)
		stpd_on_ack(&copy.step.state, &copy.step.ack, p);
	__asm__ volatile("" ::: "memory");
	_Pragma("unroll") for (i = 0; i < STEP_WORDS; i++)
		context[i] = copy.words[i];
	return 0;
}

/* Every connection of a cgroup gets the chosen congestion control. The programs of outer cgroups run after those of
 * inner ones, on the same context: the innermost chooses, the others see by the reply, which nobody else reads at
 * these operations, that it has. */
int nw_choose(struct bpf_sock_ops *ops)
{
	u32 zero = 0;
	char *name;

	if (ops->op != SOCK_OPS_CONNECT && ops->op != SOCK_OPS_ACCEPTED)
		return 1;
	if (ops->reply == CHOSEN)
		return 1;
	ops->reply = CHOSEN;
	name = map_lookup(&chosen, &zero);
	if (name)
		set_option(ops, SOL_TCP, TCP_CONGESTION, name, 16);
	return 1;
}
