/* SPDX-License-Identifier: Apache-2.0 OR MIT OR GPL-2.0-only
 *
 * What the programs use of the kernel. Only the members that are used are named, in any order: the loader takes
 * their places from the running kernel's BTF (CO-RE).
 */
#ifndef NARROWS_KERNEL_H
#define NARROWS_KERNEL_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed int s32;
typedef signed long long s64;

#define FROM_BTF __attribute__((preserve_access_index))
#define INLINE static inline __attribute__((always_inline))

struct sock_common {
	volatile u8 skc_state;
	u16 skc_family;
} FROM_BTF;

struct sock {
	struct sock_common __sk_common;
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
	u32 sk_pacing_status;
} FROM_BTF;

struct inet_connection_sock {
	u8 icsk_retransmits;
	u64 icsk_ca_priv[13];
} FROM_BTF;

struct tcp_sock {
	u32 mss_cache;
	u16 tcp_header_len;
	u32 snd_cwnd;
	u32 snd_cwnd_cnt;
	u32 snd_cwnd_clamp;
	u32 snd_ssthresh;
	u32 prior_cwnd;
	u32 packets_out;
	u32 retrans_out;
	u32 sacked_out;
	u32 lost_out;
	u32 max_packets_out;
	u32 prr_out;
	u32 srtt_us;
	u32 rttvar_us;
	u32 delivered;
	u32 delivered_ce;
	u32 lost;
	u32 app_limited;
	u32 data_segs_out;
	u32 total_retrans;
	u8 is_cwnd_limited : 1;
} FROM_BTF;

struct rate_sample {
	u32 prior_delivered;
	s32 delivered;
	long interval_us;
	long rtt_us;
	int losses;
	u32 acked_sacked;
	u32 prior_in_flight;
	u8 is_app_limited;
} FROM_BTF;

/* Part of the kernel's stable interface: not relocated. */
struct bpf_sock_ops {
	u32 op;
	u32 reply;
};

enum { SYN_SENT = 2, SYN_RECEIVED = 3 };
enum { OPEN, DISORDER, CWR, RECOVERY, LOSS };
enum { PACING_NONE, PACING_NEEDED };
enum { SOCK_OPS_CONNECT = 3, SOCK_OPS_ACCEPTED = 5 };
enum { SOL_TCP = 6, TCP_CONGESTION = 13 };
enum { RING_NO_WAKEUP = 1, RING_FORCE_WAKEUP = 2 };

/* Maps, as the loader reads them from the object's BTF. */
#define UINT(name, value) int(*name)[value]
#define TYPE(name, type) type *name
enum { MAP_ARRAY = 2, MAP_STACK = 23, MAP_RINGBUF = 27, MAPPABLE = 1024 };

/* Helpers, by their numbers. */
static void *(*map_lookup)(void *map, const void *key) = (void *)1;
static u64 (*monotonic_ns)(void) = (void *)5;
static long (*set_option)(void *, int, int, void *, int) = (void *)49;
static long (*map_push)(void *map, const void *value, u64 flags) = (void *)87;
static long (*map_pop)(void *map, void *value) = (void *)88;
static void *(*ring_reserve)(void *ring, u64 size, u64 flags) = (void *)131;
static void (*ring_submit)(void *data, u64 flags) = (void *)132;

#endif
