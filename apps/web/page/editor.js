// The reader's controller: an editor with numbered lines, and the errors of its code at their line.
const EXAMPLE = `// Grows by a segment per round trip, and halves at a loss: Reno without slow start's end.
// Delete what you do not need: on_ack and send_limits suffice.
class Mine {
  constructor(environment) {          // initial_window, initial_ssthresh, packet_bytes, hints
    this.cwnd = environment.initial_window;
    this.ssthresh = Infinity;
  }

  on_ack(ack) {                       // every acknowledgement: rtt, min_rtt, newly_acked, marks, …
    if (!ack.may_grow) return;
    const slow_start = this.cwnd < this.ssthresh;
    this.cwnd += slow_start ? ack.counted : ack.counted / this.cwnd;
  }

  on_congestion_event(event) {        // losses, recovery_start, recovery_end, slow_start_restart, …
    if (event.kind === "recovery_start") {
      this.ssthresh = Math.max(this.cwnd / 2, 2);
      this.cwnd = this.ssthresh;
    } else if (event.kind === "slow_start_restart") {
      this.ssthresh = Math.max(event.flight / 2, 2);
      this.cwnd = 1;
    }
  }

  on_sent(sent) {}                    // now, bytes, outstanding, retransmission
  on_packet_outcome(outcome) {}       // over rrtp: each packet once, lost or not
  on_path_event(event) {}             // hints, dispersion, packet_bytes
  on_tick(now) {}                     // at next_tick
  next_tick() { return null; }        // a time in seconds, or null
  feedback_to_receiver() { return []; }
  requirements() { return {}; }       // { rrtp: true } if it needs packet outcomes

  send_limits() {                     // segments, and bit/s if it paces
    return { cwnd: this.cwnd, ssthresh: this.ssthresh, pacing_rate: null };
  }

  watch() {                           // numbers to draw over time
    return { w: this.cwnd };
  }
}
`;
const MAX_CODE = 50000;

// The name of the class, what it requires, and the numbers that watch returns: found in the text, which is not run for that.
function shapeOf(text) {
  const code = text.replace(/\/\*[^]*?\*\/|\/\/.*$/gm, "");
  const name = /^[^\S\n]*class\s+([A-Za-z]\w{0,31})/m.exec(code)?.[1];
  if (!name) throw Object.assign(new Error("there is no class: class NAME { on_ack(ack) {…} send_limits() {…} }"), { line: 1 });
  const body = /\bwatch\s*\(\s*\)\s*\{[^{}]*return\s*\{([^{}]*)\}/.exec(code)?.[1] ?? "";
  const names = [...body.matchAll(/(?:^|,)\s*([A-Za-z_]\w{0,31})\s*(?=[:,]|$)/g)].map((m) => m[1]);
  const needs = { rrtp: /\brrtp\s*:\s*true\b/.test(code), l4s: /\bl4s\s*:\s*true\b/.test(code) };
  return { name, needs, variables: [...new Set(names)].slice(0, 16).map((variable) => [variable, ""]) };
}

class Editor {
  constructor(run, stop) {
    this.area = byId("code");
    this.area.value = EXAMPLE;
    this.area.maxLength = MAX_CODE;
    this.area.addEventListener("input", () => { this.number(); this.fault(null); });
    this.area.addEventListener("scroll", () => { byId("lines").scrollTop = this.area.scrollTop; });
    this.area.addEventListener("keydown", (event) => this.indent(event));
    byId("own-run").addEventListener("click", () => run(this.area.value));
    byId("own-stop").addEventListener("click", stop);
    byId("own-reset").addEventListener("click", () => this.put(EXAMPLE));
    this.number();
  }

  put(code, isForeign = false) {
    this.area.value = code.slice(0, MAX_CODE);
    byId("own-foreign").hidden = !isForeign;
    this.number();
    this.fault(null);
  }

  number(wrong = 0) {
    const count = this.area.value.split("\n").length;
    const lines = Array.from({ length: count }, (_, i) => {
      const line = document.createElement("span");
      line.textContent = i + 1;
      if (i + 1 === wrong) line.className = "wrong";
      return line;
    });
    byId("lines").replaceChildren(...lines);
  }

  // An error of the code; a line of 0 is unknown.
  fault(error) {
    byId("own-error").hidden = !error;
    if (!error) return;
    const { message, line } = error, count = this.area.value.split("\n").length;
    const known = line > 0 && line <= count;
    byId("own-error").textContent = known ? `Line ${line}: ${message}` : message;
    this.number(known ? line : 0);
    if (known) this.area.scrollTop = Math.max(0, (line - 6) * parseFloat(getComputedStyle(this.area).lineHeight));
  }

  // Tab indents; Escape leaves the editor, so that the keyboard is not caught.
  indent(event) {
    if (event.key === "Escape") byId("own-run").focus();
    if (event.key !== "Tab" || event.shiftKey) return;
    event.preventDefault();
    this.area.setRangeText("  ", this.area.selectionStart, this.area.selectionEnd, "end");
    this.number();
  }
}
