// A worker: one module, one task at a time. In workers that simulate, the reader's code stands before this, so that the
// lines of its errors are those of the editor. Workers that make reports know its name alone: their answers are markup.
(() => {
  let engine = null, own = new OwnControllers(null);

  const lineOf = (error) => Number(/(?:blob:[^\s)]*|<anonymous>):(\d+):\d+/.exec(error?.stack ?? "")?.[1] ?? 0);

  async function begin({ module, lends }) {
    const stub = { send_limits: () => ({ cwnd: 1 }), requirements: () => lends.needs };
    own = new OwnControllers(typeof ownController === "function" ? ownController : () => stub);
    engine = await Engine.start(module, (from, call, object) => own.call(from, call, object));
    if (!lends) return '{"ok":null}';
    const { ok } = JSON.parse(engine.ask("choices", ""));
    own.describe(ok.events, lends.variables);
    return engine.ask("lend", JSON.stringify({ name: lends.name, variables: lends.variables }));
  }

  async function work({ name, json }) {
    own.error = null;
    own.objects.clear();
    return engine.ask(name, json);
  }

  onmessage = async ({ data }) => {
    let text;
    try {
      text = await (data.module ? begin(data) : work(data));
    } catch (error) {
      text = JSON.stringify({ error: engine?.fault ?? String(error.message ?? error), broken: true });
    }
    const fault = own.error && { message: String(own.error.message ?? own.error).slice(0, 300), line: lineOf(own.error) };
    postMessage({ id: data.id, text, fault });
  };
})();
