// Draws the report's charts with plotly.js from the JSON that `charts.rs` wrote, each when it
// comes into view; and sorts tables. Without it the page is still complete, but for the charts.
// `end` is an AbortSignal for a page that shows another report later; `renewed` of the result
// shows changed means of the same protocols.
function showReport(end) {
  const touch = matchMedia("(pointer: coarse)").matches;
  const short = (text, most) => plain(text.length > most ? text.slice(0, most - 1) + "…" : text);
  const names = data.protocols.map((p) => p.name);

  // ---- tables ----------------------------------------------------------------------------------

  const sortable = (table) => {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => head.addEventListener("click", () => {
      const body = table.tBodies[0];
      const up = head.getAttribute("aria-sort") === "descending" ||
        (column === 0 && head.getAttribute("aria-sort") !== "ascending");
      heads.forEach((h) => h.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const value = (row) => row.cells[column].dataset.v;
      const rows = [...body.rows].sort((a, b) => {
        const [x, y] = [value(a), value(b)];
        if (x === "" || y === "") return (x === "") - (y === "");
        return up ? x - y : y - x;
      });
      body.append(...rows);
    }));
  };
  const copies = (button) =>
    button.addEventListener("click", () => {
      const code = button.parentElement.querySelector("code");
      getSelection().selectAllChildren(code);
      // Pages from a file have no clipboard of their own in some browsers.
      const copied = navigator.clipboard?.writeText(code.textContent)
        ?? Promise.resolve(document.execCommand("copy"));
      copied.then(() => { button.textContent = "Copied"; }, () => { button.textContent = "Selected"; });
    });
  document.querySelectorAll("table.sortable").forEach(sortable);
  document.querySelectorAll("[data-copy]").forEach(copies);
  byId("all")?.addEventListener("change", (event) =>
    byId("results").classList.toggle("all", event.target.checked));

  // ---- which protocols stand out ---------------------------------------------------------------

  // A line or a name for each of many protocols cannot be told apart: a few have a colour, the others
  // are grey, and the reader chooses which. At first they are those with the most of the first bars.
  const few = 6;
  const slots = new Map();
  const free = () => {
    for (let slot = 0; ; slot += 1) if (![...slots.values()].includes(slot)) return slot;
  };
  const order = names.map((_, i) => i);
  if (names.length > few + 2) {
    const first = data.bars[0]?.mean ?? [];
    order.sort((a, b) => (first[b] ?? 0) - (first[a] ?? 0)).splice(few);
  }
  for (const i of order.sort((a, b) => a - b)) slots.set(i, free());
  const dashes = ["solid", "dash", "dot", "dashdot"];
  const dash = (slot) => dashes[Math.floor(slot / data.light.length) % dashes.length];

  function drawChoice() {
    const choice = byId("choice");
    if (names.length < 2 || !(data.trade || data.smooth)) return;
    choice.setAttribute("role", "group");
    choice.setAttribute("aria-label", "Protocols that stand out");
    const button = (text, act) => {
      const made = document.createElement("button");
      made.type = "button";
      made.textContent = text;
      made.addEventListener("click", () => { act(); drawn(); });
      choice.append(made);
      return made;
    };
    const buttons = names.map((name, i) => button(name, () => {
      if (!slots.delete(i)) slots.set(i, free());
    }));
    button("all", () => names.forEach((_, i) => { if (!slots.has(i)) slots.set(i, free()); })).className = "plain";
    button("none", () => slots.clear()).className = "plain";
    const drawn = () => {
      buttons.forEach((made, i) => {
        made.setAttribute("aria-pressed", slots.has(i));
        made.style.setProperty("--colour", slots.has(i) ? colour(slots.get(i)) : "transparent");
      });
      charts.filter((c) => c.drawn && (c.draw === drawTrade || c.draw === drawSmooth))
        .forEach((c) => c.draw(c.element));
    };
    dark.addEventListener("change", drawn, { signal: end });
    drawn();
  }

  // ---- what all charts share -------------------------------------------------------------------

  const axis = (more) => ({
    gridcolor: css("--grid"), zerolinecolor: css("--line"), linecolor: css("--line"),
    tickcolor: css("--line"), automargin: false, ...more,
  });
  const layout = (more) => chartLayout({ showlegend: false, ...more });
  const options = (zoom) => ({
    responsive: true, displaylogo: false, displayModeBar: zoom && touch ? true : zoom && "hover",
    scrollZoom: false, doubleClick: "reset",
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"]
      .concat(touch ? ["toImage", "zoom2d"] : []),
    toImageButtonOptions: { format: "svg", filename: "narrows" },
  });
  const unit = (text) => (text ? " " + text : "");
  // A chart's title, and what must be known to read it: on a narrow page in a line of its own.
  const narrow = (element) => element.clientWidth < 560;
  const heading = (element, text, more) => ({
    text: `<b>${text}</b>` +
      `${narrow(element) ? "<br>" : " "}<span style="font-size:11px">(${more})</span>`,
    font: { ...font(), size: 14 }, x: 0, xref: "container", xanchor: "left",
    y: 1, yref: "container", yanchor: "top", pad: { l: 4, t: 10 },
  });
  const titled = (bar) => bar.title + (bar.unit ? `, ${bar.unit}` : "");
  const four = (value) => +value.toPrecision(4);
  const ends = (bar) => bar.mean.map((m, i) =>
    m === null ? "" : `${four(m)}${unit(bar.unit)}${bar.low[i] === null ? "" :
      ` (${four(bar.low[i])} to ${four(bar.high[i])})`}`);
  const above = (bar, i) => (bar.high[i] ?? bar.mean[i] ?? 0) - (bar.mean[i] ?? 0);
  const below = (bar, i) => (bar.mean[i] ?? 0) - (bar.low[i] ?? bar.mean[i] ?? 0);
  // Intervals of the protocols that `shows` selects.
  const intervals = (bar, shows) => ({
    type: "data", symmetric: false,
    array: names.map((_, i) => (shows(i) ? above(bar, i) : 0)),
    arrayminus: names.map((_, i) => (shows(i) ? below(bar, i) : 0)),
    visible: bar.low.some((end, i) => end !== null && shows(i)),
  });

  // ---- side by side ----------------------------------------------------------------------------

  function drawBars(element) {
    const bar = data.bars[element.dataset.bar];
    const places = names.map((_, i) => i);
    const wide = Math.min(18, Math.max(...names.map((n) => n.length)));
    const top = Math.max(0, ...bar.mean.map((m, i) => (m ?? 0) + above(bar, i)));
    return Plotly.react(element, [{
      type: "bar", orientation: "h", x: bar.mean, y: places, width: 0.66,
      marker: { color: colour(0), opacity: 0.85 },
      error_x: { ...intervals(bar, () => true), color: css("--text"), thickness: 1.3, width: 4 },
      customdata: names.map((n, i) => [plain(n), ends(bar)[i]]),
      hovertemplate: "%{customdata[0]}: %{customdata[1]}<extra></extra>",
    }], layout({
      title: {
        text: `<b>${titled(bar)}</b>` +
          (bar.better ? ` <span style="font-size:11px">(${bar.better})</span>` : ""),
        font: { ...font(), size: 14 }, x: 0, xref: "container", xanchor: "left", pad: { l: 4, t: 10 },
        y: 1, yref: "container", yanchor: "top",
      },
      height: 62 + 24 * names.length + 10,
      margin: { l: 18 + 7 * wide, r: 14, t: 36, b: 28 }, dragmode: false,
      xaxis: axis({ range: [0, top > 0 ? 1.04 * top : 1], fixedrange: true, nticks: 6 }),
      yaxis: axis({
        range: [names.length - 0.4, -0.6], fixedrange: true, tickvals: places,
        ticktext: names.map((n) => short(n, 18)), showgrid: false, zeroline: false,
      }),
    }), options(false));
  }

  // Goodput against delay: each protocol a point with its intervals and its name beside it.
  function drawTrade(element) {
    const x = data.bars[data.trade.x], y = data.bars[data.trade.y];
    const margin = { l: 64, r: 20, t: narrow(element) ? 60 : 44, b: 48 }, height = 420;
    const ink = names.map((_, i) => (slots.has(i) ? colour(slots.get(i)) : css("--line")));
    const size = [element.clientWidth - margin.l - margin.r, height - margin.t - margin.b];
    const span = (bar) => {
      const low = bar.mean.flatMap((m, i) => m === null ? [] : [m - below(bar, i)]);
      const high = bar.mean.flatMap((m, i) => m === null ? [] : [m + above(bar, i)]);
      const [a, b] = [Math.min(...low), Math.max(...high)];
      const pad = 0.09 * (b - a) || 0.1 * Math.abs(b) || 1;
      return [a - pad, b + pad];
    };
    const ranges = [span(x), span(y)];
    const error = (bar) => ({
      ...intervals(bar, (i) => slots.has(i)), color: css("--quiet"), thickness: 1.2, width: 3,
    });
    const named = names.map((_, i) => i).filter((i) => slots.has(i));
    const notes = places(named, x, y, ranges, size).map(({ i, dx, dy }) => ({
      x: x.mean[i], y: y.mean[i], text: short(names[i], 18), ax: dx, ay: dy, xanchor: "center",
      showarrow: true, arrowhead: 0, arrowwidth: 0.8, arrowcolor: css("--quiet"), standoff: 6,
      font: { ...font(), size: 12 },
    }));
    return Plotly.react(element, [{
      type: "scatter", mode: "markers", x: x.mean, y: y.mean, error_x: error(x), error_y: error(y),
      marker: { color: ink, size: names.map((_, i) => (slots.has(i) ? 9 : 7)) },
      customdata: names.map((n, i) => [plain(n), ends(x)[i], ends(y)[i]]),
      hovertemplate: `<b>%{customdata[0]}</b><br>${y.title.toLowerCase()} %{customdata[2]}<br>` +
        "mean RTT %{customdata[1]}<extra></extra>",
    }], layout({
      title: heading(element, "Goodput against delay", "up and left is better"),
      height, margin, annotations: notes, dragmode: touch ? false : "zoom",
      xaxis: axis({
        title: { text: titled(x) }, range: ranges[0], zeroline: false, nticks: narrow(element) ? 5 : 9,
      }),
      yaxis: axis({ title: { text: titled(y) }, range: ranges[1], zeroline: false, nticks: 9 }),
    }), options(!touch));
  }

  // How rough goodput is on each time scale: each protocol a line, those that stand out on top.
  function drawSmooth(element) {
    const { scales, lines } = data.smooth;
    const order = names.map((_, i) => i).sort((a, b) => slots.has(a) - slots.has(b));
    const text = (s) => (s < 1 ? `${+(s * 1000).toPrecision(4)} ms` : `${+s.toPrecision(4)} s`);
    return Plotly.react(element, order.map((i) => {
      const shows = slots.has(i), ink = shows ? colour(slots.get(i)) : css("--quiet");
      return {
        type: "scatter", mode: shows ? "lines+markers" : "lines", x: scales, y: lines[i],
        name: short(names[i], 18), marker: { color: ink, size: 6 }, opacity: shows ? 1 : 0.35,
        line: { color: ink, width: shows ? 1.8 : 1, dash: shows ? dash(slots.get(i)) : "solid" },
        ...(shows ? { hovertemplate: "%{y:.3~g}" } : { hoverinfo: "skip" }),
      };
    }), layout({
      title: heading(element, "Roughness against time scale",
        "coefficient of variation of goodput; less is better"),
      height: 360, margin: { l: 64, r: 20, t: narrow(element) ? 60 : 44, b: 48 },
      hovermode: "x unified", dragmode: false,
      xaxis: axis({
        type: "log", title: { text: "bins of" }, tickvals: scales, tickangle: 0,
        ticktext: scales.map((s, i) => (narrow(element) && i % 2 ? "" : text(s))),
        fixedrange: true, zeroline: false,
      }),
      yaxis: axis({
        title: { text: "standard deviation / mean" }, rangemode: "tozero", fixedrange: true, nticks: 7,
      }),
    }), options(false));
  }

  // Where names go: the nearest free place around each point, so that none covers another.
  function places(named, x, y, ranges, [width, height]) {
    const at = (i) => [
      (x.mean[i] - ranges[0][0]) / (ranges[0][1] - ranges[0][0]) * width,
      (1 - (y.mean[i] - ranges[1][0]) / (ranges[1][1] - ranges[1][0])) * height,
    ];
    const points = names.map((_, i) => i).filter((i) => x.mean[i] !== null && y.mean[i] !== null);
    // The longer part of an interval in pixels.
    const reach = (bar, i, [low, high], pixels) =>
      Math.max(above(bar, i), below(bar, i)) / (high - low) * pixels;
    const dots = points.map((i) => ({ x: at(i)[0], y: at(i)[1], w: 5, h: 5 }));
    const errors = points.flatMap((i) => [
      { x: at(i)[0], y: at(i)[1], w: reach(x, i, ranges[0], width), h: 1 },
      { x: at(i)[0], y: at(i)[1], w: 1, h: reach(y, i, ranges[1], height) },
    ]);
    const clashes = (a, boxes) => boxes.filter((b) =>
      Math.abs(a.x - b.x) < a.w + b.w && Math.abs(a.y - b.y) < a.h + b.h).length;
    const outside = (a) => a.x < a.w || a.x > width - a.w || a.y < a.h || a.y > height - a.h;
    const around = [[1, 0], [0.6, 1], [-0.6, 1], [0.6, -1], [-0.6, -1], [0, 1], [0, -1], [-1, 0]];
    const taken = [];
    return named.filter((i) => points.includes(i)).sort((a, b) => at(a)[1] - at(b)[1]).map((i) => {
      const [px, py] = at(i), w = 3.6 * Math.min(18, names[i].length) + 3, h = 8;
      let best = null;
      for (const far of [5, 12, 22, 34, 50, 70, 100]) {
        for (const [right, up] of around) {
          const dx = right * (w + far), dy = -up * (h + far);
          const box = { x: px + dx, y: py + dy, w, h };
          const cost = 1000 * clashes(box, taken) + 300 * clashes(box, dots) +
            15 * clashes(box, errors) + (outside(box) ? 2000 : 0) + far;
          if (!best || cost < best.cost) best = { cost, box, i, dx, dy };
        }
      }
      taken.push(best.box);
      return best;
    });
  }

  // ---- over time -------------------------------------------------------------------------------

  const tops = {};
  for (const { panels } of data.protocols) {
    for (const { title, limit, lines } of panels) {
      const low = Math.min(...lines.flatMap((l) => l.y).filter((v) => v !== null), Infinity);
      const high = lines.filter((l) => l.style !== 1).flatMap((l) => l.y)
        .reduce((a, v) => Math.max(a, v ?? 0), limit?.y ?? 0);
      const [a, b] = tops[title] ?? [Infinity, 0];
      tops[title] = [Math.min(a, low), Math.max(b, high)];
    }
  }
  // Zero is in view unless the values are far from it, as RTTs are on a long path.
  const scale = ([low, high]) =>
    (low > 0.5 * high ? [low - 0.1 * (high - low), high + 0.06 * (high - low)] : [-0.03 * high, 1.06 * high || 1]);
  const everything = [0, data.end ?? 1];
  let view = everything;

  function drawTrace(element) {
    const { panels, times, left_out } = data.protocols[element.dataset.place];
    const traces = [], axes = {}, notes = [], shapes = [];
    // Without a mouse the buttons stay, so they need a line of their own.
    const above = touch ? 24 : 0;
    const gap = 0.055, part = (1 - gap * (panels.length - 1)) / panels.length;
    panels.forEach((panel, row) => {
      const number = row === 0 ? "" : String(row + 1), y = "y" + number;
      const top = 1 - row * (part + gap), domain = [Math.max(0, top - part), top];
      const same = byId("same").checked;
      axes["yaxis" + number] = axis({
        domain, title: { text: panel.unit, standoff: 6 }, nticks: 6, zeroline: true,
        fixedrange: true, ...(same ? { range: scale(tops[panel.title]) } : { rangemode: "tozero" }),
      });
      notes.push({
        text: legend(panel, row === 0 ? left_out : 0, element.clientWidth - 80), x: 0, y: top, xref: "paper", yref: "paper", xanchor: "left",
        yanchor: "bottom", showarrow: false, align: "left", font: { ...font(), size: 12 },
      });
      if (panel.limit) {
        shapes.push({
          type: "line", xref: "paper", x0: 0, x1: 1, yref: y, y0: panel.limit.y, y1: panel.limit.y,
          line: { color: css("--quiet"), width: 1, dash: "dot" },
        });
      }
      for (const line of panel.lines) {
        traces.push({
          type: "scatter", mode: "lines", name: plain(line.name), x: times[line.x], y: line.y,
          xaxis: "x", yaxis: y, hovertemplate: `%{y:.4~g}${unit(panel.unit)}`,
          opacity: line.style === 2 ? 0.45 : 1,
          line: {
            color: colour(line.colour), width: line.style === 0 ? 1.6 : 1.1,
            dash: line.style === 1 ? "dash" : "solid",
          },
        });
      }
      for (const mark of panel.marks) {
        traces.push({
          type: "scatter", mode: "markers", name: plain(mark.name), x: mark.x, y: mark.y,
          customdata: mark.n, hovertemplate: "%{customdata}", xaxis: "x", yaxis: y,
          marker: {
            symbol: mark.symbol, size: mark.symbol === "triangle-up" ? 6 : 7, color: colour(mark.colour),
            line: { width: 1.2, color: colour(mark.colour) },
          },
          cliponaxis: false,
        });
      }
    });
    if (data.warmup > 0) {
      shapes.push({
        type: "rect", x0: 0, x1: data.warmup, yref: "paper", y0: 0, y1: 1, layer: "below",
        fillcolor: css("--panel"), line: { width: 0 },
      });
    }
    const drawn = Plotly.react(element, traces, layout({
      height: 40 + above + 155 * panels.length, margin: { l: 58, r: 24, t: 26 + above, b: 42 },
      hovermode: "x unified", hoversubplots: "axis", dragmode: touch ? false : "zoom",
      annotations: notes, shapes,
      xaxis: axis({
        anchor: panels.length > 1 ? "y" + panels.length : "y", range: [...everything],
        title: { text: "time", standoff: 4 }, hoverformat: ".3~f", ticksuffix: " s",
      }),
      ...axes,
    }), options(true));
    // The room kept for five panels is not needed by fewer.
    element.style.minHeight = 0;
    if (!element.dataset.linked) {
      element.dataset.linked = "yes";
      element.on("plotly_relayout", (change) => zoomed(element, change));
    }
    if (view !== everything) drawn.then(() => Plotly.relayout(element, { "xaxis.range": [...view] }));
    return drawn;
  }

  // A legend in one line above the panel, in the colours of its lines, as far as there is room.
  function legend(panel, left_out, width) {
    const symbols = { "x-thin": "✕", "triangle-up": "▲", "line-ns": "❘" };
    const keys = [
      ...panel.lines.map((l) => ({ sign: ["━", "╍", "─"][l.style], ...l })),
      ...panel.marks.map((m) => ({ sign: symbols[m.symbol] ?? "•", ...m })),
      ...(panel.limit ? [{ sign: "┈", name: panel.limit.name, colour: -1 }] : []),
    ];
    let text = `<b>${panel.title}</b>`, room = width / 6.3 - panel.title.length - 8;
    let hidden = 0;
    for (const { sign, name, colour: i } of keys) {
      room -= Math.min(24, name.length) + 4.5;
      if (room < 0) {
        hidden += 1;
        continue;
      }
      const ink = i < 0 ? css("--quiet") : colour(i);
      text += `   <span style="color:${ink}">${sign}</span> ${short(name, 24)}`;
    }
    if (hidden) text += `   + ${hidden}`;
    return text + (left_out && room > 24 ? `   (${left_out} more in the file of the series)` : "");
  }

  // Zooming one protocol zooms the others, if the reader wants that.
  let passing = false;
  function zoomed(element, change) {
    if (passing || !byId("together").checked) return;
    const range = [change["xaxis.range[0]"], change["xaxis.range[1]"]];
    if (range[0] === undefined && !change["xaxis.autorange"] && !change["xaxis.range"]) return;
    view = change["xaxis.range"] ?? (range[0] === undefined ? everything : range);
    if (view[0] === everything[0] && view[1] === everything[1]) view = everything;
    passing = true;
    const others = [...document.querySelectorAll(".timeline")].filter((e) => e !== element && e.data);
    Promise.all(others.map((e) => Plotly.relayout(e, { "xaxis.range": [...view] })))
      .finally(() => { passing = false; });
  }

  // ---- when to draw ----------------------------------------------------------------------------

  const charts = [];
  const chart = (element, draw) => charts.push({ element, draw, drawn: false });
  if (data.trade) {
    byId("trade").style.minHeight = "420px";
    chart(byId("trade"), drawTrade);
  }
  if (data.smooth) {
    byId("smooth").style.minHeight = "360px";
    chart(byId("smooth"), drawSmooth);
  }
  data.bars.forEach((bar, i) => {
    // Where nothing happened there is nothing to draw.
    if (!bar.mean.some((m) => m)) return;
    const element = document.createElement("div");
    element.dataset.bar = i;
    element.style.minHeight = 72 + 24 * names.length + "px";
    byId("bars").append(element);
    chart(element, drawBars);
  });
  for (const element of document.querySelectorAll(".timeline")) chart(element, drawTrace);
  drawChoice();

  function failed(error) {
    console.error(error);
    for (const { element } of charts) {
      element.style.minHeight = 0;
      element.classList.add("failed");
    }
    const note = document.createElement("p");
    note.textContent = "The charts need a newer browser; the tables are complete.";
    byId("sides")?.append(note);
  }

  if (charts.length) {
    try {
      startLibrary();
      const seen = new IntersectionObserver((entries) => {
        for (const entry of entries.filter((e) => e.isIntersecting)) {
          const found = charts.find((c) => c.element === entry.target);
          seen.unobserve(entry.target);
          found.drawn = true;
          found.draw(found.element);
        }
      }, { rootMargin: "600px" });
      charts.forEach((c) => seen.observe(c.element));
      const again = (which) => charts.filter((c) => c.drawn && which(c)).forEach((c) => c.draw(c.element));
      dark.addEventListener("change", () => again(() => true), { signal: end });
      byId("same")?.addEventListener("change", () => again((c) => c.draw === drawTrace));
      byId("together")?.addEventListener("change", () => { view = everything; });
      const drawAll = () => charts.forEach((c) => { c.drawn = true; c.draw(c.element); });
      addEventListener("beforeprint", drawAll, { signal: end });
      end?.addEventListener("abort", () => seen.disconnect());
    } catch (error) {
      failed(error);
    }
  }

  return {
    // Of another table and other data, with the same protocols and bars.
    renewed(table) {
      sortable(table);
      charts.filter((c) => c.drawn && c.draw !== drawTrace).forEach((c) => c.draw(c.element));
    },
    copies,
  };
}
