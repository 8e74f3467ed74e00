// What every page's charts share: the data, the colours and the fonts of light and dark.
"use strict";
const byId = (id) => document.getElementById(id);
// A page whose results change replaces them.
let data = JSON.parse(byId("data")?.textContent ?? "null");
const dark = matchMedia("(prefers-color-scheme: dark)");
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
// Plotly reads a little markup in its texts; names are to be shown as they are.
const plain = (text) =>
  text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
const colour = (i) => {
  const palette = dark.matches ? data.dark : data.light;
  return palette[i % palette.length];
};
const font = () => ({
  family: 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif',
  size: 12, color: css("--text"),
});
const chartLayout = (more) => ({
  font: font(), paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
  hoverlabel: {
    bgcolor: css("--hover"), bordercolor: css("--line"), namelength: -1, font: font(),
  },
  modebar: { bgcolor: "rgba(0,0,0,0)", color: css("--line"), activecolor: css("--quiet") },
  ...more,
});

// Unpacks gzip (RFC 1952 without optional fields; RFC 1951). The browser's own DecompressionStream ends after the
// page has loaded, and a browser that prints without a reader does not wait for it.
function gunzip(from) {
  const out = new Uint8Array(new DataView(from.buffer).getUint32(from.length - 4, true));
  let at = 10, put = 0, hold = 0, held = 0;
  const fill = (n) => {
    for (; held < n; held += 8) hold |= from[at++] << held;
  };
  const drop = (n) => {
    hold >>>= n;
    held -= n;
  };
  const bits = (n) => {
    fill(n);
    const value = hold & ((1 << n) - 1);
    drop(n);
    return value;
  };
  // For each 15 bits, or as many as the longest code has: the symbol and the length of its code.
  const table = (lengths) => {
    const most = Math.max(...lengths);
    const entries = new Uint16Array(1 << most);
    let code = 0;
    for (let length = 1; length <= most; length += 1, code <<= 1) {
      lengths.forEach((own, symbol) => {
        if (own !== length) return;
        let reversed = 0;
        for (let bit = 0; bit < length; bit += 1) reversed |= (code >> bit & 1) << (length - 1 - bit);
        for (let i = reversed; i < entries.length; i += 1 << length) entries[i] = symbol << 4 | length;
        code += 1;
      });
    }
    return entries;
  };
  const symbol = (entries) => {
    fill(15);
    const entry = entries[hold & (entries.length - 1)];
    drop(entry & 15);
    return entry >> 4;
  };
  // First values and numbers of further bits of lengths and distances.
  const ladder = (first, more) => {
    const steps = more.map((extra) => ({ base: 0, extra }));
    for (const step of steps) [step.base, first] = [first, first + (1 << step.extra)];
    return steps;
  };
  const lengthSteps = ladder(3, Array.from({ length: 28 }, (_, i) => Math.max(0, (i >> 2) - 1)));
  lengthSteps.push({ base: 258, extra: 0 });
  const distanceSteps = ladder(1, Array.from({ length: 30 }, (_, i) => Math.max(0, (i >> 1) - 1)));
  const dynamic = () => {
    const [literals, distances, codes] = [bits(5) + 257, bits(5) + 1, bits(4) + 4];
    const order = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
    const own = new Array(19).fill(0);
    for (let i = 0; i < codes; i += 1) own[order[i]] = bits(3);
    const entries = table(own);
    const lengths = [];
    while (lengths.length < literals + distances) {
      const s = symbol(entries);
      const [value, times] = s < 16 ? [s, 1] : s === 16 ? [lengths.at(-1), 3 + bits(2)] :
        [0, s === 17 ? 3 + bits(3) : 11 + bits(7)];
      for (let i = 0; i < times; i += 1) lengths.push(value);
    }
    return [table(lengths.slice(0, literals)), table(lengths.slice(literals))];
  };
  const fixed = () => [
    table(Array.from({ length: 288 }, (_, i) => i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8)),
    table(new Array(30).fill(5)),
  ];
  for (let last = 0; !last;) {
    last = bits(1);
    const kind = bits(2);
    if (kind === 0) {
      // Bytes as they are, from the next whole one on.
      at -= held >> 3;
      hold = held = 0;
      const length = from[at] | from[at + 1] << 8;
      out.set(from.subarray(at + 4, at + 4 + length), put);
      at += 4 + length;
      put += length;
      continue;
    }
    const [literals, distances] = kind === 1 ? fixed() : dynamic();
    for (let s = symbol(literals); s !== 256; s = symbol(literals)) {
      if (s < 256) {
        out[put++] = s;
        continue;
      }
      const length = lengthSteps[s - 257];
      const end = put + length.base + bits(length.extra);
      const distance = distanceSteps[symbol(distances)];
      const back = distance.base + bits(distance.extra);
      for (; put < end; put += 1) out[put] = out[put - back];
    }
  }
  return out;
}

// Starts plotly.js, which the page has in it.
function startLibrary() {
  if (typeof Plotly !== "undefined") return;
  const packed = Uint8Array.from(atob(byId("library").textContent), (c) => c.charCodeAt(0));
  const script = document.createElement("script");
  script.textContent = new TextDecoder().decode(gunzip(packed));
  document.head.append(script);
  if (typeof Plotly === "undefined") throw new Error("plotly.js did not start");
}
