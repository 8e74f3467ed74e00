// The page: what is drawn, what is chosen, and the stream of updates.

const token = new URLSearchParams(location.search).get("token") ?? "";
const store = new Store();
const view = { window: [0, 1e6], follow: true, span: null, pointer: null, chosen: null, drag: null };
const MAX_DRAWN = 8;
let feed = { title: "live", runs: [] }, run = null, drawn = null, sequence = null, source = null, dirty = true, phase = "running";
const controls = new LinkControls(post, token);

async function post(order) {
  const answer = await fetch("/link", {
    method: "POST", headers: { "x-narrows-token": token, "content-type": "application/json" }, body: JSON.stringify(order),
  });
  return [answer.ok, (await answer.text()).trim().replace(/^narrows: /, "")];
}

// ---- the stream ----------------------------------------------------------------------------------

function connect() {
  source?.close();
  const query = new URLSearchParams({ token });
  if (run !== null) query.set("run", run);
  // At first only what there is.
  query.set("flows", [...(drawn?.keys() ?? [])].join("."));
  if (sequence !== null) query.set("packets", sequence);
  source = new EventSource(`/events?${query}`);
  // Whoever begins anew is told everything.
  source.onopen = () => { store.clear(); byId("message").hidden = true; };
  source.onmessage = (event) => take(JSON.parse(event.data));
  source.addEventListener("links", (event) => controls.take(JSON.parse(event.data)));
  source.onerror = () => {
    phase = phase === "running" ? "gone" : phase;
    if (source.readyState === EventSource.CLOSED) fail("The command does not answer, or the token is wrong: open the address that it printed.");
    status();
  };
}

function fail(text) {
  byId("message").textContent = text;
  byId("message").hidden = false;
}

function take(frame) {
  if (frame.feed) feed = frame.feed;
  if (frame.run !== undefined) run = frame.run;
  store.take(frame);
  if (frame.phase) phase = frame.phase;
  if (frame.feed) showRuns();
  if (frame.tracks) showFlows();
  if (frame.events) {
    const { chosen } = view;
    if (chosen) view.chosen = store.events.find((e) => e.t === chosen.t && e.title === chosen.title) ?? chosen;
    showEvents();
  }
  status();
  dirty = true;
}

function status() {
  const now = feed.runs.find((r) => r.id === run);
  const of = now?.end ? ` of ${+now.end.toPrecision(6)} s` : "";
  const words = { running: "live", done: "done", gone: "ended or out of reach" };
  byId("state").textContent = `${words[phase] ?? phase} · ${(store.now / 1e6).toFixed(1)} s${of}`;
  byId("dot").className = phase === "running" || phase === "done" ? "on" : "off";
}

// ---- what can be chosen --------------------------------------------------------------------------

const chip = (text, pressed, act) => {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = text;
  button.setAttribute("aria-pressed", pressed);
  button.addEventListener("click", act);
  return button;
};

function showRuns() {
  byId("title").textContent = feed.title.replace(/^narrows /, "");
  document.title = `${feed.title} · live`;
  const now = feed.runs.find((r) => r.id === run);
  byId("detail").textContent = now?.detail ?? "";
  byId("runs").hidden = feed.runs.length < 2;
  const chips = feed.runs.map((r) => chip(r.name + (r.real ? " (real)" : ""), r.id === run, () => {
    [run, drawn, sequence, view.chosen] = [r.id, null, null, null];
    store.clear();
    showWhy();
    connect();
  }));
  keepFocus(byId("runs"), chips);
}

// New buttons where the focus stays on the one that was used.
function keepFocus(group, chips) {
  const at = [...group.children].indexOf(document.activeElement);
  group.replaceChildren(...chips);
  if (at >= 0) chips[at]?.focus();
}

const flowsOf = () => store.of("flow");
const slotOf = (n) => drawn?.get(n) ?? 0;
const freeSlot = () => {
  for (let slot = 0; ; slot += 1) if (![...drawn.values()].includes(slot)) return slot;
};

