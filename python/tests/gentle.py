"""The controller of docs/adding-a-controller.md, in Python."""


class Gentle:
    """Reduces the window by a seventh when the round-trip time has grown."""

    variables = {"limit": "round-trip time over its minimum at which the window shrinks"}

    def __init__(self, limit: float = 1.25):
        self.limit = limit

    def on_start(self, start):
        self.cwnd, self.ssthresh = start.initial_window, start.initial_ssthresh

    def on_ack(self, ack):
        # No growth during recovery, nor while the sender lacks data.
        if ack.in_recovery or not ack.window_limited:
            return
        if ack.rtt / max(ack.min_rtt, 1e-9) > self.limit and ack.round_start:
            self.cwnd = self.ssthresh = max(self.cwnd * 6 / 7, 2)
        elif self.cwnd < self.ssthresh:
            self.cwnd += ack.newly_acked
        else:
            self.cwnd += ack.newly_acked / self.cwnd

    def on_loss(self, loss):
        self.cwnd = self.ssthresh = max(loss.flight / 2, 2)

    def on_rto(self, timeout):
        self.ssthresh = max(timeout.flight / 2, 2)
        self.cwnd = 1
