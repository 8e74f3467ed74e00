// What each chart draws.

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
  make(track, styleOf(n), n));
const links = () => store.of("link");
const beside = () => drawnFlows().some(({ track }) => track.simulated);
const grey = (more) => ({ colour: ink.quiet, ...more });
const has = (name) => drawnFlows().some(({ track }) => columnOf(track, name)?.some((x) => x !== null));

// Marks for a flow's count columns: each flow has a row of its own at the top, and where the link is seen, each of its directions
// that its flows' losses are not told of.
const COUNTS = [["queue_drops", "cross"], ["link_losses", "ring"], ["drops", "cross"], ["losses", "ring"], ["lost", "up"]];
const seesLosses = ({ track }) => columnOf(track, "queue_drops") !== null;
const markRows = () => {
  const flows = plays() ? [] : drawnFlows(), told = flows.filter(seesLosses);
  return (told.some(({ track }) => !track.simulated) ? [] : links().filter(({ track }) => !track.simulated)).concat(flows);
};
function lossMarks() {
  const [from, to] = view.window, marks = [];
  markRows().forEach(({ track, n }, row) => {
    for (const [name, symbol] of COUNTS) {
      const counts = columnOf(track, name);
      if (!counts) continue;
      let last = -Infinity;
      const gap = (to - from) / 400;
      for (let i = firstAt(track.t, from); i < track.t.length && track.t[i] <= to; i += 1) {
        if (counts[i] > 0 && track.t[i] - last > gap) {
          marks.push({ t: track.t[i], row: row % 8, colour: track.kind === "flow" ? colourOf(slotOf(n)) : ink.text, symbol });
          last = track.t[i];
        }
      }
    }
  });
  return marks;
}

// Of media: what is late or lost, in a row for each kind.
const media = () => store.of("media").map(({ track }) => track);
const MEDIA_COUNTS = [["stalls", "square", "the picture stood", 1], ["late_frames", "cross", "frame late", 1], ["delayed", "up", "handed out after its time", 5],
  ["dropped", "cross", "dropped before its deadline", 1], ["late", "ring", "late at the receiver", 3]];
const mediaCounts = (track) => MEDIA_COUNTS.filter(([name]) => columnOf(track, name)).map(([name, symbol, label, slot]) => ({ name, symbol, label, colour: colourOf(slot) }));
function mediaMarks() {
  const [from, to] = view.window, gap = (to - from) / 400, marks = [];
  for (const track of media()) {
    mediaCounts(track).forEach(({ name, symbol, colour }, row) => {
      const counts = columnOf(track, name);
      let last = -Infinity;
      for (let i = firstAt(track.t, from); i < track.t.length && track.t[i] <= to; i += 1) {
        if (!(counts[i] > 0) || track.t[i] - last <= gap) continue;
        marks.push({ t: track.t[i], row, colour, symbol });
        last = track.t[i];
      }
    });
  }
  return marks;
}
const mediaLine = (name, scale, style) => media().flatMap((track) => lineOf(track, name, scale, style));
// Whoever receives media sends requests alone: their window and pacing rate would be taken for those of the media.
const plays = () => media().some((track) => columnOf(track, "frame_delay_s"));
// To whoever sends them nothing comes but requests.
const sends = () => media().length > 0 && !plays();
const frameChart = {
  title: () => (plays() ? "Frame delay beyond the path's shortest" : "Wait of packets before they leave"), unit: "ms", height: 150,
  lines: () => [
    ...mediaLine("latency_s", 1e3, grey({ dash: [6, 4], step: true, label: "latency allowed" })),
    ...mediaLine("longest_wait_s", 1e3, grey({ dash: [6, 4], step: true, label: "longest wait allowed" })),
    ...mediaLine("frame_delay_s", 1e3, { colour: ink.strong, width: 1.4, gaps: false, label: "frame delay" }),
    ...mediaLine("waiting_s", 1e3, { colour: ink.strong, width: 1.4, area: true, label: "oldest packet's wait" }),
  ],
  marks: mediaMarks, room: () => 0.3,
  keys: () => [
    { colour: ink.strong, label: plays() ? "longest of each 50 ms" : "oldest packet" },
    { colour: ink.quiet, dash: [6, 4], label: plays() ? "latency allowed" : "longest wait allowed" },
    ...media().flatMap(mediaCounts),
  ],
};
const layerChart = {
  title: () => "Layers", height: 90,
  lines: () => (media().some((track) => columnOf(track, "layers")?.some((x) => x > 1))
    ? mediaLine("layers", 1, { colour: ink.strong, step: true, width: 1.8, label: "layers" }) : []),
};