function showFlows() {
  const flows = flowsOf();
  if (drawn === null && flows.length) {
    drawn = new Map(flows.slice(0, MAX_DRAWN).map(({ n }, slot) => [n, slot]));
    sequence = store.packetFlows?.find((n) => drawn.has(n)) ?? flows[0].n;
    connect();
    return;
  }
  if (drawn !== null && drawn.size < Math.min(MAX_DRAWN, flows.length) && !view.picked) {
    // Flows that came later are drawn as long as nobody has chosen and there is room.
    for (const { n } of flows.slice(0, MAX_DRAWN)) if (!drawn.has(n)) drawn.set(n, freeSlot());
    connect();
    return;
  }
  byId("flows").hidden = flows.length < 2;
  keepFocus(byId("flows"), flows.map(({ track, n }) => {
    const button = chip(track.name, drawn.has(n), () => {
      view.picked = true;
      if (!drawn.delete(n)) {
        drawn.set(n, freeSlot());
        sequence = n;
      } else if (sequence === n) {
        sequence = [...drawn.keys()][0] ?? null;
      }
      connect();
    });
    if (drawn.has(n)) button.prepend(sample({ colour: colourOf(slotOf(n)), dash: dashOf(slotOf(n)), width: 3 }));
    return button;
  }));
}

// ---- the charts ----------------------------------------------------------------------------------

const lineOf = (track, name, scale, style) => {
  const v = columnOf(track, name);
  return v?.some((x) => x !== null) ? [{ t: track.t, v, scale, label: track.name, ...style }] : [];
};
// The mean over a span of time: what arrives between two samples is a few packets or none.
const smoothed = (line) => {
  const [from, to] = view.window, half = Math.max(50_000, (to - from) / 300), { t, v } = line;
  const begin = firstAt(t, from - 2 * half), end = Math.min(t.length, firstAt(t, to + 2 * half) + 1);
  const times = t.slice(begin, end), values = v.slice(begin, end), out = [];
  let [low, high, sum, count] = [0, 0, 0, 0];
  for (const time of times) {
    for (; high < times.length && times[high] <= time + half; high += 1) if (values[high] !== null) { sum += values[high]; count += 1; }
    for (; times[low] < time - half; low += 1) if (values[low] !== null) { sum -= values[low]; count -= 1; }
    out.push(count ? sum / count : null);
  }
  return { ...line, t: times, v: out };
};
const drawnFlows = () => flowsOf().filter(({ n }) => drawn?.has(n));
const perFlow = (make) => drawnFlows().flatMap(({ track, n }) =>
  make(track, { colour: colourOf(slotOf(n)), dash: dashOf(slotOf(n)) }, n));
const links = () => store.of("link");
const grey = (more) => ({ colour: ink.quiet, ...more });
const has = (name) => drawnFlows().some(({ track }) => columnOf(track, name)?.some((x) => x !== null));

// Marks for a flow's count column: each flow has a row of its own at the top.
// Where flows are not told apart, each direction of the link has one.
function lossMarks() {
  const flows = drawnFlows(), rows = flows.length ? flows : links();
  const [from, to] = view.window, marks = [];
  rows.forEach(({ track, n }, row) => {
    const names = flows.length ? ["queue_drops", "link_losses"] : ["drops", "losses"];
    for (const [name, symbol] of [[names[0], "cross"], [names[1], "ring"]]) {
      const counts = columnOf(track, name);
      if (!counts) continue;
      let last = -Infinity;
      const gap = (to - from) / 400;
      for (let i = firstAt(track.t, from); i < track.t.length && track.t[i] <= to; i += 1) {
        if (counts[i] > 0 && track.t[i] - last > gap) {
          marks.push({ t: track.t[i], row: row % 8, colour: flows.length ? colourOf(slotOf(n)) : ink.text, symbol });
          last = track.t[i];
        }
      }
    }
  });
  return marks;
}

