// Compares the digests of the module with those of the command: node digests.mjs MODULE.wasm CASES.json
import { readFileSync } from "node:fs";

const source = readFileSync(new URL("../page/engine.js", import.meta.url), "utf8");
const Engine = new Function(`${source}; return Engine;`)();
const [module, file] = process.argv.slice(2);
const engine = await Engine.start(await WebAssembly.compile(readFileSync(module)), () => 1);
const cases = JSON.parse(readFileSync(file, "utf8"));
const wrong = [];
for (const { name, digest, ...request } of cases) {
  const { ok, error } = JSON.parse(engine.ask("digest", JSON.stringify(request)));
  if (ok !== digest) wrong.push(`${name}: ${error ?? ok}, and not ${digest}`);
}
console.log(`${cases.length - wrong.length} of ${cases.length} runs have the command's digest`);
if (wrong.length) {
  console.error(wrong.join("\n"));
  process.exit(1);
}
