// Changing the link: sliders that order on release, and buttons that break it.

class LinkControls {
  constructor(post, token) {
    this.post = post;
    this.direction = 0;
    this.state = null;
    this.began = null;
    this.held = null;
    for (const name of ["rate", "delay", "loss"]) {
      const slider = byId(name);
      slider.addEventListener("input", () => { this.held = name; byId(name + "-out").textContent = this.text(name, +slider.value); });
      slider.addEventListener("change", () => { this.held = null; this.order(name, this.text(name, +slider.value)); });
    }
    for (const button of document.querySelectorAll("[data-break]")) {
      button.addEventListener("click", () => this.breakIt(button.dataset.break));
    }
    byId("mend").addEventListener("click", async () => {
      const began = this.began?.[this.direction];
      if (!began) return;
      const now = this.state.directions[this.direction];
      if (began.rate !== null && began.rate !== now.rate) await this.order("rate", began.rate / 1e3 + "kbit/s");
      if (began.delay !== now.delay) await this.order("delay", began.delay * 1e3 + "ms");
      if (began.loss !== now.loss) await this.order("loss", began.loss);
    });
    byId("save").addEventListener("click", () => {
      const link = document.createElement("a");
      link.href = `/scenario.toml?token=${token}`;
      link.download = "narrows-live.toml";
      link.click();
    });
  }

  // Rates and losses by their logarithm, delays by their square: fine where they are small.
  static RATES = [1e4, 1e9];
  static MAX_DELAY = 2;
  static LOSSES = [1e-4, 0.5];
  text(name, at) {
    const part = at / 1000;
    if (name === "delay") return `${+(LinkControls.MAX_DELAY * part * part * 1000).toPrecision(3)}ms`;
    if (name === "loss") {
      const [low, high] = LinkControls.LOSSES;
      return at === 0 ? "0%" : `${+(100 * low * (high / low) ** part).toPrecision(2)}%`;
    }
    const [low, high] = LinkControls.RATES, rate = low * (high / low) ** part;
    return rate >= 1e6 ? `${+(rate / 1e6).toPrecision(3)}Mbit/s` : `${+(rate / 1e3).toPrecision(3)}kbit/s`;
  }
  place(name, value) {
    const between = (low, high) => 1000 * Math.log(Math.max(value, low) / low) / Math.log(high / low);
    if (name === "delay") return 1000 * Math.sqrt(value / LinkControls.MAX_DELAY);
    if (name === "loss") return value > 0 ? between(...LinkControls.LOSSES) : 0;
    return between(...LinkControls.RATES);
  }

  take(state) {
    this.state = state;
    this.began ??= state.directions;
    byId("link").hidden = false;
    byId("save").disabled = state.changes === 0;
    byId("save").textContent = state.changes ? `Save as scenario (${state.changes} changes)` : "Save as scenario";
    const group = byId("directions");
    if (!group.children.length) {
      ["there", "back"].forEach((name, n) => {
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = n === 0 ? "→ there" : "← back";
        button.addEventListener("click", () => { this.direction = n; this.take(this.state); });
        group.append(button);
      });
    }
    [...group.children].forEach((b, n) => b.setAttribute("aria-pressed", n === this.direction));
    const now = state.directions[this.direction];
    byId("rate").disabled = now.rate === null;
    document.querySelector("[data-break=rate]").disabled = now.rate === null;
    // Losses of one rate are written by it; others stand as they are.
    const plain = now.loss.match(/^(?:uniform\()?([\d.]+)(%?)\)?$/);
    const loss = plain ? plain[1] / (plain[2] ? 100 : 1) : 0;
    const show = { rate: now.rate ?? 0, delay: now.delay, loss };
    const texts = {
      rate: now.rate === null ? "by its trace" : now.rate >= 1e6 ? `${+(now.rate / 1e6).toPrecision(4)} Mbit/s` : `${+(now.rate / 1e3).toPrecision(4)} kbit/s`,
      delay: `${+(now.delay * 1e3).toPrecision(4)} ms`,
      loss: now.loss === "none" || now.loss === "" ? "0%" : plain ? plain[1] + plain[2] : now.loss,
    };
    for (const name of ["rate", "delay", "loss"]) {
      if (this.held === name) continue;
      byId(name).value = Math.round(this.place(name, show[name]));
      byId(name).setAttribute("aria-valuetext", texts[name]);
      byId(name + "-out").textContent = texts[name];
    }
  }

  breakIt(what) {
    const now = this.state?.directions[this.direction];
    if (!now) return;
    const orders = {
      rate: ["rate", `${Math.max(1, (now.rate ?? 0) / 1e4)}kbit/s`],
      delay: ["delay", `${+(now.delay * 1e3 + 200).toPrecision(6)}ms`],
      loss: ["loss", "10%"],
      outage: ["outage", "2s"],
    };
    return this.order(...orders[what]);
  }

  async order(set, value) {
    const said = byId("said");
    try {
      const [good, text] = await this.post({ direction: this.direction, set, value });
      said.className = good ? "quiet" : "quiet wrong";
      said.textContent = good ? `Done: ${text}.` : text;
    } catch {
      said.className = "quiet wrong";
      said.textContent = "The command does not answer.";
    }
    if (this.state) this.take(this.state);
  }
}
