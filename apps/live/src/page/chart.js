// Charts on canvases that share one window of time.

const byId = (id) => document.getElementById(id);
const dark = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => {
  const theme = document.documentElement.dataset.theme;
  return theme ? theme === "dark" : dark.matches;
};
let ink = {};
const readInk = () => {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["ground", "panel", "line", "grid", "text", "quiet", "strong", "warn", "fill"]) {
    ink[name] = style.getPropertyValue("--" + name).trim();
  }
};
// A flow's colour; flows of the same colour differ in their dashes.
const DASHES = [[], [7, 4], [2, 3], [9, 3, 2, 3]];
const colourOf = (slot) => (isDark() ? DARK : LIGHT)[slot % LIGHT.length];
const dashOf = (slot) => DASHES[Math.floor(slot / LIGHT.length) % DASHES.length];

const LEFT = 58, RIGHT = 10, TOP = 6, BOTTOM = 18;
const SVG = "http://www.w3.org/2000/svg";

// A piece of a line, or a symbol, for legends.
function sample({ colour, dash = [], width = 2, symbol }) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 22 10");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG, "path");
  const shapes = { cross: "M7 1l8 8M15 1l-8 8", ring: "M11 1.5a3.5 3.5 0 1 0 .01 0z", up: "M11 1l4 7h-8z", square: "M7.5 1.5h7v7h-7z", dot: "M11 3.4a1.6 1.6 0 1 0 .01 0z" };
  path.setAttribute("d", symbol ? shapes[symbol] : "M0 5h22");
  path.setAttribute("stroke", colour);
  path.setAttribute("stroke-width", symbol ? 1.8 : width);
  path.setAttribute("stroke-dasharray", dash.join(" "));
  path.setAttribute("fill", ["dot", "up", "square"].includes(symbol) ? colour : "none");
  svg.append(path);
  return svg;
}

const nice = (span, count) => {
  const raw = span / Math.max(1, count), power = 10 ** Math.floor(Math.log10(raw));
  return power * ([1, 2, 5].find((m) => m * power >= raw) ?? 10);
};
const short = (x) => {
  const size = Math.abs(x);
  if (size >= 1e6) return +(x / 1e6).toPrecision(4) + "M";
  if (size >= 1e4) return +(x / 1e3).toPrecision(4) + "k";
  return String(+x.toPrecision(4));
};
const seconds = (us, digits = 3) => (us / 1e6).toFixed(digits) + " s";

class Chart {
  // spec: title, unit, height, lines() and marks() of what is to be drawn now.
  constructor(parent, spec) {
    this.spec = spec;
    this.box = document.createElement("div");
    this.box.className = "chart";
    const head = document.createElement("h2");
    this.name = document.createElement("span");
    head.append(this.name);
    this.keys = document.createElement("span");
    head.append(this.keys);
    this.canvas = document.createElement("canvas");
    this.canvas.setAttribute("role", "img");
    this.box.append(head, this.canvas);
    parent.append(this.box);
    this.head = head;
    this.drag = null;
  }

  size() {
    const width = this.canvas.clientWidth, scale = devicePixelRatio || 1;
    const height = innerWidth <= 900 ? Math.round(this.spec.height * 0.8) : this.spec.height;
    if (this.canvas.width !== Math.round(width * scale) || this.canvas.height !== Math.round(height * scale)) {
      this.canvas.style.height = height + "px";
      this.canvas.width = Math.round(width * scale);
      this.canvas.height = Math.round(height * scale);
    }
    const context = this.canvas.getContext("2d");
    context.setTransform(scale, 0, 0, scale, 0, 0);
    return { context, width, height };
  }