const DIRECTION_DASH = [[], [6, 4]];
const queueChart = {
  title: () => "Queue, and whom it drops", unit: "packets", height: 150,
  lines: () => links().flatMap(({ track }, i) => lineOf(track, "queue", 1,
    { colour: ink.strong, dash: DIRECTION_DASH[i % 2], area: i === 0, width: 1.4, label: track.name })),
  marks: lossMarks, room: () => 0.12 + 0.07 * Math.min(8, drawnFlows().length || links().length),
  keys: () => [
    ...links().map(({ track }, i) => ({ colour: ink.strong, dash: DIRECTION_DASH[i % 2], label: track.name })),
    { colour: ink.text, symbol: "cross", label: "dropped by the queue" },
    { colour: ink.text, symbol: "ring", label: "lost on the link" },
  ],
};
const rateChart = {
  title: () => "Rates", unit: "Mbit/s", height: 165,
  lines: () => [
    ...links().slice(0, 2).flatMap(({ track }, i) => i === 0 || has("offered_bps") || !drawnFlows().length
      ? lineOf(track, "capacity_bps", 1e-6, grey({ dash: [2, 3], step: true, label: `link ${track.name}` })) : []),
    ...(drawnFlows().length ? [] : links().flatMap(({ track }, i) => lineOf(track, "throughput_bps", 1e-6,
      { colour: ink.strong, dash: DIRECTION_DASH[i % 2], label: track.name }).map(smoothed))),
    ...perFlow((track, style) => [
      ...lineOf(track, "throughput_bps", 1e-6, { ...style, width: 1.1, alpha: 0.75, label: `${track.name} arrives` }).map(smoothed),
      ...lineOf(track, "bandwidth_bps", 1e-6, { ...style, dash: [6, 4], width: 1.6 }),
      ...lineOf(track, "pacing_bps", 1e-6, { ...style, width: 1.8 }),
    ]),
  ],
  keys: () => [
    ...(has("pacing_bps") ? [{ colour: ink.text, label: "pacing rate" }] : []),
    ...(has("bandwidth_bps") ? [{ colour: ink.text, dash: [6, 4], label: "bandwidth estimate" }] : []),
    ...(drawnFlows().length ? [{ colour: ink.text, width: 1, label: "arrives" }] : links().map(({ track }, i) =>
      ({ colour: ink.strong, dash: DIRECTION_DASH[i % 2], label: `arrives ${track.name}` }))),
    { colour: ink.quiet, dash: [2, 3], label: "the link's rate" },
  ],
};
const windowChart = {
  title: () => "cwnd", unit: "packets", height: 150,
  lines: () => perFlow((track, style) => [
    ...lineOf(track, "in_flight", 1, { ...style, width: 1, alpha: 0.5 }),
    ...lineOf(track, "ssthresh", 1, { ...style, dash: [2, 3], width: 1.2 }),
    ...lineOf(track, "cwnd", 1, { ...style, width: 1.8 }),
  ]),
  keys: () => [
    { colour: ink.text, label: "cwnd" },
    ...(has("ssthresh") ? [{ colour: ink.text, dash: [2, 3], label: "ssthresh" }] : []),
    { colour: ink.text, width: 1, label: "in flight" },
  ],
};
const rttChart = {
  title: () => (has("rtt_s") ? "Round-trip time" : "Delay in the queue"), unit: "ms", height: 130,
  lines: () => [
    ...perFlow((track, style) => lineOf(track, "rtt_s", 1e3, { ...style, gaps: false })),
    ...links().flatMap(({ track }, i) => lineOf(track, "queue_delay_s", 1e3, { colour: ink.strong, dash: DIRECTION_DASH[i % 2] })),
  ],
  keys: () => (has("rtt_s") ? [] : links().map(({ track }, i) => ({ colour: ink.strong, dash: DIRECTION_DASH[i % 2], label: track.name }))),
};
const PACKETS = ["dot", "dot", "up", "cross", "ring"];
const packetInk = (kind) => [ink.strong, colourOf(2), colourOf(5), colourOf(1), colourOf(3)][kind];
const sequenceTrack = () => store.tracks[sequence];
const sequenceChart = {
  title: () => `Sequence of ${sequenceTrack()?.name ?? ""}`, unit: "packet numbers", height: 230,
  lines: () => {
    const track = sequenceTrack();
    if (!track || !columnOf(track, "sent")) return [];
    return [
      ...lineOf(track, "sent", 1, { colour: packetInk(0), width: 1, label: "sent" }),
      ...lineOf(track, "acked", 1, { colour: packetInk(1), width: 1, step: true, label: "acknowledged" }),
    ];
  },
  range: () => {
    const track = sequenceTrack(), [from, to] = view.window;
    let [low, high] = [Infinity, -Infinity];
    for (const name of ["acked", "sent"]) {
      const v = track && columnOf(track, name);
      if (!v) continue;
      const end = Math.min(track.t.length, firstAt(track.t, to) + 1);
      for (let i = Math.max(0, firstAt(track.t, from) - 1); i < end; i += 1) {
        if (v[i] !== null) [low, high] = [Math.min(low, v[i]), Math.max(high, v[i])];
      }
    }
    if (!(high > low)) return [0, Math.max(1, high)];
    const room = 0.04 * (high - low);
    return [Math.max(0, low - room), high + room];
  },
  marks: () => {
    if (store.packets.track !== sequence) return [];
    const { p } = store.packets, [from, to] = view.window, points = [];
    const colours = [0, 1, 2, 3, 4].map(packetInk);
    // Dots only where they can be told apart from the lines.
    let ordinary = 0;
    for (let i = 0; i < p.length; i += 3) if (p[i + 2] < 2 && p[i] >= from && p[i] <= to) ordinary += 1;
    for (let i = 0; i < p.length; i += 3) {
      const kind = p[i + 2];
      if (p[i] < from || p[i] > to || (kind < 2 && ordinary > 4000)) continue;
      points.push({ t: p[i], v: p[i + 1], symbol: PACKETS[kind], colour: colours[kind], kind });
    }
    return points.sort((a, b) => a.kind - b.kind);
  },
  keys: () => ["sent", "acknowledged", "sent again", "dropped by the queue", "lost on the link"].map((label, kind) =>
    ({ colour: packetInk(kind), symbol: PACKETS[kind], label })),
};

