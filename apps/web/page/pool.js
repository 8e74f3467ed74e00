// Workers and their tasks. A worker that is stopped in the middle of a task is replaced: the module cannot be
// interrupted otherwise.
class Hand {
  // `limit` is the longest time of a task in seconds; `hasCode` says whether the reader's code runs in it.
  constructor(pool, limit, hasCode) {
    this.pool = pool;
    this.limit = limit;
    this.hasCode = hasCode;
    this.tasks = [];
    this.open();
  }

  open() {
    this.worker = new Worker(this.hasCode ? this.pool.source : this.pool.clean);
    this.busy = null;
    this.worker.onmessage = ({ data }) => this.answered(data);
    this.worker.onerror = (event) => {
      event.preventDefault();
      this.fail({ message: event.message.replace(/^Uncaught /, ""), line: event.lineno });
    };
    if (this.pool.module) this.load();
  }

  // Passes the module to the worker.
  load() {
    const { module, lends } = this.pool;
    this.tasks.unshift({ message: { module, lends }, done: (text, fault) => {
      const { error } = JSON.parse(text);
      if (error && this.pool.onbroken) this.pool.onbroken(fault ?? { message: error, line: 0 });
    }, failed: (fault) => this.pool.onbroken?.(fault) });
    this.next();
  }

  next() {
    if (this.busy || !this.tasks.length || !this.pool.module) return;
    this.busy = this.tasks.shift();
    this.worker.postMessage(this.busy.message);
    this.timer = setTimeout(() => {
      const task = this.busy;
      this.replace();
      task?.failed({ message: `a task took longer than ${this.limit} s`, line: 0 });
    }, 1000 * this.limit);
  }

  answered({ text, fault } = {}) {
    // The reader's code can post messages, too.
    if (typeof text !== "string" || !/^\{"(ok|error)":/.test(text) || !this.busy) return;
    clearTimeout(this.timer);
    const task = this.busy;
    this.busy = null;
    try {
      task.done(text, fault);
    } catch {
      task.failed({ message: "a worker's answer is malformed", line: 0 });
    }
    // A module that has trapped answers nothing more.
    if (text.endsWith('"broken":true}')) this.replace();
    this.next();
  }

  fail(fault) {
    clearTimeout(this.timer);
    const failed = [this.busy, ...this.tasks];
    this.busy = null;
    this.tasks = [];
    failed.forEach((task) => task?.failed(fault));
  }

  replace() {
    clearTimeout(this.timer);
    this.worker.terminate();
    this.open();
  }

  close() {
    clearTimeout(this.timer);
    this.worker.terminate();
    this.tasks = [];
  }

  // The answer's text, `{"ok": …}`; rejects with an error that has a line of the reader's code, or 0.
  ask(name, json) {
    return new Promise((resolve, reject) => {
      const failed = ({ message, line }) => reject(Object.assign(new Error(message), { line }));
      const done = (text, fault) => {
        if (fault) failed(fault);
        else if (text.startsWith('{"ok":')) resolve(text.slice(6, -1));
        else failed({ message: JSON.parse(text).error, line: 0 });
      };
      this.tasks.push({ message: { name, json }, done, failed });
      this.next();
    });
  }

  // Ends the present task, and forgets the others; their promises stay open.
  cancel() {
    this.tasks = [];
    if (this.busy && !this.busy.message.module) this.replace();
  }
}

const RUN_LIMIT = 30, DESK_LIMIT = 60;

class Pool {
  constructor(script) {
    this.module = null;
    this.script = script;
    this.lends = null;
    this.hands = [];
    this.clean = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
    this.write("");
  }

  // Workers with this code of the reader before them.
  write(code) {
    if (this.source) URL.revokeObjectURL(this.source);
    this.source = URL.createObjectURL(new Blob([code, "\n", this.script], { type: "text/javascript" }));
  }

  // The desk answers at once; the judge makes the last report, with its trials beside CUBIC; the runners simulate.
  start(count) {
    this.hands.forEach((hand) => hand.close());
    this.desk = new Hand(this, DESK_LIMIT, false);
    this.lastJudge = null;
    this.runners = [];
    this.lenses = [null, null];
    this.hands = [this.desk];
    this.grow(count);
  }

  // Adds runners until there are so many.
  grow(count) {
    while (this.runners.length < count) this.runners.push(this.hired(new Hand(this, RUN_LIMIT, true)));
  }

  hired(hand) {
    this.hands.push(hand);
    return hand;
  }

  get judge() {
    this.lastJudge ??= this.hired(new Hand(this, DESK_LIMIT, false));
    return this.lastJudge;
  }

  // The compiled module, for workers that have started without it.
  load(module) {
    this.module = module;
    this.hands.forEach((hand) => hand.load());
  }

  // Workers of the lens, which keep its last run.
  lens(place) {
    this.lenses[place] ??= this.hired(new Hand(this, RUN_LIMIT, true));
    return this.lenses[place];
  }

  // Restarts all workers with a class of the reader, or without.
  own(lends, code) {
    this.lends = lends;
    this.write(lends ? `${code}\n;const ownController = (environment) => new ${lends.name}(environment);` : "");
    this.start(this.runners.length);
  }

  cancel() {
    [this.lastJudge, ...this.runners].forEach((hand) => hand?.cancel());
  }

  // The runner with the fewest tasks.
  runner() {
    const load = (hand) => hand.tasks.length + (hand.busy ? 1 : 0);
    return this.runners.reduce((best, hand) => (load(hand) < load(best) ? hand : best));
  }
}
