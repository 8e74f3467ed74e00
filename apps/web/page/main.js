// The page: views, the question, and what answers it.
"use strict";
const MOST_WORKERS = 8;

// Compiled while it is unpacked.
function compiledModule() {
  const packed = bytesOf(byId("module").textContent.trim());
  const bytes = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return WebAssembly.compileStreaming(new Response(bytes, { headers: { "Content-Type": "application/wasm" } }));
}

async function startPage() {
  const pool = new Pool(byId("worker").textContent);
  const cores = Math.min(MOST_WORKERS, navigator.hardwareConcurrency || 2);
  // The workers start while the module is compiled. One core is left for the page until its first answer.
  pool.start(Math.max(1, cores - 1));
  const [module, { question: first }] = await Promise.all([compiledModule(), fromFragment(location.hash.slice(1))]);
  pool.load(module);
  const begun = firstLook(pool, first);
  const lists = JSON.parse(await pool.desk.ask("choices", ""));
  byId("version").textContent = lists.version;
  const question = new Question();
  const state = { view: "compare", lesson: "", own: "" };

  // ---- what the parts say ------------------------------------------------------------------------

  const wrong = (error) => {
    if (pool.lends && error.line > 0) { editor.fault(error); show("own"); }
    byId("q-error").textContent = error.message;
    byId("q-error").hidden = false;
    byId("q-progress").textContent = "";
  };
  const progress = (text) => {
    byId("q-progress").textContent = text;
    byId("q-error").hidden = true;
    byId("report").setAttribute("aria-busy", "true");
  };
  let about = null;
  const results = new Results(pool, {
    wrong, progress,
    described(found) {
      about = found;
      question.similar = found.similar && Object.fromEntries(found.similar);
      if (found.similar) {
        byId("lens-seed").value = found.seed;
        controls.show();
      }
      byId("path").textContent = found.path;
      controls.described(found);
      lens.offer(found.protocols);
      given();
    },
    protocols: () => addLensButtons(),
    seen: () => pool.grow(cores),
    done(answer, text) {
      const digests = answer.digests.map((digest, i) => `${about.protocols[i]} ${digest}`);
      progress(about.similar ? `${text}, digests: ${digests.join(", ")}` : text);
      byId("report").setAttribute("aria-busy", "false");
      byId("report").dataset.digests = answer.digests.join(" ");
      about.seeds = answer.seeds;
      given();
    },
  });
  results.begun = begun;
  pool.onbroken = (fault) => { editor.fault(fault); wrong(Object.assign(new Error(fault.message), { line: fault.line })); };

  // ---- the question ------------------------------------------------------------------------------

  let writing = 0;
  const remember = async () => {
    writing += 1;
    const number = writing;
    const page = { view: state.view === "compare" ? "" : state.view, lesson: state.lesson, own: state.own && await packText(state.own), ...lens.state() };
    const fragment = await toFragment(question, page);
    if (number === writing) history.replaceState(null, "", `#${fragment}`);
  };
  const ask = () => {
    controls.show();
    remember();
    results.ask(question);
  };
  const vary = async (link, key, value) => {
    try {
      return JSON.parse(await pool.desk.ask("vary", JSON.stringify({ link, key, value }))).text;
    } catch (error) {
      wrong(error);
      return null;
    }
  };
  const controls = new Controls(lists, question, ask, vary);
  const lens = new Lens(pool, question, wrong);
  lens.onchange = remember;
  listenForTraces(async (name, text) => {
    if (!name) { wrong(new Error(text)); return; }
    try {
      question.files = { [name]: JSON.parse(await pool.desk.ask("convert", JSON.stringify(text))) };
      await pool.desk.ask("describe", JSON.stringify(question.json()));
      const link = await vary(question.get("link") || lists.link, "trace", name);
      if (link) { question.set("link", link); ask(); }
    } catch (error) {
      wrong(new Error(`${name}: ${error.message}`));
    }
  });

  // ---- views -------------------------------------------------------------------------------------

  function show(view) {
    state.view = view;
    for (const button of byId("views").children) button.setAttribute("aria-pressed", button.dataset.view === view);
    byId("own").hidden = view !== "own";
    byId("lens").hidden = view !== "lens";
    byId("report").hidden = view === "lens";
    byId("lesson").hidden = view !== "lessons" && state.lesson === "";
    if (view === "lens") lens.open();
    if (view === "lessons" && state.lesson === "") openLesson("");
    dispatchEvent(new Event("resize"));
  }
  byId("views").addEventListener("click", ({ target }) => {
    if (!target.dataset.view) return;
    if (target.dataset.view === "compare") state.lesson = "";
    show(target.dataset.view);
    remember();
  });
  const setOptions = (options) => {
    for (const name of OPTIONS) question.set(name, options[name] ?? "");
    question.extra = [];
    controls.chosen = true;
    ask();
  };
  function openLesson(number) {
    state.lesson = number === "" ? "" : String(number);
    showLesson(number === "" ? -1 : number, (n) => {
      openLesson(n);
      lens.wanted = LESSONS[n].lens;
      setOptions(LESSONS[n].options);
      show(LESSONS[n].view ?? "lessons");
    }, setOptions);
  }
  function addLensButtons() {
    document.querySelectorAll("#traces article").forEach((article, place) => {
      const button = Object.assign(document.createElement("button"), { type: "button", textContent: "Under the lens", className: "small" });
      button.addEventListener("click", () => {
        byId("lens-a").value = about.protocols[place];
        show("lens");
        remember();
        byId("lens").scrollIntoView();
      });
      article.querySelector("h3").append(" ", button);
    });
  }
  // Links of the report lead within it; the fragment is the question's.
  document.addEventListener("click", (event) => {
    const target = event.target.closest?.("a[href^='#']");
    if (!target) return;
    event.preventDefault();
    const to = byId(target.getAttribute("href").slice(1));
    to?.scrollIntoView();
    to?.focus({ preventScroll: true });
  });

  // ---- the reader's controller -------------------------------------------------------------------

  const runOwn = (code) => {
    let shape;
    try {
      shape = shapeOf(code);
    } catch (error) {
      editor.fault(error);
      return;
    }
    editor.fault(null);
    pool.own(shape, code);
    state.own = code;
    byId("own-foreign").hidden = true;
    byId("own-stop").hidden = false;
    const former = controls.own;
    controls.own = shape.name;
    const base = (about?.protocols ?? ["cubic", "rrtp"]).filter((p) => p !== former && p !== `rrtp+${former}` && p !== shape.name);
    question.set("protocols", [shape.name, ...base].join(","));
    ask();
  };
  const stopOwn = () => {
    pool.own(null, "");
    const without = (about?.protocols ?? []).filter((p) => p !== controls.own && p !== `rrtp+${controls.own}`);
    question.set("protocols", without.join(","));
    controls.own = null;
    state.own = "";
    byId("own-stop").hidden = true;
    ask();
  };
  const editor = new Editor(runOwn, stopOwn);

  // ---- what leaves the page ----------------------------------------------------------------------

  let kind = "";
  function given() {
    if (!kind || !about) return;
    byId("given").hidden = false;
    const seeds = about.command.includes("--seeds") || !about.seeds ? "" : ` --seeds ${about.seeds}`;
    byId("given-text").textContent = kind === "command" ? about.command + seeds : about.scenario;
  }
  for (const id of ["command", "scenario"]) {
    byId(id).addEventListener("click", () => {
      kind = kind === id ? "" : id;
      byId("given").hidden = !kind;
      given();
    });
  }
  const copy = (button, text) => {
    const done = (word) => {
      const before = button.textContent;
      button.textContent = word;
      setTimeout(() => { button.textContent = before; }, 1500);
    };
    const written = navigator.clipboard?.writeText(text) ?? Promise.reject(new Error("no clipboard"));
    written.then(() => done("Copied"), () => done("Copy it from the address bar"));
  };
  byId("given-copy").addEventListener("click", () => copy(byId("given-copy"), byId("given-text").textContent));
  byId("share").addEventListener("click", async () => { await remember(); copy(byId("share"), location.href); });

  // ---- the address -------------------------------------------------------------------------------

  async function load() {
    const { question: read, page } = await fromFragment(location.hash.slice(1));
    question.options = read.options;
    question.extra = read.extra;
    question.files = read.files;
    question.similar = null;
    controls.chosen = question.options.has("protocols");
    lens.wanted = [page.a, page.b];
    if (page.own) {
      try {
        const code = await unpackText(page.own);
        editor.put(code, true);
        // It runs when the reader says so; until then its protocol is left out.
        const { name } = shapeOf(code);
        const others = question.get("protocols").split(",").filter((p) => p !== name && p !== `rrtp+${name}`);
        question.set("protocols", others.join(","));
      } catch { /* Damaged code is left out. */ }
    }
    const lesson = /^[0-5]$/.test(page.lesson ?? "") ? Number(page.lesson) : "";
    openLesson(lesson);
    show(["lens", "own", "lessons"].includes(page.view) ? page.view : "compare");
    ask();
  }
  addEventListener("hashchange", load);
  await load();
}

startPage().catch((error) => {
  byId("q-error").textContent = `This browser cannot start the simulator: ${error.message}`;
  byId("q-error").hidden = false;
});