const MARKS = { slower: "▼", state: "◆", timeout: "■", link: "⚑" };
const laneChart = {
  title: () => "Events", height: 46, always: true, lines: () => [], range: () => [0, 1],
  keys: () => [["▼", "slowed down"], ["◆", "controller's state"], ["■", "timeout"], ["⚑", "link changed"]]
    .map(([sign, label]) => ({ label: `${sign} ${label}` })),
};

class Lane extends Chart {
  axes() {}
  line() {}
  overlays(c, view, plot, x) {
    c.fillStyle = ink.panel;
    c.fillRect(plot.x, plot.y, plot.w, plot.h);
    super.overlays(c, view, plot, x);
    c.font = "13px system-ui, sans-serif";
    c.textAlign = "center";
    c.textBaseline = "middle";
    for (const event of visibleEvents()) {
      const px = x(event.t);
      if (px < plot.x || px > plot.x + plot.w) continue;
      c.fillStyle = event === view.chosen ? ink.strong : markInk(event);
      c.font = event === view.chosen ? "bold 17px system-ui" : "12px system-ui";
      c.fillText(MARKS[event.mark], px, plot.y + plot.h / 2);
    }
  }
  describe() {
    this.canvas.setAttribute("aria-label", `${visibleEvents().length} events; the list beside the charts has them`);
  }
}
const markInk = (event) => (event.mark === "link" || !drawn?.has(event.track) ? ink.text : colourOf(slotOf(event.track)));
const visibleEvents = () => store.events.filter((e) => e.mark === "link" || drawn === null || drawn.has(e.track));

