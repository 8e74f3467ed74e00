// The question's controls: each change makes an option, and an option moves the controls.

// A slider from `low` to `high` in equal ratios; `words` shows its value, `key` and `text` are the link's.
const SLIDERS = [
  { id: "rate", label: "Rate", low: 64e3, high: 1e9, of: (link) => link.rate_bps,
    words: (x) => rateText(x), text: (x) => rateText(x), key: "rate" },
  { id: "delay", label: "Delay, one way", low: 1e-4, high: 0.6, of: (link) => link.delay_s,
    words: (x) => timeText(x), text: (x) => timeText(x), key: "delay" },
  { id: "queue", label: "Queue", low: 1, high: 10000, of: (link) => link.queue_packets,
    words: (x, link) => `${Math.round(x)} packets${link ? `, ${+(x / link.bdp_packets).toPrecision(2)} BDP` : ""}`,
    text: (x) => `${Math.max(1, Math.round(x))}p`, key: "queue" },
  { id: "loss", label: "Loss on the link", low: 1e-5, high: 0.2, zero: true, of: (link) => link.loss,
    words: (x) => `${+(100 * x).toPrecision(2)} %`, text: (x) => `${+(100 * x).toPrecision(2)}%`, key: "loss" },
];
const STEPS = 300;
const rateText = (bps) => {
  const [unit, size] = bps >= 1e9 ? ["Gbit/s", 1e9] : bps >= 1e6 ? ["Mbit/s", 1e6] : ["kbit/s", 1e3];
  return `${+(bps / size).toPrecision(3)}${unit}`;
};
const timeText = (s) => (s >= 1 ? `${+s.toPrecision(3)}s` : s >= 1e-3 ? `${+(s * 1e3).toPrecision(3)}ms` : `${+(s * 1e6).toPrecision(3)}us`);
const QUICK = ["cubic", "reno", "bbr", "bbr3", "vegas", "copa", "westwood+", "ledbat", "rrtp", "rrtp+bbr", "stpd", "tfrc"];

class Controls {
  constructor(lists, question, changed, vary) {
    this.lists = lists;
    this.question = question;
    this.changed = changed;
    this.vary = vary;
    this.link = null;
    this.pending = null;
    this.fill();
    this.listen();
  }

  fill() {
    const option = (value, text) => Object.assign(document.createElement("option"), { value, textContent: text });
    byId("q-named").append(option("", "a link of your own"),
      ...this.lists.links.map((l) => option(l.name, `${l.name}: ${l.says}`)));
    const aims = { bulk: "large transfers", calls: "calls", live: "live video", web: "short transfers (web)" };
    byId("q-aim").append(...this.lists.aims.map((a) => option(a.name, aims[a.name] ?? a.name)));
    byId("q-names").append(...this.lists.protocols.map((p) => option(p.name, p.says)));
    byId("q-against").append(option("", "none"), ...["cubic:1", "cubic:4", "reno:1", "bbr:1", "bbr3:1", "rrtp:1", "ledbat:1"]
      .map((value) => option(value, value.replace(":", " × "))));
    for (const slider of SLIDERS) {
      const box = document.createElement("div"), label = document.createElement("label");
      const output = document.createElement("output"), input = document.createElement("input");
      box.className = "slider";
      label.htmlFor = input.id = `q-${slider.id}`;
      label.textContent = slider.label;
      output.htmlFor = input.id;
      Object.assign(input, { type: "range", min: 0, max: STEPS, step: 1 });
      box.append(label, output, input);
      byId("q-sliders").append(box);
      Object.assign(slider, { input, output });
      input.addEventListener("input", () => this.slid(slider));
    }
  }

  listen() {
    const text = (id, name, of = (value) => value.trim()) => byId(id).addEventListener("change", () => {
      this.question.set(name, of(byId(id).value));
      this.changed();
    });
    byId("q-link").addEventListener("input", () => {
      clearTimeout(this.typing);
      this.typing = setTimeout(() => { this.question.set("link", byId("q-link").value.trim()); this.changed(); }, 250);
    });
    byId("q-named").addEventListener("change", () => {
      if (!byId("q-named").value) return;
      this.question.set("link", byId("q-named").value);
      this.changed();
    });
    byId("q-aim").addEventListener("change", () => {
      this.question.set("for", byId("q-aim").value === "bulk" ? "" : byId("q-aim").value);
      // The aim's own protocols, unless a choice was made.
      if (!this.chosen) this.question.set("protocols", "");
      this.changed();
    });
    byId("q-protocols").addEventListener("input", () => { this.chosen = true; });
    text("q-protocols", "protocols");
    text("q-against", "against");
    text("q-flows", "flows", (value) => (value === "1" ? "" : value));
    text("q-duration", "duration");
    text("q-seed", "seed", (value) => (value === "1" ? "" : value));
    byId("question").addEventListener("submit", (event) => event.preventDefault());
  }

