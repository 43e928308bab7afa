// Opens pages in a real browser: light and dark, wide and on a phone. Says what is wrong and exits 1.
// usage: node pages.mjs FOLDER_WITH_NODE_MODULES PAGE...
import {readFileSync} from "node:fs";
import {createRequire} from "node:module";
import {resolve} from "node:path";

const [, , folder, ...pages] = process.argv;
const require = createRequire(resolve(folder, "package.json"));
const {chromium} = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const faults = [];

async function look(browser, file, colorScheme, width, scripts) {
  const where = `${file}, ${colorScheme}, ${width} px${scripts ? "" : ", without scripts"}`;
  const fault = what => faults.push(`${where}: ${what}`);
  // Once as people get it; axe comes in by a way that the page's own policy forbids.
  for (const bypassCSP of scripts ? [false, true] : [false]) {
    const context = await browser.newContext({colorScheme, viewport: {width, height: 1000}, javaScriptEnabled: scripts, offline: true, bypassCSP});
    const page = await context.newPage();
    page.on("console", message => fault(`console: ${message.text()}`));
    page.on("pageerror", error => fault(`error: ${error}`));
    page.on("request", request => { if (!request.url().startsWith("file:")) fault(`asks for ${request.url()}`); });
    await page.goto(`file://${resolve(file)}`);
    const text = await page.innerText("main");
    if (text.length < 200) fault("hardly any text");
    if (scripts) {
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      if (wide > width) fault(`${wide} px wide`);
      const empty = await page.evaluate(() => [...document.querySelectorAll("figure")].filter(f => f.querySelectorAll("rect, circle").length === 0).map(f => f.id));
      if (empty.length > 0) fault(`empty charts: ${empty}`);
    }
    if (bypassCSP) {
      await page.evaluate(axe);
      const {violations} = await page.evaluate(() => globalThis.axe.run());
      for (const violation of violations) fault(`axe ${violation.id}: ${violation.nodes[0].html.slice(0, 150)}`);
    }
    await context.close();
  }
}

