/* A megabyte from a to b over a link with loss, with a controller of Narrows: the smallest of transports.
 *
 * Each datagram has a number and is acknowledged at once. A datagram is lost when one three numbers above was acknowledged,
 * or when nothing was for a second.
 *
 *   cargo build --release -p narrows-c
 *   cc -Iapps/c/include apps/c/examples/transfer.c target/release/libnarrows_c.a -lpthread -ldl -lm -o transfer
 *   ./transfer 20Mbit/s,25ms,loss=1% rrtp
 */
#include "narrows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MTU = 1200, TOTAL = 1000000 / MTU + 1, MOST = 1 << 16 };

static const uint64_t SECOND = 1000000000;

struct packet {
    uint64_t sent;
    int state; /* 0 in flight, 1 acknowledged, 2 lost */
};

static struct packet packets[MOST];

static uint64_t number_of(const uint8_t *payload) {
    uint32_t number;
    memcpy(&number, payload, sizeof number);
    return number;
}

int main(int argc, char **argv) {
    const char *link = argc > 1 ? argv[1] : "20Mbit/s,25ms,loss=1%";
    const char *name = argc > 2 ? argv[2] : "rrtp";
    char message[256] = "";
    narrows_network *network = narrows_network_new(link, 1, message, sizeof message);
    narrows_controller *controller =
        network ? narrows_controller_new(name, MTU, 1, 0, message, sizeof message) : NULL;
    if (!controller) {
        fprintf(stderr, "transfer: %s\n", message);
        narrows_network_free(network);
        return 2;
    }
    int64_t a = narrows_network_node(network, "a");
    int64_t b = narrows_network_node(network, "b");
    narrows_address here = {{10, 0, 0, 1}, 0, 1000};
    narrows_address there = {{10, 0, 0, 2}, 0, 2000};
    uint64_t now = 0, sent = 0, acked = 0, in_flight = 0, lost = 0, unknown = 0;
    uint64_t smoothed = 0, next_send = 0, last_ack = 0;
    while (acked < TOTAL && sent < MOST) {
        while (in_flight + MTU <= narrows_controller_window(controller) && now >= next_send &&
               acked + in_flight / MTU < TOTAL && sent < MOST) {
            uint8_t payload[MTU] = {0};
            uint32_t number = (uint32_t)sent;
            memcpy(payload, &number, sizeof number);
            narrows_network_accept(network, now, a, &here, &there, 2, payload, sizeof payload, 0);
            narrows_controller_sent(controller, now, sent, MTU);
            packets[sent].sent = now;
            sent++;
            in_flight += MTU;
            uint64_t rate = narrows_controller_pacing_rate(controller);
            next_send = rate ? now + MTU * SECOND / rate : 0;
        }
        int64_t node;
        narrows_address from, to;
        uint8_t ecn, payload[2048];
        size_t size;
        int found =
            narrows_network_poll(network, now, &node, &from, &to, &ecn, payload, sizeof payload, &size);
        if (found < 0) {
            return 1;
        }
        if (found && node == b) {
            narrows_network_accept(network, now, b, &to, &from, 0, payload, 4, 0);
        } else if (found) {
            uint64_t number = number_of(payload);
            if (packets[number].state == 0) {
                uint64_t rtt = now - packets[number].sent;
                smoothed = smoothed ? (7 * smoothed + rtt) / 8 : rtt;
                in_flight -= MTU;
                packets[number].state = 1;
                acked++;
                last_ack = now;
                narrows_controller_acked(controller, now, number, packets[number].sent, MTU, smoothed);
                narrows_controller_acks_end(controller, now, in_flight, 0);
            }
            uint64_t bytes = 0, newest = 0;
            for (; unknown + 3 <= number; unknown++) {
                if (packets[unknown].state == 0) {
                    packets[unknown].state = 2;
                    narrows_controller_lost(controller, unknown);
                    newest = packets[unknown].sent;
                    bytes += MTU;
                    in_flight -= MTU;
                    lost++;
                }
            }
            if (bytes) {
                narrows_controller_losses_end(controller, now, newest, bytes, 0);
            }
        } else {
            uint64_t next = narrows_network_next_timeout(network);
            if (next_send > now && next_send < next) {
                next = next_send;
            }
            if (next == NARROWS_NEVER || next > last_ack + SECOND) {
                next = last_ack = last_ack + SECOND;
                in_flight = 0; /* Nothing came back for a second: send on. */
            }
            now = next > now ? next : now + 1;
        }
    }
    printf("%s over %s: %d bytes in %.3f s, %llu of %llu packets lost\n", name, link, TOTAL * MTU, (double)now / 1e9,
           (unsigned long long)lost, (unsigned long long)sent);
    narrows_controller_free(controller);
    narrows_network_free(network);
    return acked >= TOTAL ? 0 : 1;
}
