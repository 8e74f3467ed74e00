/* SPDX-License-Identifier: Apache-2.0 OR MIT OR GPL-2.0-only
 *
 * What programs and user space exchange; src/record.rs has the same.
 */
#ifndef NARROWS_SHARED_H
#define NARROWS_SHARED_H

#include "kernel.h"

/* Connections that have a controller at once. */
#define SLOTS 4096
#define RING_BYTES (4 << 20)

enum record_kind { RECORD_ACK = 1, RECORD_TIMEOUT = 2, RECORD_CLOSED = 3 };

enum record_flags {
	CWND_LIMITED = 1,
	APP_LIMITED = 2,
	/* The rate sample was limited by the application. */
	SAMPLE_APP_LIMITED = 4,
	IPV6 = 8,
};

struct record {
	u64 time; /* CLOCK_MONOTONIC, ns */
	u32 slot;
	u32 connection;
	u8 kind;
	u8 state;
	u8 flags;
	u8 retransmits;
	u32 episodes; /* losses and marks that reduced or could reduce, so far */
	u32 undos;    /* episodes that turned out to be none, so far */
	u32 mss;
	u32 tcp_header;
	u32 cwnd;
	u32 srtt_us;
	u32 rttvar_us;
	s32 rtt_us; /* below 0: none */
	u32 newly_delivered;
	u32 sample_delivered; /* 0: no sample */
	u32 sample_interval_us;
	u32 sample_prior_delivered;
	u32 packets_out;
	u32 sacked_out;
	u32 in_flight;
	u32 prior_in_flight;
	u32 delivered;
	u32 delivered_ce;
	u32 lost;
	u32 sent;
	u32 retransmitted;
	u32 window; /* of a controller inside the kernel after this: segments, 8 binary places */
	u32 unused;
};

/* Who decides over a connection. */
enum mode { MODE_NEW, MODE_CONTROLLED, MODE_FALLBACK };

struct slot {
	/* Written by user space. */
	u64 answered; /* time of the newest record that the answer knows */
	u32 answered_connection;
	u32 cwnd;
	u64 rate;     /* bytes of payload per second; 0: not paced */
	u32 ssthresh; /* 0: none */
	u32 smooth;   /* without a rate: whether to pace nevertheless, as fast as the kernel usually does */
	u32 unused[8];
	/* Written by the kernel. */
	u32 connection; /* 0: free */
	u32 mode;
	u32 applied_cwnd;
	u32 srtt_us;
	u64 applied_rate;
	u64 delivered;
	u64 updated;
	u32 fallbacks;
	u32 mss;
	u32 unused2[4];
};

struct control {
	/* Written by user space. */
	u64 asleep; /* the next record shall wake it */
	u64 listens; /* whether a controller inside the kernel puts records, too */
	u64 unused[6];
	/* Written by the kernel. */
	u64 connections;
	u64 without_slot;
	u64 lost_records;
	u64 fallbacks;
	u64 unused2[4];
	/* Statistics of user space: kept here for those who ask. */
	u64 statistics[512 - 16];
};

#endif