const area = byId("charts");
const charts = [new Lane(area, laneChart),
  ...[queueChart, rateChart, windowChart, rttChart, sequenceChart].map((spec) => new Chart(area, spec))];
charts[0].box.classList.add("lane");

// ---- events --------------------------------------------------------------------------------------

const LISTED = 150;
function showEvents() {
  const [from, to] = view.window;
  const all = visibleEvents();
  const near = view.follow ? all : all.filter((e) => e.t >= from && e.t <= to);
  const list = near.slice(-LISTED).reverse();
  keepFocus(byId("events"), list.map((event) => {
    const item = document.createElement("li"), button = document.createElement("button");
    button.type = "button";
    button.setAttribute("aria-pressed", event === view.chosen);
    const sign = document.createElement("span"), time = document.createElement("time"), text = document.createElement("span");
    sign.textContent = MARKS[event.mark];
    sign.style.color = markInk(event);
    time.textContent = seconds(event.t, 2);
    text.textContent = event.title;
    button.append(sign, time, text);
    button.addEventListener("click", () => choose(event));
    item.append(button);
    return item;
  }));
}

function choose(event) {
  view.chosen = event;
  if (event && (event.t < view.window[0] || event.t > view.window[1])) {
    const half = (view.window[1] - view.window[0]) / 2;
    look(event.t - half, event.t + half);
  }
  showWhy();
  showEvents();
  dirty = true;
}

function showWhy() {
  const event = view.chosen, why = byId("why");
  if (!event) {
    const hint = document.createElement("p");
    hint.className = "quiet";
    hint.textContent = "Choose an event: a mark above the charts, a line below, or the key e.";
    why.replaceChildren(hint);
    return;
  }
  const title = document.createElement("b"), where = document.createElement("p"), list = document.createElement("ul");
  title.textContent = `${MARKS[event.mark]} ${event.title}`;
  where.className = "quiet";
  where.textContent = `${store.tracks[event.track]?.name ?? ""} at ${seconds(event.t)}`;
  list.append(...event.why.map((sentence) => {
    const item = document.createElement("li");
    item.textContent = sentence;
    return item;
  }));
  why.replaceChildren(title, where, list);
}

const step = (by) => {
  const all = visibleEvents();
  if (!all.length) return;
  const at = all.indexOf(view.chosen);
  choose(all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + by))]);
};

// ---- time ----------------------------------------------------------------------------------------

const SHORTEST = 2000, RECENT = 60e6;
const bounds = () => {
  const first = store.first ?? 0;
  return [first, Math.max(store.now, first + 1000)];
};

// Looks at a window of time; whoever does is no longer taken to the newest.
function look(from, to) {
  const [first, last] = bounds();
  const span = Math.min(last - first, Math.max(SHORTEST, to - from));
  const begin = Math.min(Math.max(first, from), last - span);
  view.follow = false;
  view.span = span;
  view.window = [begin, begin + span];
  dirty = true;
}
function follow(on) {
  view.follow = on;
  dirty = true;
}
function zoom(factor, at) {
  const [from, to] = view.window, middle = at ?? (view.follow ? to : (from + to) / 2);
  if (view.follow && at === undefined) {
    view.span = Math.max(SHORTEST, (to - from) * factor);
    const [first, last] = bounds();
    if (view.span > last - first) view.span = null;
    dirty = true;
    return;
  }
  look(middle - (middle - from) * factor, middle + (to - middle) * factor);
}
function everything() {
  view.span = null;
  view.all = true;
  follow(true);
}

