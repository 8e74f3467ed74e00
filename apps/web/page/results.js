// The answer: rounds of seeds on all workers, and the report of what is finished.
// The first look simulates so many packets: some 50 ms, most of it the browser's first compilation of the code.
const PREVIEW_PACKETS = 6000, NARROW = 0.08, MOST_SEEDS = 30;
const ROUNDS = [1, 2, 4, 6, 10, 15, 22, 30];

// The first seconds of a question, with one seed of each protocol.
function firstLook(pool, question) {
  const json = JSON.stringify(question.json());
  const look = pool.runner().ask("preview", `{"question":${json},"packets":${PREVIEW_PACKETS}}`);
  // A question that cannot be simulated is refused by its description, too.
  look.catch(() => {});
  return { json, look };
}

class Results {
  constructor(pool, page) {
    this.pool = pool;
    this.page = page;
    this.asked = 0;
    this.begun = null;
    this.ending = null;
    this.shown = null;
  }

  // Shows the answer to a question; an older one is cancelled.
  async ask(question) {
    this.asked += 1;
    const number = this.asked, isOver = () => number !== this.asked;
    const begun = this.begun;
    this.begun = null;
    const isBegun = begun?.json === JSON.stringify(question.json());
    if (!isBegun) this.pool.cancel();
    const { look } = isBegun ? begun : firstLook(this.pool, question);
    this.page.progress("");
    let about;
    try {
      about = JSON.parse(await this.pool.desk.ask("describe", JSON.stringify(question.json())));
    } catch (error) {
      if (!isOver()) this.page.wrong(error);
      return;
    }
    if (isOver()) return;
    this.page.described(about);
    try {
      await this.rounds(question, about, look, isOver);
    } catch (error) {
      if (!isOver()) this.page.wrong(error);
    }
  }

  async rounds(question, about, look, isOver) {
    const count = about.protocols.length, begun = performance.now();
    const { first_s, runs: first } = JSON.parse(await look);
    if (isOver()) return;
    if (first_s) {
      await this.report(question.json({ first_s }), first.map((run) => [JSON.stringify(run)]), "first", isOver);
      if (isOver()) return;
      this.page.progress(`A first look: ${first_s.toPrecision(2)} s of ${about.seconds} s, one seed.`);
    }
    const runs = Array.from({ length: count }, () => []);
    const wanted = question.get("seeds") ? about.seeds : Math.max(about.seeds, MOST_SEEDS);
    let answer = null;
    for (const round of [...ROUNDS.filter((n) => n < wanted), wanted]) {
      const seeds = Math.min(round, wanted), have = runs[0].length;
      if (seeds <= have) continue;
      const more = await this.runs(question.json(), count, have, seeds, isOver);
      if (isOver()) return;
      more.forEach((list, variant) => runs[variant].push(...list));
      answer = await this.report(question.json(), runs, "round", isOver);
      if (isOver()) return;
      this.page.progress(`${seeds} of up to ${wanted} seeds`);
      const enough = !question.get("seeds") && seeds >= 4 && answer.width !== null && answer.width < NARROW;
      if (enough || (answer.once && seeds > 1)) break;
    }
    answer = await this.report(question.json({ options: { seeds: String(runs[0].length) } }), runs, "last", isOver);
    if (isOver()) return;
    const took = (performance.now() - begun) / 1000;
    this.page.done(answer, `${answer.seeds} ${answer.seeds === 1 ? "seed" : "seeds"} in ${took.toFixed(1)} s`);
  }

  // Texts of runs by protocol, of seeds from..to.
  async runs(question, count, from, to, isOver) {
    const head = `{"question":${JSON.stringify(question)}`;
    const runs = Array.from({ length: count }, () => new Array(to - from));
    const tasks = [];
    for (let seed = from; seed < to; seed += 1) {
      for (let variant = 0; variant < count; variant += 1) {
        tasks.push(this.pool.runner().ask("run", `${head},"variant":${variant},"seed":${seed}}`)
          .then((text) => { runs[variant][seed - from] = text; }));
      }
    }
    await Promise.all(tasks);
    return isOver() ? [] : runs;
  }

  // `kind` is "first" for a first look, and "last" for the report with trials.
  async report(question, runs, kind, isOver) {
    const trials = kind === "last";
    const lists = runs.map((list) => `[${list.join(",")}]`).join(",");
    const request = `{"question":${JSON.stringify(question)},"runs":[${lists}],"trials":${trials}}`;
    const hand = trials ? this.pool.judge : this.pool.desk;
    const answer = JSON.parse(await hand.ask("answer", request));
    if (!isOver()) this.show(answer, kind === "first");
    this.page.seen();
    return answer;
  }

  // A report of the same protocols and bars renews the page's; another one replaces it.
  show(answer, isFirst) {
    if (isFirst) {
      this.shown = null;
      this.ending?.abort();
      byId("answer").innerHTML = answer.answer;
      byId("comparison").innerHTML = answer.comparison;
      byId("sides")?.remove();
      byId("traces").replaceChildren();
      return;
    }
    data = JSON.parse(answer.data);
    const same = JSON.stringify([data.protocols.map((p) => p.name), data.bars.map((b) => [b.title, b.mean.map((m) => !!m)]), data.end]);
    byId("answer").innerHTML = answer.answer;
    if (same === this.shown) {
      const is = byId("all")?.checked, part = new DOMParser().parseFromString(answer.comparison, "text/html");
      const table = part.querySelector("#results");
      table.classList.toggle("all", is);
      byId("results").replaceWith(table);
      byId("comparison").querySelector(".quiet").firstChild.textContent = part.querySelector(".quiet").firstChild.textContent;
      this.charts?.renewed(table);
      document.querySelectorAll("#answer [data-copy]").forEach((button) => this.charts?.copies(button));
      return;
    }
    this.shown = same;
    this.ending?.abort();
    this.ending = new AbortController();
    byId("comparison").innerHTML = answer.comparison;
    byId("traces").innerHTML = answer.traces;
    this.page.protocols(data.protocols.map((p) => p.name));
    // The table is painted before the charts' library starts.
    const { signal } = this.ending;
    requestAnimationFrame(() => setTimeout(() => {
      if (!signal.aborted) this.charts = showReport(signal);
    }));
  }
}
