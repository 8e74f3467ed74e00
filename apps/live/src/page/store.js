// What the server told of one run: tracks with their rows, packets, events. Bounded, however long the run is.

const MAX_ROWS = 8000, MAX_PACKETS = 40000, MAX_EVENTS = 2000;
const SUMS = new Set(["drops", "losses", "marks", "queue_drops", "link_losses", "timeouts", "retransmissions", "lost",
  "late_frames", "missed", "repaired", "delayed", "stalls", "dropped", "repeated", "late"]);
const LASTS = new Set(["acked", "sent", "capacity_bps", "told_bps", "layers", "latency_s", "longest_wait_s"]);
const MOST = new Set(["queue_max", "frame_delay_s", "waiting_s"]);

class Store {
  constructor() { this.clear(); }

  clear() {
    this.tracks = [];
    this.packets = { track: -1, p: [] };
    this.events = [];
    this.now = 0;
    this.first = null;
  }

  take(frame) {
    if (frame.tracks) {
      // A track that is told again is another one in the same place.
      for (const track of frame.tracks) {
        if (this.tracks[track.n]) this.events = this.events.filter((e) => e.track !== track.n);
        if (this.packets.track === track.n) this.packets = { track: -1, p: [] };
        this.tracks[track.n] = { ...track, t: [], c: track.columns.map(() => []) };
      }
      this.packetFlows = frame.packetFlows;
    }
    for (const rows of frame.rows ?? []) {
      const track = this.tracks[rows.track];
      if (!track) continue;
      if (rows.all) {
        track.t = rows.t;
        track.c = rows.c;
      } else {
        track.t.push(...rows.t);
        rows.c.forEach((column, n) => track.c[n].push(...column));
      }
      if (track.t.length > MAX_ROWS) this.merge(track);
      if (track.t.length && (this.first === null || track.t[0] < this.first)) this.first = track.t[0];
    }
    if (frame.packets) {
      if (this.packets.track !== frame.packets.track) this.packets = { track: frame.packets.track, p: [] };
      for (const x of frame.packets.p) this.packets.p.push(x);
      const extra = this.packets.p.length - 3 * MAX_PACKETS;
      if (extra > 0) this.packets.p.splice(0, extra + (3 - extra % 3) % 3 + 3 * MAX_PACKETS / 4);
    }
    for (const event of frame.events ?? []) this.events.push({ ...event, id: this.events.length });
    if (this.events.length > MAX_EVENTS) this.events.splice(0, this.events.length - MAX_EVENTS);
    if (frame.now !== undefined) this.now = frame.now;
  }

  // The older half in pairs.
  merge(track) {
    const half = MAX_ROWS / 2;
    track.columns.forEach(({ name }, n) => {
      const column = track.c[n], merged = [];
      for (let i = 0; i < half; i += 2) {
        const [a, b] = [column[i], column[i + 1]];
        if (a === null || b === null) merged.push(a ?? b);
        else if (SUMS.has(name)) merged.push(a + b);
        else if (LASTS.has(name)) merged.push(b);
        else if (MOST.has(name)) merged.push(Math.max(a, b));
        else merged.push((a + b) / 2);
      }
      track.c[n] = merged.concat(column.slice(half));
    });
    const times = [];
    for (let i = 1; i < half; i += 2) times.push(track.t[i]);
    track.t = times.concat(track.t.slice(half));
  }

  of(kind) {
    return this.tracks.map((track, n) => ({ track, n })).filter(({ track }) => track.kind === kind);
  }
}

// A track's column, or null.
const columnOf = (track, name) => {
  const n = track.columns.findIndex((c) => c.name === name);
  return n < 0 ? null : track.c[n];
};

// The first index whose time is not before t.
const firstAt = (times, t) => {
  let [low, high] = [0, times.length];
  while (low < high) {
    const mid = (low + high) >> 1;
    if (times[mid] < t) low = mid + 1; else high = mid;
  }
  return low;
};
