"""The congestion controller of rrtp, written from its page ``docs/rrtp-congestion-control.md`` alone.

Comments name the page's sections. Rates are in packets per second, times in seconds.
``compare_rrtp_from_the_page.py`` compares it with the project's own.
"""

from math import inf, isfinite, log, sqrt
from types import SimpleNamespace

MIN_WINDOW, TRAIN = 3, 4
STARTUP_QUEUE, DELAY_SAMPLES, PLATEAU_ROUNDS = 1 / 8, 8, 3
BASE_SECONDS, BASE_ROUNDS = 30, 120
SMOOTH, TARGET, SCATTER, SIGNIFICANT = 1 / 8, 0.004, 0.1, 2.5
MEMORY, ENOUGH = 1000, 24
UNTESTED_LOSS, MAX_LOSS = 0.1, 0.4
LONG_QUEUE, EMPTY_QUEUE = 0.4, 0.2
CYCLE, UP, DOWN = 8, 1.25, 0.75
FOLLOWS = 0.5
THRESHOLD, MAX_TERM, EMPTY_TERM = 2.5, 1.5, 0.25
MIN_CHANGE = 0.1
BETA, CUBIC_C = 0.7, 0.4


def clamp(x, least, most):
    return max(least, min(x, most))


class Average:
    """A moving average (2.1)."""

    def __init__(self):
        self.value, self.n = 0.0, 0

    def add(self, x):
        if isfinite(x):
            self.n += 1
            self.value += max(SMOOTH, 1 / (self.n + 1)) * (x - self.value)


def new_period():
    return SimpleNamespace(rtt=inf, queue=0.0, rate=0.0)


class Account:
    """Counts of packets and of losses (2.5)."""

    def __init__(self):
        self.packets, self.lost = 0.0, 0.0

    def add(self, packets, lost):
        self.packets += packets
        self.lost += lost
        if max(self.packets, self.lost) > MEMORY:
            self.packets /= 2
            self.lost /= 2

    @property
    def share(self):
        return self.lost / max(1, self.packets)


class Round:
    """The current round (2.2)."""

    def __init__(self, begin):
        self.begin = begin
        self.acks = self.delivered = self.lost = self.samples = self.app_limited = 0
        self.sample = self.queue_sum = self.queue_squares = self.step_sum = self.step_squares = 0.0
        self.queue_min = inf


