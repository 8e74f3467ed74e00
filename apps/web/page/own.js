// The reader's controller inside a worker: makes objects of its class, passes events to them, and writes their limits
// into the module's table.
const METHODS = {
  ack: "on_ack", sent: "on_sent", outcome: "on_packet_outcome", tick: "on_tick",
  hints: "on_path_event", dispersion: "on_path_event", packet_bytes: "on_path_event",
  losses: "on_congestion_event", recovery_start: "on_congestion_event", recovery_end: "on_congestion_event",
  slow_start_restart: "on_congestion_event", spurious_losses: "on_congestion_event",
};
const FAILED = 1;

class OwnControllers {
  constructor(make) {
    this.make = make;
    this.objects = new Map();
    this.last = 0;
    this.error = null;
    this.kinds = [];
    this.variables = [];
  }

  // `kinds` are the module's events; a field with a question mark is a truth value.
  describe(kinds, variables) {
    this.kinds = kinds.map(({ kind, fields }) => ({
      kind, fields: fields.map((field) => ({ name: field.replace("?", ""), truth: field.endsWith("?") })),
    }));
    this.variables = variables;
  }

  call(engine, call, object) {
    try {
      const table = engine.values(), made = this.objects.get(object);
      const copying = this.kinds.length;
      if (call === copying) this.copy(table, made);
      else if (call === copying + 1) this.objects.delete(object);
      else if (call === copying + 2) this.watch(table, made);
      else this.event(table, this.kinds[call], made);
      return 0;
    } catch (error) {
      this.error ??= error;
      return FAILED;
    }
  }

  event(table, { kind, fields }, made) {
    const event = { kind };
    fields.forEach(({ name, truth }, i) => {
      const value = table[i];
      event[name] = truth ? value !== 0 : Number.isNaN(value) ? null : value;
    });
    if (kind === "new") {
      const controller = this.make(event);
      const needs = controller.requirements?.() ?? {};
      const number = this.keep(controller);
      this.limits(table, controller);
      table[4] = number;
      table[10] = needs.rrtp ? 1 : 0;
      table[11] = needs.l4s ? 1 : 0;
      return;
    }
    made[METHODS[kind]]?.(kind === "tick" ? event.now : event);
    this.limits(table, made);
  }

  keep(controller) {
    this.last += 1;
    this.objects.set(this.last, controller);
    return this.last;
  }

  copy(table, made) {
    const twin = Object.assign(Object.create(Object.getPrototypeOf(made)), structuredClone({ ...made }));
    table[4] = this.keep(twin);
  }

  watch(table, made) {
    const values = made.watch?.() ?? {};
    this.variables.forEach(([name], i) => { table[i] = Number(values[name] ?? NaN); });
  }

  limits(table, controller) {
    const { cwnd, pacing_rate: rate = null, ssthresh = null } = controller.send_limits();
    if (typeof cwnd !== "number" || !(cwnd >= 0)) throw new Error(`send_limits: cwnd is ${String(cwnd).slice(0, 40)}, which is no number of 0 or more`);
    if (rate !== null && !(rate > 0)) throw new Error(`send_limits: pacing_rate is ${String(rate).slice(0, 40)}, which is no rate above 0`);
    table[0] = cwnd;
    table[1] = rate ?? NaN;
    table[2] = ssthresh ?? NaN;
    table[3] = controller.next_tick?.() ?? NaN;
    const words = (controller.feedback_to_receiver?.() ?? []).slice(0, 4);
    table[5] = words.length;
    words.forEach((word, i) => { table[6 + i] = word; });
  }
}
