// Packets that the module simulates per CPU second, over 100 Mbit/s and 20 ms: node speed.mjs MODULE.wasm
import { readFileSync } from "node:fs";

const source = readFileSync(new URL("../page/engine.js", import.meta.url), "utf8");
const Engine = new Function(`${source}; return Engine;`)();
const engine = await Engine.start(await WebAssembly.compile(readFileSync(process.argv[2])), () => 1);
const RUNS = 5;
for (const [protocol, flows] of [["cubic", 1], ["cubic", 10], ["bbr", 10], ["rrtp", 10]]) {
  const options = Object.entries({ link: "100Mbit/s,20ms", protocols: protocol, flows: String(flows), duration: "20s", seeds: "2" });
  const question = JSON.stringify({ options }), rates = [];
  for (let i = 0; i < RUNS; i += 1) {
    const before = process.cpuUsage();
    const run = engine.ask("run", `{"question":${question},"variant":0,"seed":1}`).slice(6, -1);
    const { user, system } = process.cpuUsage(before);
    const { ok } = JSON.parse(engine.ask("answer", `{"question":${question},"runs":[[${run}]],"trials":false}`));
    rates.push(ok.sent / (user + system));
  }
  rates.sort((a, b) => a - b);
  console.log(`${protocol}, ${flows} flows: ${rates[Math.floor(RUNS / 2)].toFixed(2)} M packets per CPU second`);
}