class Estimates:
    """Section 2."""

    def __init__(self):
        self.now = self.rtt = self.queue = 0.0
        self.hinted_base, self.hinted_loss = None, 0.0
        self.current, self.previous, self.period_begin = new_period(), new_period(), 0.0
        self.round, self.acked_gain = Round(0.0), 1.0
        self.probe_begin = self.probe_end = 0.0
        self.jitter_ratio, self.deviation, self.wander = Average(), Average(), Average()
        self.learned = 0.0
        self.last = SimpleNamespace(packets=1, mean_rate=0.0, queue_min=0.0)
        self.short, self.long, self.reduced = Account(), Account(), Account()
        self.runs, self.previous_lost = Account(), False
        self.rates = [0.0] * (CYCLE + 2)
        self.recent = [0.0] * (3 * CYCLE)
        self.mean_queues = [0.0] * (CYCLE + 2)

    # 2.1
    @property
    def base(self):
        if self.hinted_base is not None:
            return self.hinted_base
        least = min(self.current.rtt, self.previous.rtt)
        return least if isfinite(least) else 0.0

    @property
    def max_queue(self):
        return max(self.current.queue, self.previous.queue)

    def hint_base(self, rtt):
        self.current, self.previous = new_period(), new_period()
        self.hinted_base = self.rtt = rtt

    def delays(self, now, rtt):
        if self.hinted_base is not None:
            self.current, self.previous, self.hinted_base = new_period(), new_period(), None
        self.now, self.rtt = now, rtt
        if now - self.period_begin > max(BASE_SECONDS, BASE_ROUNDS * rtt):
            self.previous, self.current, self.period_begin = self.current, new_period(), now
        period = self.current
        queue = rtt - min(rtt, period.rtt, self.previous.rtt)
        period.rtt = min(period.rtt, rtt)
        period.queue = max(period.queue, queue)
        self.step, self.queue = queue - self.queue, queue

    def lengthen(self, queue_min):
        period = new_period()
        period.rtt, period.rate = self.base + queue_min, max(self.current.rate, self.previous.rate)
        self.current, self.previous = period, new_period()

    # 2.2
    def add_to_round(self, delivered, sample, app_limited):
        r = self.round
        r.acks += 1
        r.delivered += delivered
        if sample is not None:
            r.samples += 1
            r.app_limited += app_limited
            r.sample = max(r.sample, sample)
        r.queue_min = min(r.queue_min, self.queue)
        r.queue_sum += self.queue
        r.queue_squares += self.queue**2
        r.step_sum += self.step
        r.step_squares += self.step**2

    # 2.3
    def end_round(self, gain_now):
        r, now, rtt = self.round, self.now, self.rtt
        length = now - r.begin
        if gain_now > 1:
            if now - rtt > self.probe_end:
                self.probe_begin = r.begin
            self.probe_end = now + rtt
        v = SimpleNamespace(gain=self.acked_gain, bandwidth=self.bandwidth)
        self.acked_gain = gain_now
        self.round = Round(now)
        if r.acks == 0 or length <= 0:
            return None
        v.delivered, v.lost = r.delivered, r.lost
        v.mean_rate = r.delivered / length
        v.packets = max(1, r.delivered + r.lost)
        v.rate = max(r.sample, v.mean_rate) / (1 - self.link)
        v.app_limited = 0 < r.samples == r.app_limited
        v.queue_min, v.queue_mean = r.queue_min, r.queue_sum / r.acks
        v.queue_deviation = sqrt(max(0.0, r.queue_squares / r.acks - v.queue_mean**2))
        v.scatter = sqrt(max(0.0, r.step_squares / r.acks - (r.step_sum / r.acks) ** 2))
        self.recent = [*self.recent[1:], v.mean_rate]
        self.mean_queues = [*self.mean_queues[1:], v.queue_mean]
        self.update_noise(v)
        self.current.rate = max(self.current.rate, v.rate)
        v.unexplained = self.exceeds(self.long.packets, self.long.lost)
        if v.unexplained:
            self.long = Account()
        v.dropped = self.exceeds(v.packets, v.lost)
        v.queued = v.queue_min > self.noise
        v.saturated = v.queued or v.dropped
        v.empty = v.queue_mean <= EMPTY_QUEUE * max(self.max_queue, self.noise)
        v.follows = v.gain > 1 and v.rate > v.bandwidth * (1 + FOLLOWS * (v.gain - 1))
        return v

    # 2.4
    @property
    def jitters(self):
        return self.jitter_ratio.value > 1

    def update_noise(self, v):
        last, self.last = self.last, v
        n = max(1, 2 * v.queue_mean * v.mean_rate)
        expected = max(SCATTER * v.queue_mean / sqrt(n), 1 / v.mean_rate if v.mean_rate else inf)
        self.jitter_ratio.add(min(2, v.scatter / expected))
        c = log(v.packets / last.packets)
        d = v.queue_min - last.queue_min
        if abs(c) < MIN_CHANGE or c * d < 0:
            self.deviation.add(v.queue_deviation)
            self.wander.add(abs(d))
        if v.queue_mean < self.learned:
            self.learned += SMOOTH * (v.queue_mean - self.learned)

    @property
    def noise(self):
        max_rate = max(self.current.rate, self.previous.rate)
        noise = max(TARGET, 2 / max_rate if max_rate > 0 else 0.0)
        deviation = self.deviation.value
        if not self.jitters:
            return noise + deviation
        most = max(self.base, min(self.mean_queues))
        return noise + min(most, self.learned + 2 * (deviation + self.wander.value))

    # 2.5
    @property
    def long_queue(self):
        return not self.jitters and self.queue > LONG_QUEUE * self.max_queue

    def outcome(self, sent, lost):
        self.round.lost += lost
        if sent < self.probe_begin or sent > self.probe_end:
            if self.long_queue:
                self.long.add(1, lost)
            else:
                if lost:
                    self.runs.add(not self.previous_lost, 1)
                self.short.add(1, lost)
                if self.acked_gain < 1:
                    self.reduced.add(1, lost)
        self.previous_lost = lost

    @property
    def burst(self):
        return max(1, (self.runs.lost + 1) / (self.runs.packets + 1))

    @property
    def link(self):
        s, limit = self.short.share, UNTESTED_LOSS
        if self.reduced.packets >= ENOUGH:
            limit = self.reduced.share + sqrt(self.burst * s * (1 - s) / self.reduced.packets)
        return min(MAX_LOSS, max(self.hinted_loss, min(s, limit)))

    def exceeds(self, packets, lost):
        expected = packets * self.link
        return lost - expected > SIGNIFICANT * sqrt(self.burst * (expected + 1))

    # 2.6
    @property
    def recalled(self):
        return max(self.recent)

    @property
    def bandwidth(self):
        return max(self.rates)

    def set_bandwidth(self, rate):
        self.rates = [rate] * (CYCLE + 2)

    def update_bandwidth(self, v, is_startup):
        queued, dropped = v.queued and not is_startup, v.dropped and not is_startup
        if v.app_limited and not (queued or dropped) and v.rate <= self.bandwidth:
            return
        if queued:
            self.set_bandwidth(v.rate)
        elif dropped:
            self.set_bandwidth(clamp(v.rate, DOWN * self.bandwidth, self.bandwidth))
        elif v.unexplained and not is_startup:
            self.set_bandwidth(DOWN * self.bandwidth)
        else:
            self.rates = [*self.rates[1:], v.rate]

    @property
    def target(self):
        return self.bandwidth * (self.base + self.noise)


