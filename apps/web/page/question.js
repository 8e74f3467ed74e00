// The question: options of `narrows compare`, its traces and the reader's code; to and from the page's address.
const MAX_ADDRESS = 200000, MAX_TRACE_IN_ADDRESS = 60000;
const OPTIONS = ["link", "network", "for", "protocols", "source", "flows", "against", "reverse", "duration", "warmup", "stagger",
  "packet", "seeds", "seed", "preset", "change", "reconfigure"];

// Options that leave a network of the atlas as it is.
const BESIDE_NETWORK = ["network", "for", "protocols", "seeds"];

class Question {
  constructor() {
    this.options = new Map();
    this.files = {};
    this.extra = [];
    // The options that describe a network of the atlas best.
    this.similar = null;
  }

  get(name) { return this.options.get(name) ?? this.similar?.[name] ?? ""; }

  set(name, value) {
    if (this.similar && !BESIDE_NETWORK.includes(name)) {
      this.options.delete("network");
      for (const [other, text] of Object.entries(this.similar)) {
        if (!BESIDE_NETWORK.includes(other)) this.options.set(other, text);
      }
      this.similar = null;
    }
    if (value === "" || value === null) this.options.delete(name);
    else this.options.set(name, String(value));
  }

  // As the module takes it; further options beside or in place of its own.
  json(more = {}) {
    const all = new Map([...this.options, ...Object.entries(more.options ?? {})]);
    const options = OPTIONS.filter((name) => all.has(name)).map((name) => [name, all.get(name)]);
    return { options: options.concat(this.extra), files: this.files, ...(more.first_s ? { first_s: more.first_s } : {}) };
  }
}

const toBase64 = (bytes) => {
  let text = "";
  for (let i = 0; i < bytes.length; i += 8192) text += String.fromCharCode(...bytes.subarray(i, i + 8192));
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
};
const bytesOf = (base64) => {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
  // Browsers before 2025. Uint8Array.from takes ten times as long as a loop.
  const letters = atob(base64), bytes = new Uint8Array(letters.length);
  for (let i = 0; i < bytes.length; i += 1) bytes[i] = letters.charCodeAt(i);
  return bytes;
};
const fromBase64 = (text) => bytesOf(text.replaceAll("-", "+").replaceAll("_", "/"));
const throughStream = async (bytes, stream, most) => {
  const reader = new Blob([bytes]).stream().pipeThrough(stream).getReader();
  const parts = [];
  for (let size = 0; ;) {
    const { done, value } = await reader.read();
    if (done) return new Uint8Array(await new Blob(parts).arrayBuffer());
    size += value.length;
    if (size > most) { await reader.cancel(); throw new Error("too long"); }
    parts.push(value);
  }
};
const packText = async (text) =>
  toBase64(await throughStream(new TextEncoder().encode(text), new CompressionStream("deflate-raw"), Infinity));
const unpackText = async (text) =>
  new TextDecoder().decode(await throughStream(fromBase64(text), new DecompressionStream("deflate-raw"), 4e6));

// The fragment of an address. A trace that is too long for an address is left out.
async function toFragment(question, page) {
  const fields = new URLSearchParams();
  for (const [name, value] of question.json().options) fields.append(name, value);
  for (const [name, value] of Object.entries(page)) if (value) fields.set(`page-${name}`, value);
  for (const [name, text] of Object.entries(question.files)) {
    const packed = await packText(text);
    if (packed.length <= MAX_TRACE_IN_ADDRESS) fields.append("file", `${name}:${packed}`);
  }
  return fields.toString().replaceAll("%2C", ",").replaceAll("%2F", "/").replaceAll("%3D", "=").replaceAll("%28", "(").replaceAll("%29", ")");
}

// A question and the page's state from a fragment; what is not understood is left out.
async function fromFragment(fragment) {
  const question = new Question(), page = {};
  if (fragment.length > MAX_ADDRESS) return { question, page };
  for (const [name, value] of new URLSearchParams(fragment)) {
    if (name === "change" || name === "reconfigure") question.extra.push([name, value]);
    else if (OPTIONS.includes(name)) question.set(name, value);
    else if (name.startsWith("page-")) page[name.slice(5)] = value;
    else if (name === "file") {
      const at = value.indexOf(":");
      try {
        question.files[value.slice(0, at)] = await unpackText(value.slice(at + 1));
      } catch { /* A damaged trace: the link that names it says so. */ }
    }
  }
  return { question, page };
}
