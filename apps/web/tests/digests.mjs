// Compares the digests of the module with those of the command: node digests.mjs MODULE.wasm CASES.json
import { readFileSync } from "node:fs";

const source = readFileSync(new URL("../page/engine.js", import.meta.url), "utf8");
const Engine = new Function(`${source}; return Engine;`)();
const [module, file] = process.argv.slice(2);
const engine = await Engine.start(await WebAssembly.compile(readFileSync(module)), () => 1);
const ask = (name, request) => {
  const text = engine.ask(name, request);
  if (!text.startsWith('{"ok":')) throw new Error(JSON.parse(text).error);
  return text.slice(6, -1);
};
const digestOf = ({ question, seeds }) => {
  const asked = JSON.stringify(question);
  const runs = Array.from({ length: seeds }, (_, seed) => ask("run", `{"question":${asked},"variant":0,"seed":${seed}}`));
  return JSON.parse(ask("answer", `{"question":${asked},"runs":[[${runs}]],"trials":false}`)).digests[0];
};
const cases = JSON.parse(readFileSync(file, "utf8"));
const wrong = [];
for (const each of cases) {
  try {
    const found = digestOf(each);
    if (found !== each.digest) wrong.push(`${each.name}: ${found}, and not ${each.digest}`);
  } catch (error) {
    wrong.push(`${each.name}: ${error.message}`);
  }
}
console.log(`${cases.length - wrong.length} of ${cases.length} runs have the command's digest`);
if (wrong.length) {
  console.error(wrong.join("\n"));
  process.exit(1);
}