// What a chart draws is what the JSON says: lengths, places and shades follow its figures.
async function compare(browser, file) {
  const page = await (await browser.newContext({viewport: {width: 1200, height: 1000}})).newPage();
  await page.goto(`file://${resolve(file)}`);
  const wrong = await page.evaluate(() => {
    const data = JSON.parse(document.getElementById("data")?.textContent ?? "null");
    if (!data?.charted) return [];
    const found = [];
    const drawn = id => [...document.querySelectorAll(`#${id} svg`)].length > 0;
    const rects = id => [...document.querySelectorAll(`#${id} g rect`)];
    const number = (node, name) => Number(node.getAttribute(name));
    const check = (id, what, holds) => { if (!holds) found.push(`${id}: ${what}`); };
    const falling = list => list.filter(value => value > 1e-12).sort((a, b) => b - a);
    // The longest gives the scale; all others must follow it to a pixel.
    const follows = (id, lengths, values) => {
      const [got, want] = [falling(lengths), falling(values)];
      check(id, `draws ${got.length} of ${want.length}`, got.length >= want.length * .98 && got.length <= want.length);
      const scale = got[0] / want[0];
      check(id, "lengths differ from the figures", got.every((length, i) => Math.abs(length - want[i] * scale) < .6 + length * .01));
    };
    const line = (id, points) => {  // [place, value]: places are linear in values
      const [low, high] = [points.reduce((a, b) => a[1] < b[1] ? a : b), points.reduce((a, b) => a[1] > b[1] ? a : b)];
      const slope = high[1] === low[1] ? 0 : (high[0] - low[0]) / (high[1] - low[1]);
      check(id, "places differ from the figures", points.every(([place, value]) => Math.abs(place - low[0] - slope * (value - low[1])) < 1));
    };
    const part = ["compute_s", "data_s", "compress_s", "moving_s", "waiting_s", "other_s"];

    follows("chart-ranks", rects("chart-ranks").map(rect => number(rect, "width")), data.ranks.flatMap(rank => [rank.outside_s, rank.moving_s, rank.waited_s ?? 0]));
    data.charted.forEach((name, index) => {
      const {bins} = data.routines.find(routine => routine.name === name);
      follows(`chart-calls-${index}`, rects(`chart-calls-${index}`).map(rect => number(rect, "height")), bins.map(bin => Math.sqrt(bin.calls)));
      follows(`chart-time-${index}`, rects(`chart-time-${index}`).map(rect => number(rect, "height")), bins.map(bin => bin.seconds));
    });
    const shades = id => rects(id).filter(rect => rect.hasAttribute("fill-opacity")).map(rect => number(rect, "fill-opacity"));
    const shaded = (id, values) => check(id, "shades differ from the figures", shades(id).length === values.length && shades(id).every((shade, i) => Math.abs(shade - values[i]) < 1e-6));
    const {sent_bytes} = data.matrix, most = Math.max(...sent_bytes.flat());
    if (sent_bytes.length > 0) shaded("chart-matrix", sent_bytes.flat().map(sent => sent / most));
    if (data.heat.ranks.length > 0) shaded("chart-heat", data.heat.share.flat());
    if (data.strip.length > 0) {
      follows("chart-iterations", rects("chart-iterations").map(rect => number(rect, "height")), data.strip.flatMap(at => [...part.map(name => at.split[name]), at.split.hidden_s]));
      const names = [...document.querySelectorAll("#chart-iterations text")].map(node => node.textContent);
      for (const phase of data.phases) check("chart-iterations", `no band for ${phase.name}`, names.includes(phase.name));
    }
    const marks = data.lanes.flatMap(lane => lane.marks);
    check("chart-lanes", `${marks.length} marks`, marks.length <= 4000);
    if (marks.length > 0) follows("chart-lanes", rects("chart-lanes").map(rect => number(rect, "width")), marks.map(([begin, end]) => end - begin));
    if (data.bandwidth.length > 0) follows("chart-bandwidth", rects("chart-bandwidth").map(rect => number(rect, "width")), data.bandwidth.map(row => row.bytes_per_s.value));
    if (data.compression) follows("chart-compression", rects("chart-compression").map(rect => number(rect, "width")), [data.compression.dense_wire_bytes.value, data.compression.sparse_wire_bytes.value]);
    const circles = id => [...document.querySelectorAll(`#${id} circle`)];
    if (data.model?.rows.length > 0) {
      const dots = circles("chart-model");
      check("chart-model", `${dots.length} dots`, dots.length === data.model.rows.length);
      line("chart-model", dots.map((dot, i) => [number(dot, "cy"), Math.log(data.model.rows[i].measured_s)]));
    }
    if (data.model?.scaling.length > 0) {
      const dots = circles("chart-scaling");
      check("chart-scaling", `${dots.length} dots`, dots.length === data.model.scaling.length);
      line("chart-scaling", dots.map((dot, i) => [number(dot, "cy"), data.model.scaling[i].seconds]));
      line("chart-scaling", dots.map((dot, i) => [number(dot, "cx"), Math.log(data.model.scaling[i].ranks)]));
    }
    if (data.more_workers) {
      const {results, measured} = data.more_workers, id = "chart-workers";
      const parts = ["compute_us", "straggling_us", "select_us", "slowed_us", "exposed_us"];
      follows(id, rects(id).map(rect => number(rect, "width")), results.flatMap(step => parts.map(name => step[name])));
      // Bars of one worker count follow each other from 0 to its step, where the longest gives the scale.
      const rows = Map.groupBy(rects(id), rect => number(rect, "y"));
      const ends = [...rows.keys()].sort((a, b) => a - b).map(y => Math.max(...rows.get(y).map(rect => number(rect, "x") + number(rect, "width"))));
      const begin = Math.min(...rects(id).map(rect => number(rect, "x")));
      check(id, `${ends.length} rows of bars`, ends.length === results.length);
      line(id, [[begin, 0], ...ends.map((end, i) => [end, results[i].step_us])]);
      const rules = [...document.querySelectorAll(`#${id} line`)].filter(node => node.closest("g").getAttribute("stroke-width") === "2" && number(node, "y1") === number(node, "y2"));
      const bounded = results.filter(step => step.low_us < step.high_us);
      check(id, `${rules.length} of ${bounded.length} bounds`, rules.length === bounded.length);
      line(id, [[begin, 0], ...rules.flatMap((rule, i) => [[number(rule, "x1"), bounded[i].low_us], [number(rule, "x2"), bounded[i].high_us]]),
        ...ends.map((end, i) => [end, results[i].step_us])]);
      const seen = [...document.querySelectorAll(`#${id} line`)].filter(node => node.closest("g")?.getAttribute("stroke") === "var(--bad)");
      check(id, "no mark of what was measured", seen.length === (measured && results.some(step => step.workers === measured.workers) ? 1 : 0));
      if (seen.length > 0) line(id, [[begin, 0], [number(seen[0], "x1"), measured.step_us], ...ends.map((end, i) => [end, results[i].step_us])]);
      const shares = [...document.querySelectorAll(`#${id} text`)].map(node => node.textContent).filter(words => words.endsWith("%"));
      check(id, "shares differ from the figures", shares.join() === results.map(step => `${(100 * step.efficiency).toFixed(1)} %`).join());
    }
    for (const figure of document.querySelectorAll("figure")) check(figure.id, "not drawn", drawn(figure.id));
    return found;
  });
  for (const what of wrong) faults.push(`${file}: ${what}`);
}

const browser = await chromium.launch({executablePath: "/usr/bin/chromium", args: ["--no-sandbox"]});
for (const file of pages) {
  for (const scheme of ["light", "dark"])
    for (const width of [1200, 390]) await look(browser, file, scheme, width, true);
  await look(browser, file, "light", 1200, false);
  await compare(browser, file);
}
await browser.close();
for (const fault of faults) console.error(fault);
console.log(`${pages.length} pages, ${faults.length} faults`);
process.exit(faults.length === 0 ? 0 : 1);
