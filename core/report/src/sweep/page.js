// Draws a sweep's charts with plotly.js from the JSON that `report.rs` wrote: a map, a surface or
// lines over the chosen parameters, and on a click what happened at a point.
(() => {
  const options = {
    responsive: true, displaylogo: false, toImageButtonOptions: { format: "svg", filename: "sweep" },
  };

  // ---- the product -----------------------------------------------------------------------------

  const parameters = data.parameters;
  const strides = parameters.map((_, i) =>
    parameters.slice(i + 1).reduce((n, p) => n * p.values.length, 1));
  const varied = parameters.map((_, i) => i).filter((i) => parameters[i].values.length > 1);
  const numeric = varied.filter((i) => parameters[i].numbers);
  // Rows and columns: two numbers if there are two, else what varies first.
  let axes = (numeric.length > 1 ? numeric : [...varied]).slice(0, 2);
  if (numeric.length === 1 && varied.length > 1) {
    axes = [varied.find((i) => i !== numeric[0]), numeric[0]];
  }
  const state = {
    measure: data.measure, group: data.group, fixed: parameters.map(() => 0), point: null,
    y: axes.length > 1 ? axes[0] : -1, x: axes.length > 1 ? axes[1] : axes[0] ?? 0,
    view: axes.length > 1 && numeric.length > 1 ? "map" : "lines",
  };
  const point = (y, x) => parameters.reduce((sum, _, i) =>
    sum + strides[i] * (i === state.y ? y : i === state.x ? x : state.fixed[i]), 0);

  // Where values stand: their logarithms, themselves, or one after the other.
  function places(i) {
    const p = parameters[i];
    // A zero before factors has no logarithm.
    if (!p.numbers || (p.log && p.numbers.some((n) => n <= 0))) return p.values.map((_, k) => k);
    return p.log ? p.numbers.map(Math.log10) : p.numbers;
  }
  function axis(i, more) {
    const p = parameters[i], at = places(i);
    // A label for as many values as there is room for.
    const every = Math.ceil(at.length / 16);
    const kept = at.map((_, k) => k).filter((k) => k % every === 0 || k === at.length - 1);
    return {
      title: { text: plain(p.name) }, tickmode: "array", tickvals: kept.map((k) => at[k]),
      ticktext: kept.map((k) => plain(p.values[k])), zeroline: false, automargin: true,
      gridcolor: css("--grid"), linecolor: css("--line"), color: css("--text"), ...more,
    };
  }
  const order = (i) => {
    const at = places(i);
    return at.map((_, k) => k).sort((a, b) => at[a] - at[b]);
  };

  // ---- what can be chosen ----------------------------------------------------------------------

  function choice(label, names, chosen, change) {
    const box = document.createElement("label"), select = document.createElement("select");
    box.append(label + " ", select);
    names.forEach(([value, name]) => {
      const option = document.createElement("option");
      option.value = value;
      option.textContent = name;
      option.selected = value === chosen;
      select.append(option);
    });
    select.addEventListener("change", () => {
      change(select.value);
      controls();
      draw();
    });
    byId("controls").append(box);
  }
  const numbered = (names) => names.map((n, i) => [i, n]);
  function controls() {
    byId("controls").replaceChildren();
    choice("Measure", numbered(data.measures.map((m) => m.title)), state.measure, (v) => {
      state.measure = +v;
    });
    if (data.groups.length > 1) {
      choice("of", numbered(data.groups), state.group, (v) => { state.group = +v; });
    }
    if (state.y >= 0) {
      choice("as", [["map", "map"], ["surface", "surface"], ["lines", "lines"]], state.view, (v) => {
        state.view = v;
      });
    }
    if (varied.length > 1) {
      const names = varied.map((i) => [i, parameters[i].name]);
      const swap = (one, other) => (v) => {
        if (+v === state[other]) state[other] = state[one];
        state[one] = +v;
      };
      choice("over", names, state.x, swap("x", "y"));
      choice("and", names, state.y, swap("y", "x"));
    }
    for (const i of varied.filter((v) => v !== state.x && v !== state.y)) {
      choice(parameters[i].name, numbered(parameters[i].values), state.fixed[i], (v) => {
        state.fixed[i] = +v;
      });
    }
    const m = data.measures[state.measure];
    byId("doc").textContent = m ? `${m.name}: ${m.doc}` : "";
  }

  // ---- the map ---------------------------------------------------------------------------------

  const titled = (m) => m.title + (m.unit ? `, ${m.unit}` : "");
  function told(p) {
    const m = data.measures[state.measure];
    const mean = m.mean[state.group][p];
    const low = m.low[state.group][p], high = m.high[state.group][p];
    return mean === null ? "–" : `${+mean.toPrecision(4)}` + (m.unit ? " " + m.unit : "") +
      (low === null ? "" : ` (${+low.toPrecision(4)} to ${+high.toPrecision(4)})`) +
      (data.deterministic[p] ? " (deterministic)" : "");
  }
  const label = (p) => parameters.map((q, i) =>
    `${q.name} = ${q.values[Math.floor(p / strides[i]) % q.values.length]}`);
  const hover = (p) => label(p).map(plain).join("<br>") + `<br><b>${told(p)}</b>`;

  function draw() {
    const m = data.measures[state.measure], element = byId("map");
    if (!m || !varied.length) {
      element.style.minHeight = 0;
      open(0);
      return;
    }
    const means = m.mean[state.group];
    const distance = (ends, p) => Math.abs((ends[state.group][p] ?? means[p]) - means[p]);
    const xs = order(state.x), at = places(state.x), x = xs.map((k) => at[k]);
    const rows = state.y < 0 ? [0] : order(state.y);
    const points = rows.map((r) => xs.map((k) => point(r, k)));
    const z = points.map((row) => row.map((p) => means[p]));
    const text = points.map((row) => row.map(hover));
    const bar = { title: { text: titled(m), side: "right" }, outlinewidth: 0, thickness: 14 };
    // A share between two is seen from its middle, anything else from its smallest value.
    const scale = m.middle === null ? { colorscale: "Viridis" } :
      { colorscale: "RdBu", [state.view === "surface" ? "cmid" : "zmid"]: m.middle };
    let traces, more;
    if (state.view === "lines" || state.y < 0) {
      const names = state.y < 0 ? [""] : rows.map((r) => parameters[state.y].values[r]);
      traces = points.map((row, i) => ({
        type: "scatter", mode: "lines+markers", x, y: z[i], name: plain(names[i]),
        line: { color: colour(i), width: 1.8 }, marker: { color: colour(i), size: 6 },
        error_y: {
          type: "data", symmetric: false, array: row.map((p) => distance(m.high, p)),
          arrayminus: row.map((p) => distance(m.low, p)), thickness: 1, width: 3,
          color: colour(i), visible: row.some((p) => m.low[state.group][p] !== null),
        },
        text: text[i], hovertemplate: "%{text}<extra></extra>", connectgaps: false,
      }));
      more = {
        xaxis: axis(state.x), showlegend: state.y >= 0,
        legend: state.y < 0 ? {} : { title: { text: plain(parameters[state.y].name) } },
        yaxis: {
          title: { text: titled(m) }, rangemode: "tozero", gridcolor: css("--grid"),
          zerolinecolor: css("--line"), automargin: true,
        },
      };
    } else {
      const ys = places(state.y), y = rows.map((r) => ys[r]);
      const common = { x, y, z, text, hovertemplate: "%{text}<extra></extra>", colorbar: bar, ...scale };
      if (state.view === "surface") {
        traces = [{
          type: "surface", ...common, hoverinfo: "text",
          contours: { x: { highlight: false }, y: { highlight: false }, z: { highlight: false } },
        }];
        const z3 = { title: { text: titled(m) }, gridcolor: css("--grid"), color: css("--text") };
        more = {
          height: 640, scene: {
            xaxis: axis(state.x), yaxis: axis(state.y), zaxis: z3,
            camera: { eye: { x: -1.5, y: -1.6, z: 0.9 } }, aspectmode: "cube",
          },
        };
      } else {
        const few = z.length * x.length <= 260;
        traces = [{
          type: "heatmap", ...common, xgap: 1, ygap: 1,
          ...(few ? { texttemplate: "%{z:.3~g}", textfont: { size: 10 } } : {}),
        }];
        more = { xaxis: axis(state.x, { showgrid: false }), yaxis: axis(state.y, { showgrid: false }) };
      }
    }
    element.dataset.view = state.y < 0 ? "lines" : state.view;
    Plotly.react(element, traces, chartLayout({
      height: 560, margin: { l: 70, r: 30, t: 24, b: 60 }, hovermode: "closest", ...more,
    }), options);
    if (!element.dataset.live) {
      element.dataset.live = "yes";
      element.on("plotly_click", (event) => {
        const hit = event.points[0];
        const { x, y, points } = element.shown;
        // Maps and surfaces number their points differently; where they stand is the same.
        const near = (at, value) => at.reduce((best, v, k) =>
          Math.abs(v - value) < Math.abs(at[best] - value) ? k : best, 0);
        const p = y ? points[near(y, hit.y)][near(x, hit.x)] :
          points[hit.curveNumber]?.[hit.pointNumber];
        if (p !== undefined) open(p);
      });
    }
    const lines = element.dataset.view === "lines";
    element.shown = { x, y: lines ? null : rows.map((r) => places(state.y)[r]), points };
  }

  // ---- one point -------------------------------------------------------------------------------

  const quoted = (word) => (/^[\w\-.,/=%:+@]+$/.test(word) ? word : `'${word.replace(/'/g, "'\\''")}'`);
  function open(p) {
    state.point = p;
    byId("name").textContent = varied.length ? label(p).join(", ") : "What happened";
    const vary = parameters.map((q, i) =>
      "--vary " + quoted(`${q.name}=${q.values[Math.floor(p / strides[i]) % q.values.length]}`));
    byId("again").hidden = false;
    byId("again").textContent =
      `${data.base} ${vary.join(" ")} --out point\nnarrows run point/scenario.toml --out point/run`;
    const trace = data.traces?.points[p];
    byId("hint").textContent = (data.measures[state.measure] ? `${told(p)}. ` : "") + (trace ?
      `Over time, seed ${data.seed}. These commands draw every flow of it:` :
      "No trace of it is in this page; these commands draw it:");
    const element = byId("trace");
    if (!trace) {
      Plotly.purge(element);
      return;
    }
    const time = (values) => values.map((_, i) => +(i * trace.step).toPrecision(7));
    const line = (values, name, i, yaxis, more) => ({
      type: "scatter", mode: "lines", x: time(values), y: values, name: plain(name), yaxis,
      line: { color: colour(i), width: 1.5, ...more }, hovertemplate: "%{y:.4~g}",
    });
    const rates = data.groups.map((name, g) => line(trace.lines[g], name, g, "y"));
    const n = data.groups.length;
    const queue = [
      line(trace.lines[n + 1], "longest queue", n, "y2", { width: 1, dash: "dot" }),
      line(trace.lines[n], "queue", n, "y2"),
    ];
    const y = (title, domain) => ({
      title: { text: title }, domain, rangemode: "tozero", gridcolor: css("--grid"), automargin: true,
      zerolinecolor: css("--line"),
    });
    Plotly.react(element, [...rates, ...queue], chartLayout({
      height: 460, margin: { l: 70, r: 20, t: 20, b: 44 }, hovermode: "x unified",
      legend: { orientation: "h", y: 1.08 },
      xaxis: { title: { text: "time, s" }, range: [0, data.end], gridcolor: css("--grid"), anchor: "y2" },
      yaxis: y("throughput, kbit/s", [0.42, 1]), yaxis2: y("queue, packets", [0, 0.36]),
      shapes: data.warmup > 0 ? [{
        type: "rect", x0: 0, x1: data.warmup, yref: "paper", y0: 0, y1: 1, layer: "below",
        fillcolor: css("--panel"), line: { width: 0 },
      }] : [],
    }), options);
  }

  // ---- when to draw ----------------------------------------------------------------------------

  controls();
  try {
    startLibrary();
    draw();
    dark.addEventListener("change", () => {
      draw();
      if (state.point !== null) open(state.point);
    });
  } catch (error) {
    console.error(error);
    byId("map").style.minHeight = 0;
    byId("doc").textContent =
      "The charts need a newer browser; points.csv has the numbers.";
  }
})();
