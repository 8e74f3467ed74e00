/* Narrows' congestion controllers and test network.
 *
 * Ownership: a pointer from narrows_..._new belongs to the caller until narrows_..._free, which takes NULL, too. No function
 * keeps a pointer that it was given. An object may be used by one thread at a time, by different threads in turn.
 *
 * Bounds: texts end with a NUL and are UTF-8. A message is cut to its buffer, NUL included. Times are nanoseconds from an
 * origin of the caller's choice and never decrease; smaller ones count as the largest so far.
 *
 * Errors: functions with an int return NARROWS_OK or a negative number. NULL for an object, or for a place that must be
 * written, is NARROWS_INVALID. After NARROWS_FAILED the object can only be freed.
 */
#ifndef NARROWS_H
#define NARROWS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NARROWS_OK 0
/* An argument is NULL, or out of its range. */
#define NARROWS_INVALID (-1)
/* The buffer is too small; the length that it needs was written, and the datagram is kept. */
#define NARROWS_TOO_SMALL (-2)
/* A fault inside the library. */
#define NARROWS_FAILED (-3)

#define NARROWS_NEVER UINT64_MAX

/* ---- Congestion controllers -------------------------------------------------------------------------------------- */

typedef struct narrows_controller narrows_controller;

/* The controller of this name with its parameters, such as "rrtp" or "vegas(alpha=2)", for packets of mtu bytes (at least
 * 1). NULL if there is none, or if it needs more than these calls tell; the reason is written to message. */
narrows_controller *narrows_controller_new(const char *specification, uint16_t mtu, uint64_t seed, uint64_t now,
                                           char *message, size_t message_size);
void narrows_controller_free(narrows_controller *controller);

/* A packet that will be acknowledged was sent. Numbers need not be unique: those of QUIC's packet number spaces do. */
int narrows_controller_sent(narrows_controller *controller, uint64_t now, uint64_t number, uint64_t bytes);
/* A packet was acknowledged that was sent at that time. Then, once for each ACK frame, narrows_controller_acks_end. */
int narrows_controller_acked(narrows_controller *controller, uint64_t now, uint64_t number, uint64_t sent, uint64_t bytes,
                             uint64_t smoothed_rtt);
int narrows_controller_acks_end(narrows_controller *controller, uint64_t now, uint64_t bytes_in_flight,
                                int is_application_limited);
/* A packet was lost. Then, once for all that were found together, narrows_controller_losses_end: with the send time of the
 * newest, their bytes, and whether congestion is persistent (RFC 9002 section 7.6). */
int narrows_controller_lost(narrows_controller *controller, uint64_t number);
int narrows_controller_losses_end(narrows_controller *controller, uint64_t now, uint64_t newest_sent, uint64_t bytes,
                                  int is_persistent);
/* An ACK frame reports new CE marks; the newest packet that it acknowledges was sent at that time. */
int narrows_controller_marked(narrows_controller *controller, uint64_t now, uint64_t newest_sent);
/* All packets of the last losses arrived after all. */
int narrows_controller_spurious(narrows_controller *controller);
/* The packet size has changed; at least 1. */
int narrows_controller_mtu(narrows_controller *controller, uint16_t mtu);
/* Bytes that may be in flight; 0 for NULL. */
uint64_t narrows_controller_window(const narrows_controller *controller);
/* Bytes per second to pace at; 0 if the controller sets no rate. */
uint64_t narrows_controller_pacing_rate(const narrows_controller *controller);

/* ---- A network in virtual time ----------------------------------------------------------------------------------- */

typedef struct narrows_network narrows_network;

typedef struct {
    uint8_t ip[16]; /* IPv4: the first four. In network order. */
    uint8_t is_ipv6;
    uint16_t port; /* In the machine's order. */
} narrows_address;

/* A network from a text: a link between the hosts "a" (10.0.0.1) and "b" (10.0.0.2), such as "20Mbit/s,25ms,loss=1%", or
 * TOML. NULL if the text is wrong; the reason is written to message. */
narrows_network *narrows_network_new(const char *text, uint64_t seed, char *message, size_t message_size);
void narrows_network_free(narrows_network *network);

/* The number of the node of this name, for the next calls; negative if there is none. */
int64_t narrows_network_node(const narrows_network *network, const char *name);

/* A host sends a datagram, or with a segment_size above 0 several. ecn is the two bits of the IP header. Payload may be NULL
 * if its size is 0. At most 65,535 bytes, with a segment size 1,048,576. */
int narrows_network_accept(narrows_network *network, uint64_t now, int64_t node, const narrows_address *source,
                           const narrows_address *destination, uint8_t ecn, const uint8_t *payload, size_t size,
                           size_t segment_size);

/* When narrows_network_poll next has something to do. */
uint64_t narrows_network_next_timeout(const narrows_network *network);

/* The next datagram that has arrived: 1 and its parts, or 0 if there is none now. Writes at most capacity bytes to payload,
 * and the datagram's size to size. */
int narrows_network_poll(narrows_network *network, uint64_t now, int64_t *node, narrows_address *source,
                         narrows_address *destination, uint8_t *ecn, uint8_t *payload, size_t capacity, size_t *size);

#ifdef __cplusplus
}
#endif
#endif