def ratio(new, old):
    """Return the logarithm of a ratio, or infinity."""
    return log(new / old) if new > 0 and old > 0 else inf


class Startup:
    """Section 3.1. Methods return the policy that replaces this one, or none."""

    gain = 2

    def __init__(self, e, window, first_flight=True):
        self.e, self.window, self.first_flight = e, max(1, window), first_flight
        self.initial = self.window
        self.train = self.best = 0.0
        self.stale = self.count = 0
        self.train_begin = None

    def dispersion(self, rate, rtt):
        self.train = rate
        self.window = max(self.window, min(rate * rtt, self.initial))

    def on_ack(self, ack):
        if ack.round_start:
            self.train_begin = ack.now if self.first_flight else None
            self.count = 0
        elif self.train_begin is not None:
            self.count += ack.newly_delivered
            if self.count >= TRAIN and ack.now > self.train_begin:
                self.train = self.count / (ack.now - self.train_begin)
        if ack.window_limited:
            is_short = self.train * self.e.base > TRAIN * self.window
            self.window += (TRAIN - 1 if is_short else 1) * ack.newly_delivered

    @property
    def queue_limit(self):
        return max(self.e.noise, STARTUP_QUEUE * self.e.base)

    def on_round(self, v, ack):
        self.first_flight = self.first_flight and v.delivered < TRAIN
        self.train = 0.0 if v.saturated else self.train
        grew = v.rate > UP * self.best
        self.stale = 0 if grew else self.stale + ack.window_limited
        self.best = max(self.best, v.rate)
        if not grew and (v.queue_min > self.queue_limit or v.dropped):
            return AfterStartup(self.e, v.rate)
        return AfterStartup(self.e, self.best) if self.stale >= PLATEAU_ROUNDS else None

    def check(self):
        r = self.e.round
        if self.best == 0 or self.e.jitters:
            return None
        if r.acks < DELAY_SAMPLES or r.queue_min <= self.queue_limit:
            return None
        return AfterStartup(self.e, max(r.sample / (1 - self.e.link), self.best))

    def limits(self):
        base = self.e.base
        if self.first_flight or base == 0:
            return self.window, None
        return self.window, clamp(self.train, 2 * self.window / base, TRAIN * self.window / base)


