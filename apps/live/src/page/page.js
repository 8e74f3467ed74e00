// The page: what is drawn, and what is chosen.

const store = new Store();
const view = { window: [0, 1e6], follow: true, span: null, pointer: null, chosen: null, drag: null };
const MAX_DRAWN = 8;
let feed = { title: "live", runs: [] }, run = null, drawn = null, sequence = null, dirty = true, phase = "running";
const controls = new LinkControls(post, token), board = new Board();

// ---- frames --------------------------------------------------------------------------------------

function fail(text) {
  byId("message").textContent = text;
  byId("message").hidden = false;
}

function take(frame) {
  if (frame.feed) feed = frame.feed;
  if (frame.run !== undefined) run = frame.run;
  if (frame.board) board.take(frame.board);
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
  // Of a sweep there is no run, but a board.
  document.body.classList.toggle("swept", feed.runs.length === 0 && board.about !== null);
  if (feed.runs.length === 0 && board.about) {
    const over = board.done >= board.about.runs;
    byId("state").textContent = phase === "gone" ? "ended or out of reach" : `${over ? "done" : "live"} · ${board.done} runs`;
    byId("dot").className = phase === "gone" ? "off" : "on";
    return;
  }
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
// A simulated flow is drawn like the real one beside it.
const realOf = (n) => {
  const flows = flowsOf(), own = flows.filter(({ track }) => track.simulated).findIndex((f) => f.n === n);
  return own < 0 ? n : flows.filter(({ track }) => !track.simulated)[own]?.n ?? n;
};
const slotOf = (n) => drawn?.get(realOf(n)) ?? drawn?.get(n) ?? 0;
const styleOf = (n) => ({ colour: colourOf(slotOf(n)), dash: store.tracks[n]?.simulated ? BESIDE : dashOf(slotOf(n)) });
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
    // Flows that came later are drawn while there is room and the user has chosen none.
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
    if (drawn.has(n)) button.prepend(sample({ ...styleOf(n), width: 3 }));
    return button;
  }));
}

// ---- events --------------------------------------------------------------------------------------

const LISTED = 150;
// Whether two events differ only in small steps of their figures, as the phases of a gain cycle do.
function isRepetition(former, event) {
  const figures = /\d+(\.\d+)?/g;
  const words = (e) => e.title.replace(figures, "#");
  const numbers = (e) => (e.title.match(figures) ?? []).map(Number);
  const old = numbers(former);
  return former.track === event.track && former.mark === event.mark && former.why[0] === event.why[0]
    && words(former) === words(event) && numbers(event).every((x, n) => Math.abs(x - old[n]) <= 0.1 * old[n]);
}
function grouped(events) {
  const groups = [];
  for (const event of events) {
    const last = groups.at(-1);
    if (last && isRepetition(last.at(-1), event)) last.push(event);
    else groups.push([event]);
  }
  return groups;
}
function showEvents() {
  const [from, to] = view.window;
  const all = visibleEvents();
  const near = view.follow ? all : all.filter((e) => e.t >= from && e.t <= to);
  const list = grouped(near).slice(-LISTED).reverse();
  keepFocus(byId("events"), list.map((group) => {
    const event = group.at(-1), at = group.indexOf(view.chosen);
    const item = document.createElement("li"), button = document.createElement("button");
    button.type = "button";
    button.setAttribute("aria-pressed", at >= 0);
    const sign = document.createElement("span"), time = document.createElement("time"), text = document.createElement("span");
    sign.textContent = MARKS[event.mark];
    sign.style.color = markInk(event);
    time.textContent = seconds(event.t, 2);
    text.textContent = group.length > 1 ? `${event.title}, ${group.length} times since ${seconds(group[0].t, 2)}` : event.title;
    button.append(sign, time, text);
    // Further clicks go back through the repetitions.
    button.addEventListener("click", () => choose(at > 0 ? group[at - 1] : event));
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
  looked(view.window);
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
  looked(bounds());
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
  byId("empty").hidden = store.tracks.length > 0 || board.about !== null;
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
  board.draw();
  if (drawn !== null) showFlows();
  showEvents();
  dirty = true;
}
dark.addEventListener("change", recolour);
addEventListener("resize", () => { dirty = true; });
readInk();
connect();
draw();