byId("follow").addEventListener("click", () => follow(!view.follow));
byId("in").addEventListener("click", () => zoom(0.5));
byId("out").addEventListener("click", () => zoom(2));
byId("all").addEventListener("click", everything);
byId("scrub").addEventListener("input", () => {
  const [first, last] = bounds(), span = view.window[1] - view.window[0];
  const end = first + span + (last - first - span) * byId("scrub").value / 1000;
  look(end - span, end);
});

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
  const [from, to] = view.window, shift = (to - from) / 5;
  const acts = {
    ArrowLeft: () => look(from - shift, to - shift), ArrowRight: () => look(from + shift, to + shift),
    "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), 0: everything, f: () => follow(!view.follow),
    e: () => step(1), E: () => step(-1), Escape: () => choose(null),
  };
  if (!acts[event.key]) return;
  event.preventDefault();
  acts[event.key]();
});

for (const chart of charts) {
  const canvas = chart.canvas;
  canvas.addEventListener("pointermove", (event) => {
    view.pointer = chart.timeAt(event, view);
    if (view.drag) view.drag[1] = view.pointer;
    dirty = true;
  });
  canvas.addEventListener("pointerleave", () => { view.pointer = null; dirty = true; });
  canvas.addEventListener("pointerdown", (event) => {
    const at = chart.timeAt(event, view);
    if (at === null || event.pointerType === "touch") return;
    canvas.setPointerCapture(event.pointerId);
    view.drag = [at, at];
  });
  canvas.addEventListener("pointerup", (event) => {
    const at = chart.timeAt(event, view), drag = view.drag;
    view.drag = null;
    dirty = true;
    const [from, to] = view.window, near = (to - from) / 60;
    if (drag && Math.abs(drag[1] - drag[0]) > near / 2) return look(Math.min(...drag), Math.max(...drag));
    // A click asks: why here? The nearest event answers.
    const reach = chart === charts[0] ? 3 * near : near;
    const nearest = visibleEvents().reduce((best, e) =>
      (Math.abs(e.t - at) < Math.abs((best?.t ?? Infinity) - at) ? e : best), null);
    choose(nearest && Math.abs(nearest.t - at) <= reach ? nearest : null);
  });
  canvas.addEventListener("dblclick", everything);
}

// ---- drawing -------------------------------------------------------------------------------------

let listedWindow = "";
function draw() {
  requestAnimationFrame(draw);
  if (!dirty) return;
  dirty = false;
  const [first, last] = bounds();
  if (view.follow) {
    const real = feed.runs.find((r) => r.id === run)?.real;
    const span = view.span ?? (real && !view.all ? Math.min(RECENT, last - first) : last - first);
    view.window = [Math.max(first, last - span), last];
  }
  const [from, to] = view.window;
  byId("empty").hidden = store.tracks.length > 0;
  for (const chart of charts) {
    if (store.tracks.length) chart.draw(view); else chart.box.hidden = true;
  }
  byId("follow").setAttribute("aria-pressed", view.follow);
  if (document.activeElement !== byId("scrub")) {
    const free = last - first - (to - from);
    byId("scrub").value = free > 0 ? 1000 * (from - first) / free : 1000;
  }
  byId("time").textContent = view.pointer !== null ? `at ${seconds(view.pointer)}` : `${(from / 1e6).toFixed(1)} to ${(to / 1e6).toFixed(1)} s`;
  const shown = view.follow ? "" : `${Math.round(from / 1e5)} ${Math.round(to / 1e5)}`;
  if (shown !== listedWindow) { listedWindow = shown; showEvents(); }
}

const themes = ["", "light", "dark"];
let theme = 0;
byId("theme").addEventListener("click", () => {
  theme = (theme + 1) % themes.length;
  if (themes[theme]) document.documentElement.dataset.theme = themes[theme];
  else delete document.documentElement.dataset.theme;
  byId("theme").textContent = `Theme: ${themes[theme] || "system"}`;
  recolour();
});
function recolour() {
  readInk();
  if (drawn !== null) showFlows();
  showEvents();
  dirty = true;
}
dark.addEventListener("change", recolour);
addEventListener("resize", () => { dirty = true; });
readInk();
connect();
draw();
