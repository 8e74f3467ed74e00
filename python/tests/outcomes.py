"""A controller that uses what only rrtp reports, in Python and compiled by numba."""

HINT = "5s:rate=2Mbit/s,rtt=50ms"


class Outcomes:
    """Checks outcomes, hints and dispersion, and computes its limits from them."""

    def __init__(self):
        self.arrived = self.lost = self.hints = self.dispersions = self.newest = self.age = 0.0
        self.cwnd, self.pacing_rate, self.acks = 20.0, 1e6, 0.0

    def on_ack(self, ack):
        self.acks += ack.newly_delivered

    def on_outcome(self, outcome):
        if outcome.number < self.newest or outcome.radio or outcome.marked or outcome.bytes < 40:
            raise ValueError
        self.newest, self.age = outcome.number + 0.0, outcome.now - outcome.sent
        if outcome.lost:
            self.lost += 1
        else:
            self.arrived += 1
        self.cwnd = 20 + self.lost % 5 + self.age % 1

    def on_hints(self, hints):
        self.hints += 1
        # Absent values are None, or nan in compiled code.
        if hints.loss is not None and hints.loss == hints.loss:
            raise ValueError
        if hints.rate is not None and hints.rate == hints.rate:
            self.pacing_rate = hints.rate * (1 + hints.rtt)

    def on_dispersion(self, dispersion):
        self.dispersions += 1
        self.cwnd = 10 + dispersion.rate / 1e6 + dispersion.rtt