  draw(view) {
    const lines = this.spec.lines(), marks = this.spec.marks?.(view) ?? [];
    const shown = lines.length > 0 || marks.length > 0 || this.spec.always;
    this.box.hidden = !shown;
    if (!shown) return;
    this.name.textContent = this.spec.title() + (this.spec.unit ? `, ${this.spec.unit}` : "");
    this.legend(view);
    const { context: c, width, height } = this.size();
    const plot = { x: LEFT, y: TOP, w: Math.max(1, width - LEFT - RIGHT), h: height - TOP - BOTTOM };
    this.plot = plot;
    const [from, to] = view.window;
    const x = (t) => plot.x + (t - from) / (to - from) * plot.w;
    // The highest value that is seen, with a little room.
    let [low, top] = this.spec.range?.(view) ?? [0, 0];
    for (const line of lines) {
      const i = Math.max(0, firstAt(line.t, from) - 1), end = Math.min(line.t.length, firstAt(line.t, to) + 1);
      for (let k = i; k < end; k += 1) {
        const v = line.v[k];
        if (v !== null && v * line.scale > top) top = v * line.scale;
      }
    }
    if (!(top > low)) top = low + 1;
    const room = this.spec.range ? 0 : (this.spec.room?.() ?? 0.06) * (top - low);
    const y = (v) => plot.y + plot.h - (v - low) / (top + room - low) * plot.h;
    c.clearRect(0, 0, width, height);
    // Where there are marks alone nothing is measured.
    this.axes(c, view, plot, low, lines.length ? top + room : NaN, x, y);
    c.save();
    c.beginPath();
    c.rect(plot.x, plot.y - 2, plot.w, plot.h + 3);
    c.clip();
    for (const line of lines) this.line(c, line, view, plot, x, y);
    for (const mark of marks) this.mark(c, mark, x, y, plot);
    c.restore();
    this.overlays(c, view, plot, x);
    this.describe(lines, marks);
  }

  axes(c, view, plot, low, top, x, y) {
    const [from, to] = view.window;
    c.font = "11px system-ui, sans-serif";
    c.lineWidth = 1;
    c.strokeStyle = ink.grid;
    c.fillStyle = ink.quiet;
    c.textAlign = "right";
    c.textBaseline = "middle";
    const step = nice(top - low, plot.h / 34);
    for (let v = Math.ceil(low / step) * step; v <= top; v += step) {
      const at = Math.round(y(v)) + 0.5;
      c.beginPath();
      c.moveTo(plot.x, at);
      c.lineTo(plot.x + plot.w, at);
      c.stroke();
      c.fillText(short(v), plot.x - 6, at);
    }
    c.textAlign = "center";
    c.textBaseline = "top";
    const every = nice((to - from) / 1e6, plot.w / 90) * 1e6;
    const digits = Math.max(0, -Math.floor(Math.log10(every / 1e6) + 1e-9));
    for (let t = Math.ceil(from / every) * every; t <= to; t += every) {
      const at = Math.round(x(t)) + 0.5;
      c.beginPath();
      c.moveTo(at, plot.y);
      c.lineTo(at, plot.y + plot.h);
      c.stroke();
      if (at > plot.x + plot.w - 12) continue;
      c.fillText((t / 1e6).toFixed(digits) + " s", at, plot.y + plot.h + 4);
    }
    c.strokeStyle = ink.line;
    c.strokeRect(plot.x + 0.5, plot.y + 0.5, plot.w - 1, plot.h - 1);
  }

  // A line; where there are several values per pixel, their range.
  line(c, line, view, plot, x, y) {
    const [from, to] = view.window;
    const begin = Math.max(0, firstAt(line.t, from) - 1), end = Math.min(line.t.length, firstAt(line.t, to) + 1);
    c.strokeStyle = line.colour;
    c.lineWidth = line.width ?? 1.6;
    c.lineJoin = "round";
    c.globalAlpha = line.alpha ?? 1;
    c.setLineDash(line.dash ?? []);
    const dense = end - begin > 2 * plot.w && !line.step;
    c.beginPath();
    let pen = false, startX = 0, lastX = 0, lastY = 0;
    let pixel = null, least = 0, most = 0;
    const put = (px, py) => {
      if (pen && line.step) c.lineTo(px, lastY);
      if (pen) c.lineTo(px, py); else { c.moveTo(px, py); startX = px; }
      [pen, lastX, lastY] = [true, px, py];
    };
    for (let i = begin; i < end; i += 1) {
      const v = line.v[i];
      if (v === null) { pen = line.gaps === false ? pen : false; continue; }
      const px = x(line.t[i]), py = y(v * line.scale);
      if (!dense) { put(px, py); continue; }
      if (pixel === Math.round(px)) {
        least = Math.min(least, py);
        most = Math.max(most, py);
        continue;
      }
      if (pixel !== null && most > least) { put(pixel, least); put(pixel, most); }
      [pixel, least, most] = [Math.round(px), py, py];
      put(px, py);
    }
    c.stroke();
    if (line.area && pen) {
      c.lineTo(lastX, plot.y + plot.h);
      c.lineTo(startX, plot.y + plot.h);
      c.closePath();
      c.fillStyle = ink.fill;
      c.fill();
    }
    c.setLineDash([]);
    c.globalAlpha = 1;
  }

