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
      const empty = await page.evaluate(() => [...document.querySelectorAll("figure")].filter(f => f.querySelectorAll("rect").length === 0).map(f => f.id));
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

// The bars of a chart are as many as the figures they show.
async function compare(browser, file) {
  const page = await (await browser.newContext({viewport: {width: 1200, height: 1000}})).newPage();
  await page.goto(`file://${resolve(file)}`);
  const [want, got] = await page.evaluate(() => {
    const data = JSON.parse(document.getElementById("data").textContent);
    if (!data.charted) return [[], []];
    const bars = id => [...document.querySelectorAll(`#${id} rect`)].map(rect => rect.querySelector("title")?.textContent ?? "");
    const want = data.charted.map(name => data.routines.find(routine => routine.name === name).bins.map(bin => bin.calls));
    const got = data.charted.map((name, index) => bars(`chart-calls-${index}`).map(title => Number(title.match(/: (\d+) calls/)?.[1])));
    return [want, got];
  });
  if (JSON.stringify(want) !== JSON.stringify(got)) faults.push(`${file}: charts show ${JSON.stringify(got)}, the figures are ${JSON.stringify(want)}`);
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
