// A sweep: a heat map whose columns are the values of what varies fastest, and the best points so far.

// Dark to light in steps that colour-blind people tell apart.
const RAMP = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
const rampAt = (part) => {
  const at = Math.min(0.9999, Math.max(0, part)) * (RAMP.length - 1), i = Math.floor(at);
  return RAMP[i].map((x, n) => Math.round(x + (RAMP[i + 1][n] - x) * (at - i)));
};
const BEST = 8;

class Board {
  constructor() {
    this.about = null;
    this.canvas = byId("heat");
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => this.legend());
    addEventListener("resize", () => this.draw());
  }

  take(board) {
    if (board.about) {
      this.about = board.about;
      const lists = board.about.parameters;
      // What has one value alone is no dimension.
      const varied = lists.filter((p) => p.values.length > 1);
      this.across = varied.at(-1) ?? lists.at(-1);
      this.columns = this.across.values.length;
      this.rows = lists.reduce((n, p) => n * p.values.length, 1) / this.columns;
      this.cells = new Map();
    }
    if (board.all) this.cells.clear();
    for (const [point, mean, count] of board.cells) if (mean !== null) this.cells.set(point, { mean, count });
    this.done = board.done;
    byId("board").hidden = false;
    byId("empty").hidden = true;
    if (!this.waiting) {
      this.waiting = true;
      requestAnimationFrame(() => { this.waiting = false; this.show(); });
    }
  }

  // Which value of each parameter a point has.
  indices(point) {
    const out = [];
    for (const p of [...this.about.parameters].reverse()) {
      out.unshift(point % p.values.length);
      point = Math.floor(point / p.values.length);
    }
    return out;
  }
  label(point, leaveOut) {
    const at = this.indices(point);
    return this.about.parameters.map((p, i) => (p === leaveOut || p.values.length < 2 ? "" : `${p.name} ${p.values[at[i]]}`)).filter(Boolean).join(", ");
  }
  place(point) {
    const at = this.indices(point), lists = this.about.parameters, n = lists.indexOf(this.across);
    let row = 0;
    lists.forEach((p, i) => { if (i !== n) row = row * p.values.length + at[i]; });
    return [row, at[n]];
  }

  show() {
    const a = this.about, points = this.rows * this.columns;
    const unit = a.unit ? `, ${a.unit}` : "";
    byId("board-title").textContent = `${a.measure}${a.group ? ` of ${a.group}` : ""}${unit}`;
    byId("board-meaning").textContent = a.meaning;
    byId("board-done").textContent = `${this.done} of ${a.runs} runs, ${this.cells.size} of ${points} points have a value`;
    byId("board-bar").max = a.runs;
    byId("board-bar").value = this.done;
    const sorted = [...this.cells].sort((x, y) => (a.larger === false ? x[1].mean - y[1].mean : y[1].mean - x[1].mean));
    byId("best-title").textContent = a.larger === null ? "Highest so far" : "Best so far";
    byId("best").replaceChildren(...sorted.slice(0, BEST).map(([point, { mean, count }]) => {
      const row = document.createElement("tr");
      for (const text of [short(mean), this.label(point) || "the only point", count === 1 ? "1 seed" : `${count} seeds`]) {
        const cell = document.createElement("td");
        cell.textContent = text;
        row.append(cell);
      }
      return row;
    }));
    this.draw();
    const best = sorted[0];
    this.canvas.setAttribute("aria-label", `${a.measure}: ${byId("board-done").textContent}` +
      (best ? `; ${byId("best-title").textContent.toLowerCase()} ${short(best[1].mean)} at ${this.label(best[0])}` : ""));
  }

  draw() {
    if (!this.about) return;
    const scale = devicePixelRatio || 1, width = this.canvas.clientWidth;
    const left = Math.min(260, Math.max(80, width * 0.28)), top = 22;
    const cellH = Math.max(3, Math.min(30, 460 / this.rows)), cellW = (width - left - 8) / this.columns;
    const height = Math.min(6000, top + cellH * this.rows + 4);
    this.canvas.style.height = height + "px";
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(height * scale);
    const c = this.canvas.getContext("2d");
    c.setTransform(scale, 0, 0, scale, 0, 0);
    c.font = "12px system-ui, sans-serif";
    c.textBaseline = "middle";
    c.fillStyle = ink.quiet;
    c.textAlign = "center";
    // As many labels as there is room for.
    const every = Math.ceil(70 / cellW);
    this.across.values.forEach((value, i) => {
      if (i % every === 0) c.fillText(value, left + (i + 0.5) * cellW, top / 2, every * cellW);
    });
    c.textAlign = "right";
    c.fillText(this.across.name, left - 8, top / 2, left - 10);
    let [low, high] = [Infinity, -Infinity];
    for (const { mean } of this.cells.values()) [low, high] = [Math.min(low, mean), Math.max(high, mean)];
    const points = this.rows * this.columns, gap = Math.min(cellW, cellH) > 8 ? 1 : 0;
    let named = -Infinity;
    for (let point = 0; point < points; point += 1) {
      const [row, column] = this.place(point), x = left + column * cellW, y = top + row * cellH;
      const cell = this.cells.get(point);
      if (column === 0 && y - named >= 13) {
        named = y;
        c.textAlign = "right";
        c.fillStyle = ink.quiet;
        c.fillText(this.label(point, this.across), left - 8, y + cellH / 2, left - 10);
      }
      const [r, g, b] = cell ? rampAt(high > low ? (cell.mean - low) / (high - low) : 0.5) : [];
      c.fillStyle = cell ? `rgb(${r}, ${g}, ${b})` : ink.grid;
      c.fillRect(x, y, Math.max(1, cellW - gap), Math.max(1, cellH - gap));
      if (cell && cellW > 42 && cellH > 14) {
        c.textAlign = "center";
        c.fillStyle = 0.299 * r + 0.587 * g + 0.114 * b > 140 ? "#000" : "#fff";
        c.fillText(short(cell.mean), x + cellW / 2, y + cellH / 2, cellW - 4);
      }
    }
    this.range = [low, high];
    this.legend();
    this.layout = { left, top, cellW, cellH };
  }

  legend() {
    const [low, high] = this.range;
    byId("heat-at").textContent = high >= low ? `${short(low)} is dark, ${short(high)} bright; grey is not yet run` : "\u00a0";
  }

  point(event) {
    if (!this.layout) return;
    const { left, top, cellW, cellH } = this.layout, box = this.canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - left) / cellW), row = Math.floor((event.clientY - box.top - top) / cellH);
    const inside = column >= 0 && column < this.columns && row >= 0 && row < this.rows;
    let text = "\u00a0";
    for (let point = 0; inside && point < this.rows * this.columns; point += 1) {
      const [r, k] = this.place(point);
      if (r !== row || k !== column) continue;
      const cell = this.cells.get(point);
      text = `${this.label(point)}: ${cell ? `${short(cell.mean)} ${this.about.unit}, ${cell.count} of its seeds` : "not yet"}`;
      break;
    }
    byId("heat-at").textContent = text;
  }
}