  valueOf({ input, low, high, zero }) {
    const step = Number(input.value);
    return zero && step === 0 ? 0 : low * (high / low) ** (step / STEPS);
  }

  // The newest value wins; the module writes the link's text.
  async slid(slider) {
    const value = this.valueOf(slider);
    slider.output.textContent = slider.words(value, this.link);
    this.pending = slider;
    if (this.varying) return;
    this.varying = true;
    while (this.pending) {
      const next = this.pending;
      this.pending = null;
      const text = await this.vary(this.question.get("link") || this.lists.link, next.key, next.text(this.valueOf(next)));
      if (text) {
        this.question.set("link", text);
        this.changed();
      }
    }
    this.varying = false;
  }

  // Shows the question; the control in use keeps what the reader types.
  show() {
    const put = (id, value) => {
      const element = byId(id);
      if (document.activeElement !== element) element.value = value;
    };
    const link = this.question.get("link") || this.lists.link;
    put("q-link", link);
    put("q-named", this.lists.links.some((l) => l.name === link) ? link : "");
    put("q-aim", this.question.get("for") || "bulk");
    put("q-flows", this.question.get("flows") || 1);
    put("q-duration", this.question.get("duration"));
    put("q-seed", this.question.get("seed") || 1);
    const against = this.question.get("against"), select = byId("q-against");
    if (![...select.options].some((o) => o.value === against)) select.append(new Option(against, against));
    put("q-against", against);
  }

  // What the module found: numbers for the sliders, and the protocols.
  described({ link, protocols, seconds }) {
    this.link = link;
    for (const slider of SLIDERS) {
      const value = slider.of(link), known = value !== null && value !== undefined;
      slider.input.disabled = !known;
      if (document.activeElement !== slider.input || !this.varying) {
        const step = known && value > 0 ? STEPS * Math.log(value / slider.low) / Math.log(slider.high / slider.low) : 0;
        slider.input.value = Math.round(Math.min(STEPS, Math.max(slider.zero && value === 0 ? 0 : 1, step)));
      }
      slider.output.textContent = known ? slider.words(value, link) : "as the text says";
      slider.input.setAttribute("aria-valuetext", slider.output.textContent);
    }
    if (document.activeElement !== byId("q-protocols")) byId("q-protocols").value = this.question.get("protocols") || protocols.join(",");
    byId("q-duration").placeholder = `${Number(seconds.toFixed(3))}s`;
    this.chips(protocols);
  }

  chips(protocols) {
    const names = [...new Set([...QUICK, ...(this.own ? [this.own, `rrtp+${this.own}`] : [])])];
    const focused = document.activeElement?.dataset?.chip;
    byId("q-chips").replaceChildren(...names.map((name) => {
      const button = Object.assign(document.createElement("button"), { type: "button", textContent: name });
      const has = protocols.includes(name);
      button.dataset.chip = name;
      button.title = this.lists.protocols.find((p) => p.name === name)?.says ?? "";
      button.setAttribute("aria-pressed", has);
      button.addEventListener("click", () => {
        this.chosen = true;
        const next = has ? protocols.filter((p) => p !== name) : [...protocols, name];
        if (!next.length) return;
        byId("q-protocols").value = next.join(",");
        this.question.set("protocols", next.join(","));
        this.changed();
      });
      return button;
    }));
    if (focused) byId("q-chips").querySelector(`[data-chip="${CSS.escape(focused)}"]`)?.focus();
  }
}

// A trace that is dropped or chosen replaces the rate of the link.
const MAX_TRACE = 20e6;
function listenForTraces(use) {
  const take = async (file) => {
    if (!file) return;
    if (file.size > MAX_TRACE) return use(null, `${file.name} is longer than ${MAX_TRACE / 1e6} MB`);
    const name = file.name.replace(/[^\w.-]/g, "_").slice(-60).replace(/^[.-]+/, "") || "trace";
    return use(name, await file.text());
  };
  byId("q-file").addEventListener("change", () => { take(byId("q-file").files[0]); byId("q-file").value = ""; });
  addEventListener("dragover", (event) => { event.preventDefault(); document.body.classList.add("dropping"); });
  addEventListener("dragleave", () => document.body.classList.remove("dropping"));
  addEventListener("drop", (event) => {
    event.preventDefault();
    document.body.classList.remove("dropping");
    take(event.dataTransfer.files[0]);
  });
}
