// Measures the page in headless Chromium: packets that a worker simulates per second over 100 Mbit/s and 20 ms, and the
// time until the first answer: node speed.mjs PAGE.html BROWSER
import { pathToFileURL } from "node:url";
import { Browser } from "./browser.mjs";

const RUNS = 7;
const page = pathToFileURL(process.argv[2]).href;
const browser = new Browser(process.argv[3]);
// In the page: a worker of its own, whose best run counts, since other programs may use the machine.
const rate = (protocol, flows) => `(async () => {
  const pool = new Pool(byId("worker").textContent);
  pool.start(1);
  pool.load(await compiledModule());
  const options = Object.entries({ link: "100Mbit/s,20ms", protocols: "${protocol}", flows: "${flows}", duration: "20s", seeds: "2" });
  const question = JSON.stringify({ options });
  const rates = [];
  for (let i = 0; i < ${RUNS}; i += 1) {
    const begun = performance.now();
    const run = await pool.runner().ask("run", '{"question":' + question + ',"variant":0,"seed":1}');
    const took = performance.now() - begun;
    const answer = await pool.desk.ask("answer", '{"question":' + question + ',"runs":[[' + run + ']],"trials":false}');
    rates.push(JSON.parse(answer).sent / took / 1000);
  }
  pool.hands.forEach((hand) => hand.close());
  return Math.max(...rates);
})()`;
const FIRST = `(() => { const answer = byId("answer");
  new MutationObserver(() => { window.first ??= performance.now(); }).observe(answer, { childList: true }); })()`;
try {
  const firsts = [];
  for (let i = 0; i < RUNS; i += 1) {
    browser.onload = `addEventListener("DOMContentLoaded", () => ${FIRST})`;
    await browser.open(page);
    await browser.until("window.first");
    firsts.push(await browser.value("window.first - performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"));
    await browser.until("byId('report').getAttribute('aria-busy') === 'false'");
  }
  firsts.sort((a, b) => a - b);
  console.log(`first answer after load: ${firsts[0].toFixed(0)} ms at best, ${firsts[Math.floor(RUNS / 2)].toFixed(0)} ms in the median`);
  for (const [protocol, flows] of [["cubic", 1], ["cubic", 10], ["bbr", 10], ["rrtp", 10]]) {
    console.log(`${protocol}, ${flows} flows: ${(await browser.value(rate(protocol, flows))).toFixed(2)} M packets per second`);
  }
} finally {
  await browser.close();
}