class Alone:
    """Section 3.2."""

    def __init__(self, e, bandwidth=None):
        self.e, self.phase, self.cycle, self.gain = e, 2, CYCLE, DOWN
        if bandwidth is not None:
            e.set_bandwidth(bandwidth)

    def on_ack(self, ack):
        pass

    def on_round(self, v, ack):
        self.phase += 1
        if v.gain > 1 and v.dropped and not v.queued:
            self.cycle = min(2 * self.cycle, CYCLE**2)
        elif v.follows:
            self.cycle = CYCLE
        recalls = v.empty and self.e.recalled > UP * self.e.bandwidth
        if not v.saturated and (v.follows or recalls or self.phase >= self.cycle):
            self.phase, self.gain = 0, UP
        elif self.gain > 1 or (v.saturated and v.gain <= 1 and self.gain >= 1):
            self.gain = DOWN
        else:
            self.gain = 1

    def limits(self):
        e = self.e
        window = max(MIN_WINDOW, max(self.gain, 1) * e.target + 1)
        least = MIN_WINDOW / e.rtt if e.rtt > 0 else 0.0
        least = max(e.bandwidth, least)
        rate = self.gain * least
        return window, max(rate, min(e.recalled, 2 * least)) if self.gain > 1 else rate


class AfterStartup(Alone):
    """Section 3.2, begun by the startup, which a view may resume (3.1)."""

    def resumption(self, v):
        if v.gain > UP and v.follows and not v.dropped:
            return Startup(self.e, max(MIN_WINDOW, v.rate * self.e.base), first_flight=False)
        return None


class Competitive:
    """Section 3.3."""

    def __init__(self, e, bandwidth_before, outstanding):
        self.e = e
        self.w = max(bandwidth_before * e.rtt, outstanding, MIN_WINDOW)
        self.back_off_w = self.clock = self.last_back_off = 0.0
        self.rounds = 0

    @property
    def gain(self):
        return DOWN if self.rounds % (CYCLE + 2) >= CYCLE else 1

    def on_ack(self, ack):
        if not ack.window_limited:
            return
        w, top = self.w, self.back_off_w
        step = 3 * (1 - BETA) / (1 + BETA) if w < top else 1
        if top > 0:
            t = self.clock + self.e.rtt - (top * (1 - BETA) / CUBIC_C) ** (1 / 3)
            step = max(step, min(top + CUBIC_C * t**3 - w, w / 2))
        self.w += step * ack.newly_delivered / w

    def on_round(self, v, ack):
        self.clock += self.e.rtt
        self.rounds += 1

    def on_lost(self, outcome):
        if outcome.sent <= self.last_back_off:
            return
        self.back_off_w, self.w = self.w, max(2, BETA * self.w)
        self.clock, self.last_back_off = 0.0, outcome.now

    def limits(self):
        window = max(2, self.gain * self.w)
        return window, UP * window / self.e.rtt


