// Uses the page as a reader does, in headless Chromium: node click.mjs PAGE.html BROWSER [TEST]
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { Browser } from "./browser.mjs";

const page = pathToFileURL(process.argv[2]).href;
const done = "byId('report').getAttribute('aria-busy') === 'false'";
const text = (id) => `document.getElementById('${id}').textContent`;
const rows = "[...document.querySelectorAll('#results tbody th')].map((th) => th.innerText.trim())";

// Texts of the page with less contrast than WCAG AA asks for: 4.5, of large letters 3.
const FAINT = `(() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data].map((x) => x / 255);
  };
  const over = ([r, g, b, a], below) => [r, g, b].map((x, i) => a * x + (1 - a) * below[i]);
  const ground = (e) => (e ? over(rgba(getComputedStyle(e).backgroundColor), ground(e.parentElement)) : over(rgba("Canvas"), [1, 1, 1]));
  const light = (rgb) => rgb.map((x) => (x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4))
    .reduce((sum, x, i) => sum + x * [0.2126, 0.7152, 0.0722][i], 0);
  const texts = [...document.querySelectorAll("body *")].filter((e) => e.checkVisibility({ opacityProperty: true, visibilityProperty: true })
    && [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) && !e.closest("svg, :disabled"));
  const ratio = (e) => {
    const below = ground(e), [a, b] = [light(over(rgba(getComputedStyle(e).color), below)), light(below)].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
  };
  const least = (e) => (parseFloat(getComputedStyle(e).fontSize) >= 24 ? 3 : 4.5);
  return { texts: texts.length, faint: texts.filter((e) => ratio(e) < least(e))
    .map((e) => \`\${e.tagName} "\${e.textContent.trim().slice(0, 30)}" \${ratio(e).toFixed(2)}\`) };
})()`;

