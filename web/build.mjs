// Makes charts.min.js out of charts.mjs, and LICENSES.txt with the licence of every package in it.
import {build} from "esbuild";
import {readFileSync, readdirSync, writeFileSync} from "node:fs";

const {metafile} = await build({entryPoints: ["charts.mjs"], bundle: true, minify: true, format: "iife",
  target: "es2022", legalComments: "none", outfile: "charts.min.js", metafile: true});
const packages = new Set();
for (const input of Object.keys(metafile.inputs)) {
  const found = input.match(/^node_modules\/((?:@[^/]+\/)?[^/]+)\//);
  if (found) packages.add(found[1]);
}
let text = "charts.min.js contains these packages.\n";
for (const name of [...packages].sort()) {
  const folder = `node_modules/${name}`;
  const {version, license} = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
  const file = readdirSync(folder).find(entry => /^licen[cs]e/i.test(entry));
  text += `\n== ${name} ${version} (${license})\n\n${file ? readFileSync(`${folder}/${file}`, "utf8").trim() : ""}\n`;
}
writeFileSync("LICENSES.txt", text);