class FromThePage:
    """Congestion control of rrtp, from its page."""

    cwnd = 10.0
    pacing_rate = None

    def on_start(self, start):
        self.bits = 8 * start.packet_bytes
        self.restart_limit = inf
        self.e = Estimates()
        self.initial_window = max(1, start.initial_window)
        startup = Startup(self.e, self.initial_window)
        if start.expects_dispersion:
            startup.window = min(startup.window, TRAIN)
        self.begin(startup)
        self.hint(start.rate_hint, start.rtt_hint, start.loss_hint)

    def begin(self, policy):
        """Begin a policy, with new evidence."""
        self.policy, self.sum, self.last_view, self.run = policy, 0.0, None, []
        self.set_limits()

    def set_limits(self):
        window, rate = self.policy.limits()
        self.cwnd = max(1, min(window, self.restart_limit))
        self.pacing_rate = None if rate is None else clamp(rate * self.bits, 1, 1e15)

    def hint(self, rate, rtt, loss):
        if loss is not None:
            self.e.hinted_loss = clamp(loss, 0, 1)
        if rtt is not None:
            self.e.hint_base(rtt)
        if rate is not None:
            self.begin(Alone(self.e, max(rate / self.bits, 0.001)))
        self.set_limits()

    def on_hints(self, hints):
        self.hint(hints.rate, hints.rtt, hints.loss)

    def on_dispersion(self, dispersion):
        if isinstance(self.policy, Startup):
            self.policy.dispersion(dispersion.rate / self.bits, dispersion.rtt)
            self.set_limits()

    def on_outcome(self, outcome):
        self.e.outcome(outcome.sent, outcome.lost)
        if outcome.lost and isinstance(self.policy, Competitive):
            self.policy.on_lost(outcome)
            self.set_limits()

    def on_ack(self, ack):
        e = self.e
        self.restart_limit += ack.newly_delivered
        gain_now = self.policy.gain
        e.delays(ack.now, ack.rtt)
        v = e.end_round(gain_now) if ack.round_start else None
        e.add_to_round(ack.newly_delivered, ack.delivery_rate, ack.app_limited)
        self.policy.on_ack(ack)
        is_startup = isinstance(self.policy, Startup)
        if v is not None:
            e.update_bandwidth(v, is_startup)
            following = isinstance(self.policy, AfterStartup) and self.policy.resumption(v)
            if not following:
                if not is_startup:
                    self.evidence(v)
                following = self.policy.on_round(v, ack)
            if following:
                self.begin(following)
            elif not is_startup and (self.sum > THRESHOLD or self.hidden or self.longer):
                self.decide(v, ack)
        if isinstance(self.policy, Startup):
            following = self.policy.check()
            if following:
                self.begin(following)
        self.set_limits()

    # Section 4
    def evidence(self, v):
        self.run = [*self.run, v.queue_min] if v.queued else []
        last, self.last_view = self.last_view, None if v.app_limited else v
        if v.app_limited:
            return
        if v.unexplained:
            self.term(MAX_TERM, v)
        if isinstance(self.policy, Competitive) and v.empty and not v.saturated:
            self.term(-EMPTY_TERM, v)
        if v.queued and last is not None and last.queued:
            x, y = log(v.packets / last.packets), ratio(v.mean_rate, last.mean_rate)
            if abs(x) >= MIN_CHANGE and isfinite(y):
                variance = (MIN_CHANGE / 2) ** 2 + 1 / max(1, min(v.delivered, last.delivered)) ** 2
                self.term((y**2 - (y - FOLLOWS * x) ** 2) / (2 * variance), v)

    def term(self, x, v):
        if self.sum == 0:
            self.bandwidth_before = v.bandwidth
        sign = 1 if isinstance(self.policy, Alone) else -1
        self.sum = max(0.0, self.sum + sign * clamp(x, -MAX_TERM, MAX_TERM))

    @property
    def hidden(self):
        return isinstance(self.policy, Competitive) and self.e.jitters

    @property
    def longer(self):
        """Whether the path has become longer."""
        if isinstance(self.policy, Competitive) or not self.run or self.e.jitters:
            return False
        stays = max(self.run) < (1 + MIN_CHANGE) * min(self.run)
        return stays and (self.sum > THRESHOLD or len(self.run) >= CYCLE)

    def decide(self, v, ack):
        if isinstance(self.policy, Competitive):
            self.begin(Alone(self.e))
        elif self.longer:
            self.e.lengthen(v.queue_min)
            self.begin(Alone(self.e, self.e.recalled))
        elif self.e.jitters:
            self.e.learned = v.queue_mean
            self.sum, self.last_view, self.run = 0.0, None, []
        else:
            self.begin(Competitive(self.e, self.bandwidth_before, ack.outstanding))

    def on_rto(self, timeout):
        self.restart_limit = self.initial_window
        if isinstance(self.policy, Startup):
            self.e = Estimates()
            self.begin(Startup(self.e, self.initial_window))
        self.set_limits()