const TESTS = {
  // The question of an address is answered, with the command that gives the same.
  async address_gives_answer(browser) {
    await browser.open(`${page}#link=5Mbit/s,20ms,loss=1%25&protocols=cubic,bbr,rrtp&duration=5s&seeds=3`);
    await browser.until(done);
    assert.deepEqual(await browser.value(rows), ["cubic", "bbr", "rrtp"]);
    await browser.click("#command");
    assert.equal(await browser.value(text("given-text")),
      "narrows compare --link 5Mbit/s,20ms,loss=1% --protocols cubic,bbr,rrtp --duration 5s --seeds 3");
    await browser.click("#scenario");
    assert.match(await browser.value(text("given-text")), /\[\[link\]\]/);
    await browser.until("document.querySelector('#trade .main-svg')");
  },

  // A cell of the atlas is a network by its name; the page has the digest that the atlas lists. A slider leaves the network.
  async network_of_atlas_has_listed_digest(browser) {
    const cases = JSON.parse(readFileSync(new URL("digests.json", page), "utf8"));
    const cell = cases.find(({ name }) => name.startsWith("cell mixes"));
    const options = new Map(cell.question.options);
    await browser.open(`${page}#${new URLSearchParams([...options])}`);
    await browser.until(done);
    assert.equal(await browser.value("byId('report').dataset.digests"), cell.digest);
    assert.match(await browser.value(text("q-progress")), new RegExp(`digests: ${options.get("protocols").replace("+", "\\+")} ${cell.digest}`));
    await browser.click("#command");
    assert.match(await browser.value(text("given-text")), /^narrows compare --network mixes/);
    assert.match(await browser.value("byId('q-link').value"), /bit\/s,.*queue=/);
    await browser.value("byId('q-rate').focus()");
    await browser.key("ArrowRight", { windowsVirtualKeyCode: 39 });
    await browser.until("location.hash.includes('link=') && !location.hash.includes('network=')");
  },

  // A slider moves the text, and the text the slider; each changes the address and the answer.
  async slider_and_text_follow_each_other(browser) {
    await browser.open(`${page}#link=5Mbit/s,20ms&protocols=cubic,rrtp&duration=5s&seeds=1`);
    await browser.until(done);
    await browser.value("byId('q-rate').focus()");
    const before = await browser.value("byId('q-link').value");
    for (let i = 0; i < 20; i += 1) await browser.key("ArrowRight", { windowsVirtualKeyCode: 39 });
    await browser.until(`byId('q-link').value !== ${JSON.stringify(before)} && ${done}`);
    await browser.until(`/^(9|10)\\S*Mbit\\/s/.test(${text("path")})`);
    await browser.until("/link=(9|10)[\\d.]*Mbit/.test(decodeURIComponent(location.hash))");
    await browser.value("(() => { const e = byId('q-link'); e.value = '2Mbit/s,100ms,loss=2%'; e.dispatchEvent(new Event('input', { bubbles: true })); })()");
    await browser.until(`${text("path")}.startsWith('2Mbit/s') && ${done}`);
    assert.equal(await browser.value("document.querySelector('#q-loss').previousElementSibling.textContent"), "2 %");
  },

  // A wrong link is one line beside the controls; the right one recovers.
  async wrong_link_says_why(browser) {
    await browser.open(`${page}#link=5Mbit/s&protocols=cubic&seeds=1`);
    await browser.until("!byId('q-error').hidden");
    assert.match(await browser.value(text("q-error")), /the delay is missing/);
    await browser.value("(() => { const e = byId('q-named'); e.value = 'dsl'; e.dispatchEvent(new Event('change')); })()");
    await browser.until(`byId('q-error').hidden && ${done}`);
  },

  // Packets of a short window are all there, and an event says why.
  async lens_zooms_to_single_packets(browser) {
    await browser.open(`${page}#link=5Mbit/s,20ms,queue=20p&protocols=cubic,bbr&duration=5s&seeds=1`);
    await browser.until(done);
    await browser.click("[data-view=lens]");
    await browser.until("document.querySelector('#panes iframe')");
    await browser.until("store.packets.p.length > 1000", true);
    await browser.value("look(1e6, 1.02e6)", true);
    await browser.until("store.packets.p.length > 0 && store.packets.p.every((t, i) => i % 3 || (t >= 1e6 && t <= 1.02e6))", true);
    await browser.value("step(1)", true);
    assert.match(await browser.value("byId('why').textContent", true), /→|timeout/);
    await browser.value("(() => { const e = byId('lens-b'); e.value = 'bbr'; e.dispatchEvent(new Event('change')); })()");
    await browser.until("document.querySelectorAll('#panes iframe').length === 2");
  },

  // The example runs; an error of the code is shown at its line; an endless loop ends.
  async own_controller_runs_and_errors_have_lines(browser) {
    await browser.open(`${page}#link=5Mbit/s,20ms&protocols=cubic&duration=3s&seeds=1`);
    await browser.until(done);
    await browser.click("[data-view=own]");
    await browser.click("#own-run");
    await browser.until(`${done} && ${rows}.includes('Mine')`);
    const write = (code) => browser.value(`byId('code').value = ${JSON.stringify(code)}`);
    await write("class Wrong {\n  on_ack(ack) {\n    ack.rtt.missing.more;\n  }\n  send_limits() { return { cwnd: 10 }; }\n}");
    await browser.click("#own-run");
    await browser.until("!byId('own-error').hidden");
    assert.match(await browser.value(text("own-error")), /^Line 3: /);
    await write("class Wrong {\n  on_ack(ack) {}}\n}");
    await browser.click("#own-run");
    await browser.until("byId('own-error').textContent.startsWith('Line 3')");
  },

  // Code of an address waits for the reader.
  async code_of_an_address_does_not_run(browser) {
    await browser.open(`${page}#link=5Mbit/s,20ms&protocols=cubic&duration=3s&seeds=1`);
    await browser.until(done);
    const packed = await browser.value("packText('class Other { constructor() { postMessage(1); } on_ack() {} send_limits() { return { cwnd: 5 }; } }')");
    await browser.open(`${page}#link=5Mbit/s,20ms&protocols=Other,cubic&duration=3s&seeds=1&page-view=own&page-own=${packed}`);
    await browser.until(done);
    assert.deepEqual(await browser.value(rows), ["cubic"]);
    assert.equal(await browser.value("byId('own-foreign').hidden"), false);
    await browser.click("#own-run");
    await browser.until(`${done} && ${rows}.includes('Other')`);
  },

  // A lesson is a question of its own.
  async lesson_changes_the_question(browser) {
    await browser.open(`${page}#page-view=lessons&seeds=1&protocols=cubic&duration=1s`);
    await browser.until(done);
    await browser.click("#lesson .chips button:nth-child(4)");
    await browser.until(`byId('q-against').value === 'cubic:1' && ${done}`);
    assert.match(await browser.value(text("lesson")), /Jain/);
  },

  // A dropped record becomes the link's trace.
  async trace_replaces_the_rate(browser) {
    await browser.open(`${page}#link=5Mbit/s,20ms&protocols=cubic&duration=3s&seeds=1`);
    await browser.until(done);
    await browser.value(`(() => { const data = new DataTransfer();
      data.items.add(new File(["time_s,rate_Mbit/s\\n0,2\\n1,4\\n2,2\\n"], "my drive.csv"));
      dispatchEvent(new DragEvent("drop", { dataTransfer: data })); })()`);
    await browser.until(`byId('q-link').value.includes('trace=my_drive.csv') && ${done}`);
    assert.match(await browser.value(text("path")), /trace/);
    await browser.until("location.hash.includes('file=my_drive.csv')");
  },

  // Nothing of an address is run, shown as markup, or without an end.
  async hostile_addresses_do_no_harm(browser) {
    const markup = encodeURIComponent("<img src=x onerror=\"document.title='harmed'\">");
    const hostile = [
      `link=${markup}&protocols=cubic`, `link=5Mbit/s,20ms&protocols=${markup}`, `link=5Mbit/s,20ms&against=${markup}:1`,
      `link=5Mbit/s,20ms,trace=${markup}&file=${markup}:AAAA`, "link=100Gbit/s,20ms&duration=87600h", "link=5Mbit/s,20ms&flows=999999999",
      "link=5Mbit/s,20ms&seeds=4000000000", `page-own=${"A".repeat(5000)}&page-view=own`, "page-lesson=__proto__&page-view=constructor",
      "link=1bit/s,20ms&protocols=cubic&duration=60s&seeds=1", `x=${"y".repeat(300000)}`, "%E0%A4%A&link=%", `link=5Mbit/s,20ms&change=${markup}`,
      "network=mixes/1/99999999999999999999", "network=networks/NaN/1&protocols=cubic", `network=pairs/1/0+${markup}&protocols=cubic`,
      "network=mixes/1/004&protocols=cubic,rrtp&link=9Gbit/s,1ms", "network=/&protocols=cubic", "network=access/18446744073709551615/999999&protocols=cubic",
      "link=5Mbit/s,20ms,queue=unlimited&protocols=fixed(rate=900Gbit/s)&duration=20s&seeds=1",
    ];
    for (const fragment of hostile) {
      await browser.open(`${page}#${fragment}`);
      await browser.until(`!byId('q-error').hidden || ${done}`);
      assert.equal(await browser.value("document.title"), "Narrows: which transport for this link?", fragment);
      assert.equal(await browser.value("document.querySelectorAll('img').length"), 0, fragment);
    }
  },

  // Text can be read in both themes, on each view.
  async contrast_is_that_of_wcag_aa(browser) {
    for (const dark of [false, true]) {
      for (const view of ["compare", "own", "lessons"]) {
        await browser.open(`${page}#link=5Mbit/s,20ms&protocols=cubic,rrtp&duration=3s&seeds=2&page-view=${view}`, { dark });
        await browser.until(done);
        const { texts, faint } = await browser.value(FAINT);
        assert.ok(texts > 50, `${texts} texts`);
        assert.deepEqual(faint, [], `${view}, ${dark ? "dark" : "light"}`);
      }
    }
  },

  // All of it fits a telephone, can be reached by keys, and is named.
  async small_screen_and_keyboard(browser) {
    await browser.open(`${page}#link=5Mbit/s,20ms&protocols=cubic,rrtp&duration=3s&seeds=2`, { width: 400, height: 800, dark: true });
    await browser.until(done);
    assert.ok(await browser.value("document.documentElement.scrollWidth <= innerWidth"), "the page is no wider than the screen");
    const unnamed = await browser.value(`[...document.querySelectorAll('button, select, input, textarea')].filter((e) => e.offsetParent &&
      !(e.labels?.length || e.textContent.trim() || e.getAttribute('aria-label'))).map((e) => e.id || e.outerHTML)`);
    assert.deepEqual(unnamed, []);
    const reached = new Set();
    await browser.value("document.body.focus()");
    for (let i = 0; i < 60; i += 1) {
      await browser.key("Tab", { windowsVirtualKeyCode: 9 });
      reached.add(await browser.value("document.activeElement.id || document.activeElement.dataset.view || document.activeElement.tagName"));
    }
    for (const id of ["lens", "q-link", "q-rate", "q-protocols", "share", "all"]) assert.ok(reached.has(id), `${id} is reached by Tab`);
  },
};

const [, , , program, only] = process.argv;
const browser = new Browser(program);
let failed = 0;
try {
  for (const [name, test] of Object.entries(TESTS).filter(([name]) => !only || name === only)) {
    browser.errors.length = 0;
    try {
      await test(browser);
      assert.deepEqual(browser.errors, [], "errors in the console");
      console.log(`ok ${name}`);
    } catch (error) {
      failed += 1;
      console.error(`FAILED ${name}: ${error.message}`);
    }
  }
} finally {
  await browser.close();
}
process.exit(failed ? 1 : 0);
