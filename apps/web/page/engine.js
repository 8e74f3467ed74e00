// The module: a request in, an answer out. `own` answers calls of the reader's controller.
class Engine {
  constructor(exports) {
    this.exports = exports;
    this.encoder = new TextEncoder();
    this.decoder = new TextDecoder();
  }

  static async start(module, own) {
    let engine = null;
    const page = {
      own: (call, object) => own(engine, call, object),
      panicked: (at, bytes) => { engine.fault = engine.text(at, bytes); },
    };
    const instance = await WebAssembly.instantiate(module, { page });
    engine = new Engine(instance.exports);
    engine.exports.start();
    return engine;
  }

  text(at, bytes) {
    return this.decoder.decode(new Uint8Array(this.exports.memory.buffer, at, bytes));
  }

  // Arguments and results of a controller's calls.
  values() {
    const { memory } = this.exports;
    if (this.table?.buffer !== memory.buffer) this.table = new Float64Array(memory.buffer, this.exports.own_values(), 64);
    return this.table;
  }

  // `{"ok": …}` or `{"error": "…"}`, as text.
  ask(name, json) {
    const request = this.encoder.encode(`${name}\n${json}`);
    const at = this.exports.input(request.length);
    new Uint8Array(this.exports.memory.buffer, at, request.length).set(request);
    const bytes = this.exports.ask();
    return this.text(this.exports.output(), bytes);
  }
}