const DIRECTION_DASH = [[], [6, 4]];
// What is simulated beside something real has the colour of that, and short dashes.
const BESIDE = [3, 3];
const directionStyle = (track, i) => ({ dash: track.simulated ? BESIDE : DIRECTION_DASH[i % 2] });
const queueChart = {
  title: () => (links().length ? "Queue, and whom it drops, packets" : "Losses"),
  get height() { return links().length ? 150 : 48; },
  lines: () => links().flatMap(({ track }, i) => lineOf(track, "queue", 1,
    { colour: ink.strong, ...directionStyle(track, i), area: i === 0, width: 1.4, label: track.name })),
  marks: lossMarks, room: () => 0.12 + 0.07 * Math.min(8, markRows().length),
  keys: () => [
    ...links().map(({ track }, i) => ({ colour: ink.strong, ...directionStyle(track, i), label: track.name })),
    ...(markRows().some(({ track }) => columnOf(track, "drops") || columnOf(track, "queue_drops")) ? [
      { colour: ink.text, symbol: "cross", label: "dropped by the queue" },
      { colour: ink.text, symbol: "ring", label: "lost on the link" }] : []),
    ...(markRows().some(({ track }) => columnOf(track, "lost")) ? [{ colour: ink.text, symbol: "up", label: "found lost by the sender" }] : []),
  ],
};
// Of one flow beside media, whose lines have the text's colour, the legend has its colour.
const keyInk = () => (media().length && drawnFlows().length === 1 ? colourOf(slotOf(drawnFlows()[0].n)) : ink.text);
const rateChart = {
  title: () => "Rates", unit: "Mbit/s", height: 165,
  lines: () => [
    ...links().slice(0, 2).flatMap(({ track }, i) => i === 0 || (links().length === 2 && has("offered_bps")) || !drawnFlows().length
      ? lineOf(track, "capacity_bps", 1e-6, grey({ dash: [2, 3], step: true, label: `link ${track.name}` })) : []),
    ...(drawnFlows().length ? [] : links().flatMap(({ track }, i) => lineOf(track, "throughput_bps", 1e-6,
      { colour: ink.strong, dash: DIRECTION_DASH[i % 2], label: track.name }).map(smoothed))),
    ...perFlow((track, style) => [
      ...(sends() ? [] : lineOf(track, "throughput_bps", 1e-6, { ...style, width: 1.1, alpha: 0.75, label: `${track.name} arrives` }).map(smoothed)),
      ...(track.simulated || plays() ? [] : lineOf(track, "bandwidth_bps", 1e-6, { ...style, dash: [6, 4], width: 1.6 })),
      ...(plays() ? [] : lineOf(track, "pacing_bps", 1e-6, { ...style, width: 1.8 })),
    ]),
    ...mediaLine("source_bps", 1e-6, { colour: ink.text, width: 1.1, label: "the encoder sends" }),
    ...mediaLine("told_bps", 1e-6, { colour: ink.text, width: 1.8, step: true, dash: [2, 3], label: "told to the encoder" }),
    ...mediaLine("played_bps", 1e-6, { colour: ink.text, width: 1.6, label: "media handed out" }).map(smoothed),
    ...mediaLine("tear_bps", 1e-6, { colour: ink.text, width: 1.6, dash: [6, 4], label: "TEAR's rate" }),
  ],
  keys: () => [
    ...(has("pacing_bps") && !plays() ? [{ colour: keyInk(), label: "pacing rate" }] : []),
    ...(has("bandwidth_bps") && !plays() ? [{ colour: keyInk(), dash: [6, 4], label: "bandwidth estimate" }] : []),
    ...(sends() ? [] : drawnFlows().length ? [{ colour: keyInk(), width: 1, label: "arrives" }] : links().map(({ track }, i) =>
      ({ colour: ink.strong, dash: DIRECTION_DASH[i % 2], label: `arrives ${track.name}` }))),
    ...(links().length ? [{ colour: ink.quiet, dash: [2, 3], label: "the link's rate" }] : []),
    ...(beside() ? [{ colour: ink.text, dash: BESIDE, label: "simulated" }] : []),
    ...[["told_bps", [2, 3], 2, "told to the encoder"], ["source_bps", [], 1, "the encoder sends"], ["played_bps", [], 1.6, "media handed out"],
      ["tear_bps", [6, 4], 1.6, "TEAR's rate"]].filter(([name]) => mediaLine(name, 1, {}).length)
      .map(([, dash, width, label]) => ({ colour: ink.text, dash, width, label })),
  ],
};
const windowChart = {
  title: () => "cwnd", unit: "packets", height: 150,
  lines: () => (plays() ? [] : perFlow((track, style) => [
    ...(track.simulated ? [] : lineOf(track, "in_flight", 1, { ...style, width: 1, alpha: 0.5 })),
    ...(track.simulated ? [] : lineOf(track, "ssthresh", 1, { ...style, dash: [2, 3], width: 1.2 })),
    ...lineOf(track, "cwnd", 1, { ...style, width: 1.8 }),
  ])),
  keys: () => [
    { colour: ink.text, label: "cwnd" },
    ...(beside() ? [{ colour: ink.text, dash: BESIDE, label: "simulated" }] : []),
    ...(has("ssthresh") ? [{ colour: ink.text, dash: [2, 3], label: "ssthresh" }] : []),
    { colour: ink.text, width: 1, label: "in flight" },
  ],
};
const rttChart = {
  title: () => (has("rtt_s") ? "Round-trip time" : "Delay in the queue"), unit: "ms", height: 130,
  lines: () => [
    ...perFlow((track, style) => lineOf(track, "rtt_s", 1e3, { ...style, gaps: false })),
    ...(has("rtt_s") ? [] : links()).flatMap(({ track }, i) => lineOf(track, "queue_delay_s", 1e3, { colour: ink.strong, ...directionStyle(track, i) })),
  ],
  keys: () => (has("rtt_s") ? (beside() ? [{ colour: ink.text, dash: BESIDE, label: "simulated" }] : []) : links().map(({ track }, i) => ({ colour: ink.strong, dash: DIRECTION_DASH[i % 2], label: track.name }))),
};
const PACKETS = ["dot", "dot", "up", "cross", "ring"];
const packetInk = (kind) => [ink.strong, colourOf(2), colourOf(5), colourOf(1), colourOf(3)][kind];
const sequenceTrack = () => store.tracks[sequence];
const sequenceChart = {
  title: () => `Sequence of ${sequenceTrack()?.name ?? ""}`, unit: "packet numbers", height: 230,
  lines: () => {
    const track = sequenceTrack();
    if (!track || !columnOf(track, "sent") || plays()) return [];
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
    if (store.packets.track !== sequence || plays()) return [];
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
  keys: () => {
    const track = sequenceTrack();
    // Of a real connection what is sent and acknowledged is counted, and losses are those that its sender found.
    const words = track && columnOf(track, "lost") ? ["sent", "acknowledged or given up", , , "found lost by the sender"]
      : ["sent", "acknowledged", "sent again", "dropped by the queue", "lost on the link"];
    return words.map((label, kind) => ({ colour: packetInk(kind), symbol: PACKETS[kind], label })).filter(Boolean);
  },
};

const MARKS = { slower: "▼", state: "◆", timeout: "■", link: "⚑", connection: "●", frames: "✕", layers: "≡" };
const laneChart = {
  title: () => "Events", height: 46, always: true, lines: () => [], range: () => [0, 1],
  keys: () => [["▼", "slowed down"], ["◆", "controller's state"], ["■", "timeout"], ["⚑", "link changed"],
    ...[["connection", "connection"], ["frames", "frames or packets of media"], ["layers", "layers"]]
      .filter(([mark]) => store.events.some((e) => e.mark === mark)).map(([mark, label]) => [MARKS[mark], label])]
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
const visibleEvents = () => store.events.filter((e) => e.mark === "link" || store.tracks[e.track]?.kind === "media"
  || (drawn === null || drawn.has(e.track)) && (e.mark === "connection" || !plays()));

const area = byId("charts");
const charts = [new Lane(area, laneChart),
  ...[frameChart, layerChart, queueChart, rateChart, windowChart, rttChart, sequenceChart].map((spec) => new Chart(area, spec))];
charts[0].box.classList.add("lane");
