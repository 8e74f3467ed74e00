// Chromium under its own protocol (CDP), over a pair of pipes: messages end with a zero byte.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export class Browser {
  constructor(command, { width = 1300, height = 900, dark = false } = {}) {
    this.profile = mkdtempSync(join(tmpdir(), "narrows-browser-"));
    const args = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--hide-scrollbars",
      `--window-size=${width},${height}`, `--user-data-dir=${this.profile}`, ...(dark ? ["--force-dark-mode"] : [])];
    this.process = spawn(command, args, { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
    this.number = 0;
    this.waiting = new Map();
    this.errors = [];
    this.contexts = [];
    let rest = "";
    this.process.stdio[4].setEncoding("utf8").on("data", (text) => {
      const parts = (rest + text).split("\0");
      rest = parts.pop();
      parts.forEach((part) => this.heard(JSON.parse(part)));
    });
  }

  heard({ id, result, error, method, params }) {
    if (method === "Runtime.exceptionThrown") {
      const { exception, text, lineNumber } = params.exceptionDetails;
      this.errors.push(`${exception?.description ?? text} at line ${lineNumber}`);
    }
    if (method === "Runtime.consoleAPICalled" && ["error", "warning"].includes(params.type)) {
      this.errors.push(params.args.map((a) => a.value ?? a.description).join(" "));
    }
    if (method === "Runtime.executionContextCreated") this.contexts.push(params.context.id);
    if (method === "Runtime.executionContextDestroyed") this.contexts = this.contexts.filter((id) => id !== params.executionContextId);
    if (method === "Log.entryAdded" && params.entry.level === "error") this.errors.push(params.entry.text);
    const found = this.waiting.get(id);
    this.waiting.delete(id);
    if (error) found?.reject(new Error(`${found.method}: ${error.message}`)); else found?.resolve(result);
  }

  send(method, params = {}) {
    this.number += 1;
    const message = { id: this.number, method, params, ...(this.session ? { sessionId: this.session } : {}) };
    this.process.stdio[3].write(`${JSON.stringify(message)}\0`);
    return new Promise((resolve, reject) => this.waiting.set(message.id, { resolve, reject, method }));
  }

  // A new tab at this address.
  async open(url, { width = 1300, height = 900, dark = false } = {}) {
    this.session = null;
    this.contexts = [];
    const { targetId } = await this.send("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await this.send("Target.attachToTarget", { targetId, flatten: true });
    this.session = sessionId;
    await Promise.all(["Page", "Runtime", "Log"].map((domain) => this.send(`${domain}.enable`)));
    await this.send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: width < 600 });
    await this.send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }] });
    if (this.onload) await this.send("Page.addScriptToEvaluateOnNewDocument", { source: this.onload });
    await this.send("Page.navigate", { url });
  }

  // The value of an expression in the page, or in the frame that was opened last.
  async value(expression, isInFrame = false) {
    const where = isInFrame ? { contextId: this.contexts.at(-1) } : {};
    const { result, exceptionDetails } = await this.send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true, ...where });
    if (exceptionDetails) throw new Error(`${expression}: ${exceptionDetails.exception?.description ?? exceptionDetails.text}`);
    return result.value;
  }

  // Waits until an expression is true.
  async until(expression, isInFrame = false, seconds = 120) {
    const end = Date.now() + 1000 * seconds;
    for (;;) {
      if (await this.value(`(() => { try { return !!(${expression}); } catch { return false; } })()`, isInFrame)) return;
      if (Date.now() > end) throw new Error(`not within ${seconds} s: ${expression}; errors: ${this.errors.join("; ")}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  // A click of the mouse in the middle of an element.
  async click(selector) {
    const at = await this.value(`(() => { const e = document.querySelector(${JSON.stringify(selector)}); e.scrollIntoView({ block: "center" });
      const r = e.getBoundingClientRect(); return { x: r.x + r.width / 2, y: r.y + r.height / 2 }; })()`);
    for (const type of ["mousePressed", "mouseReleased"]) {
      await this.send("Input.dispatchMouseEvent", { type, ...at, button: "left", clickCount: 1 });
    }
  }

  async key(key, more = {}) {
    await this.send("Input.dispatchKeyEvent", { type: "keyDown", key, code: key, ...more });
    await this.send("Input.dispatchKeyEvent", { type: "keyUp", key, code: key, ...more });
  }

  async picture(file, full = false) {
    const { data } = await this.send("Page.captureScreenshot", { format: "png", captureBeyondViewport: full });
    writeFileSync(file, Buffer.from(data, "base64"));
  }

  async close() {
    const ended = new Promise((resolve) => this.process.once("exit", resolve));
    this.session = null;
    this.send("Browser.close").catch(() => {});
    await ended;
    rmSync(this.profile, { recursive: true, force: true, maxRetries: 5 });
  }
}
