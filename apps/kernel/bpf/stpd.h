/* SPDX-License-Identifier: Apache-2.0 OR MIT OR GPL-2.0-only
 *
 * ST-PD (core/congestion/src/stpd.rs) in fixed point: the same steps in the same order, for programs that need
 * nobody in user space. Its parameters and the fuzzy supervisor's gains are in maps that are filled when it is loaded.
 *
 * Windows and errors have 32 and 16 binary places, gains 24. Products of at most 2^18 packets are told apart, so
 * that gain (at most 10) times error stays below 2^63.
 */
#ifndef NARROWS_STPD_H
#define NARROWS_STPD_H

#include "kernel.h"

#define STPD_PRODUCTS 121
#define STPD_MAX_PACKETS (1u << 18)

/* How it begins, as `Startup`. */
enum { STPD_CONTROL = 0, STPD_SLOW = 1, STPD_DRAIN = 2 };

/* Stages of its start, in their order: core/congestion/src/stpd/startup.rs. */
enum { OVER = 0, SLOW, HOLD, DRAIN_FLIGHT, DRAINED, REGROW };

struct stpd_parameters {
	s64 reference; /* packets, 16 places */
	s64 max_rise;  /* packets, 32 places */
	s64 max_fall;
	u32 startup; /* STPD_CONTROL, STPD_SLOW or STPD_DRAIN */
	u32 falls;   /* whether the proportional gain falls beyond the table, as 1 / product */
};

/* For one product of bandwidth and delay in packets. */
struct stpd_gains {
	u32 kp;
	u32 kd;
};

struct stpd_state {
	s64 cwnd;     /* 32 places */
	s64 buffered; /* 16 places; the reference less this is the error, of which the next one knows */
	s64 resume;   /* window before the drain, 0 if there has been none; 32 places */
	u8 stage;
	u8 has_error; /* the law has decided by `buffered` */
	u8 full;      /* a loss in slow start has shown that the buffer is full */
	u32 left; /* packets to be delivered until a stage of one round is over */
};

/* An acknowledgement of one packet. */
struct stpd_ack {
	u32 rtt_us;
	u32 min_rtt_us;
	u32 product; /* packets sent since that one left */
	u8 may_rise;
	u8 delivers;
};

/* Looked up as in any table: an index of one's own would have the verifier follow every way to each of its values. */
INLINE const struct stpd_gains *stpd_gains(u32 row);

INLINE void stpd_add(struct stpd_state *state, s64 change)
{
	s64 cwnd = state->cwnd + change;
	s64 most = (s64)STPD_MAX_PACKETS << 32;

	if (cwnd < 1ll << 32)
		cwnd = 1ll << 32;
	state->cwnd = cwnd > most ? most : cwnd;
}

/* By one packet, up to `most`. */
INLINE void stpd_grow(struct stpd_state *state, const struct stpd_ack *ack, s64 most)
{
	if (!ack->may_rise || !ack->delivers)
		return;
	stpd_add(state, 1ll << 32);
	if (state->cwnd > most)
		state->cwnd = most;
}

/* Whether the start decides, not the law. The stage is looked at once: what the verifier knows of it would multiply
 * with every turn of the loop over packets. */
INLINE u8 stpd_start(struct stpd_state *state, const struct stpd_ack *ack, u32 product, const struct stpd_parameters *p)
{
	u8 stage = state->stage;
	s64 quarter;

	if (stage == OVER)
		return 0;
	if (stage == SLOW) {
		/* A queue of a quarter of the window shows that the pipe is full. */
		quarter = (s64)product << 14;
		if (quarter < 1 << 16)
			quarter = 1 << 16;
		if (!state->full && state->buffered < quarter) {
			stpd_grow(state, ack, (s64)STPD_MAX_PACKETS << 32);
			return 1;
		}
		state->left = product;
		stage = p->startup == STPD_DRAIN && !state->resume ? HOLD : OVER;
		state->stage = stage;
		return stage;
	}
	if (stage == REGROW) {
		if (state->cwnd < state->resume) {
			stpd_grow(state, ack, state->resume);
			return 1;
		}
		state->stage = OVER;
		return 0;
	}
	if (ack->delivers && state->left-- <= 1) {
		state->left = product;
		state->stage = stage + 1;
		if (stage == HOLD) {
			state->resume = state->cwnd;
			stpd_add(state, (state->cwnd >> 2) - state->cwnd);
		}
	}
	return 1;
}

INLINE void stpd_on_ack(struct stpd_state *state, const struct stpd_ack *ack, const struct stpd_parameters *p)
{
	u32 product = ack->product < STPD_MAX_PACKETS ? ack->product : STPD_MAX_PACKETS;
	u64 queued_us = ack->rtt_us > ack->min_rtt_us ? ack->rtt_us - ack->min_rtt_us : 0;
	u32 row;
	const struct stpd_gains *gains;
	s64 previous = state->buffered, error, change, most;
	u64 kp;

	/* Times 2^18 packets and 2^16 it is below 2^61. */
	if (queued_us >= 1u << 27)
		queued_us = (1u << 27) - 1;
	/* To the nearest: thousands of acknowledgements that round down would add up. */
	state->buffered = ack->rtt_us ? (((queued_us * product) << 16) + ack->rtt_us / 2) / ack->rtt_us : 0;
	if (stpd_start(state, ack, product, p)) {
		state->has_error = 0;
		return;
	}
	error = p->reference - state->buffered;
	row = product < STPD_PRODUCTS ? product : STPD_PRODUCTS - 1;
	gains = stpd_gains(row);
	if (!gains)
		return;
	kp = gains->kp;
	if (p->falls && product >= STPD_PRODUCTS)
		kp = kp * (STPD_PRODUCTS - 1) / product;
	change = (s64)kp * error;
	if (state->has_error)
		change += (s64)gains->kd * (previous - state->buffered);
	/* 40 places. */
	change >>= 8;
	state->has_error = 1;
	if (change < -p->max_fall)
		change = -p->max_fall;
	most = ack->may_rise ? p->max_rise : 0;
	stpd_add(state, change > most ? most : change);
}

INLINE void stpd_on_loss(struct stpd_state *state)
{
	/* Packets queue: the buffer is smaller than the quarter that slow start waits for. */
	if (state->buffered >= 1 << 16 && state->stage == SLOW)
		state->full = 1;
}

INLINE void stpd_begin(struct stpd_state *state, const struct stpd_parameters *p)
{
	state->stage = p->startup == STPD_CONTROL ? OVER : SLOW;
	state->full = 0;
}

INLINE void stpd_on_timeout(struct stpd_state *state, const struct stpd_parameters *p)
{
	state->cwnd = 1ll << 32;
	state->has_error = 0;
	state->buffered = 0;
	stpd_begin(state, p);
}

#endif