  mark(c, mark, x, y, plot) {
    const px = x(mark.t), py = mark.v === undefined ? plot.y + 5 + mark.row * 9 : y(mark.v);
    c.strokeStyle = c.fillStyle = mark.colour;
    c.lineWidth = 1.6;
    c.beginPath();
    if (mark.symbol === "cross") {
      c.moveTo(px - 3.5, py - 3.5);
      c.lineTo(px + 3.5, py + 3.5);
      c.moveTo(px + 3.5, py - 3.5);
      c.lineTo(px - 3.5, py + 3.5);
      c.stroke();
    } else if (mark.symbol === "ring") {
      c.arc(px, py, 3.2, 0, 7);
      c.stroke();
    } else if (mark.symbol === "square") {
      c.fillRect(px - 3.5, py - 3.5, 7, 7);
    } else if (mark.symbol === "up") {
      c.moveTo(px, py - 4);
      c.lineTo(px + 4, py + 3);
      c.lineTo(px - 4, py + 3);
      c.fill();
    } else {
      c.fillRect(px - 1, py - 1, 2, 2);
    }
  }

  // The chosen event, the pointer, what is being dragged.
  overlays(c, view, plot, x) {
    const rule = (t, colour, dash) => {
      const px = x(t);
      if (px < plot.x || px > plot.x + plot.w) return;
      c.strokeStyle = colour;
      c.lineWidth = 1.4;
      c.setLineDash(dash);
      c.beginPath();
      c.moveTo(px, plot.y);
      c.lineTo(px, plot.y + plot.h);
      c.stroke();
      c.setLineDash([]);
    };
    if (view.chosen) rule(view.chosen.t, ink.strong, []);
    if (view.pointer !== null) rule(view.pointer, ink.quiet, [3, 3]);
    if (view.drag) {
      const [a, b] = view.drag.map(x);
      c.fillStyle = ink.fill;
      c.fillRect(Math.min(a, b), plot.y, Math.abs(b - a), plot.h);
    }
  }

  legend(view) {
    const parts = this.spec.keys?.(view) ?? [];
    const text = JSON.stringify(parts);
    if (text === this.legendText) return;
    this.legendText = text;
    this.keys.replaceChildren(...parts.map((part) => {
      const key = document.createElement("span");
      key.className = "key";
      if (part.colour) key.append(sample(part));
      key.append(part.label);
      return key;
    }));
  }

  describe(lines, marks) {
    const last = (line) => line.v.findLast((v) => v !== null);
    const texts = lines.slice(0, 8).filter((l) => l.label && last(l) !== undefined)
      .map((l) => `${l.label} ${short(last(l) * l.scale)}`);
    this.canvas.setAttribute("aria-label",
      `${this.name.textContent}: ${texts.join(", ")}${marks.length ? `; ${marks.length} marks` : ""}`);
  }

  timeAt(event, view) {
    if (!this.plot) return null;
    const at = (event.clientX - this.canvas.getBoundingClientRect().left - this.plot.x) / this.plot.w;
    return view.window[0] + Math.min(1, Math.max(0, at)) * (view.window[1] - view.window[0]);
  }
}
