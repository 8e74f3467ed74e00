// Two protocols under the lens: each a frame with the live page, fed by a worker of its own.
class Lens {
  constructor(pool, question, wrong) {
    this.pool = pool;
    this.question = question;
    this.wrong = wrong;
    this.panes = [null, null];
    addEventListener("message", (event) => this.heard(event));
    for (const id of ["lens-a", "lens-b", "lens-seed"]) byId(id).addEventListener("change", () => { this.open(); this.onchange?.(); });
  }

  // The protocols that there are to choose from.
  offer(protocols) {
    const chosen = [byId("lens-a").value, byId("lens-b").value];
    this.wanted?.forEach((name, i) => { if (protocols.includes(name)) chosen[i] = name; });
    const fill = (id, names, value) => {
      byId(id).replaceChildren(...names.map((name) => new Option(name || "none", name)));
      byId(id).value = names.includes(value) ? value : names[0];
    };
    fill("lens-a", protocols, chosen[0]);
    fill("lens-b", ["", ...protocols], chosen[1]);
    if (!byId("lens").hidden) this.open();
  }

  state() {
    return byId("lens").hidden ? {} : { a: byId("lens-a").value, b: byId("lens-b").value };
  }

  // Shows what is chosen; frames that show it already stay.
  open() {
    const names = [byId("lens-a").value, byId("lens-b").value].filter((name) => name);
    const seed = Number(byId("lens-seed").value) || 1;
    const question = JSON.stringify(this.question.json());
    names.forEach((protocol, place) => {
      const shown = JSON.stringify([protocol, seed, question]);
      if (this.panes[place]?.shown === shown) return;
      this.panes[place]?.frame.remove();
      const frame = document.createElement("iframe");
      frame.title = `${protocol} over time`;
      frame.srcdoc = byId("lens-page").textContent.replaceAll("<\\/script", "</script");
      this.panes[place] = { frame, protocol, seed, question, shown };
    });
    this.panes.splice(names.length, 2).forEach((pane) => pane?.frame.remove());
    this.panes.length = names.length;
    this.panes.forEach((pane, place) => {
      if (byId("panes").children[place] !== pane.frame) byId("panes").insertBefore(pane.frame, byId("panes").children[place] ?? null);
    });
    byId("panes").classList.toggle("two", names.length === 2);
  }

  heard({ source, data: message }) {
    const place = this.panes.findIndex((pane) => pane && pane.frame.contentWindow === source);
    if (place < 0 || !message?.lens) return;
    if (message.lens === "window") {
      if (byId("lens-together").checked) this.panes.forEach((pane, other) => { if (other !== place) pane.frame.contentWindow.postMessage(message, "*"); });
      return;
    }
    this.serve(this.panes[place], place, message);
  }

  async serve(pane, place, { flows, packets, window, number }) {
    const wants = { protocol: pane.protocol, seed: pane.seed, flows, packets, window };
    try {
      const text = await this.pool.lens(place).ask("lens", `{"question":${pane.question},"wants":${JSON.stringify(wants)}}`);
      pane.frame.contentWindow?.postMessage({ lens: "frame", frame: JSON.parse(text), number }, "*");
    } catch (error) {
      this.wrong(error);
    }
  }
}
