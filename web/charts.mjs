// The charts of a report, drawn from the JSON in the page. Every figure is the summary's: nothing is
// computed here but places on the screen.
import {barX, barY, cell, dot, gridX, gridY, line, plot, ruleX, ruleY, text, tickX} from "@observablehq/plot";

const data = JSON.parse(document.getElementById("data").textContent);
const width = () => Math.max(320, Math.min(1040, document.querySelector("main").clientWidth));

const scales = [["", 1], ["Ki", 2 ** 10], ["Mi", 2 ** 20], ["Gi", 2 ** 30], ["Ti", 2 ** 40]];
function bytes(value) {
  const [unit, step] = scales.findLast(([, least]) => value >= least) ?? scales[0];
  const number = value / step;
  return `${number >= 100 || Number.isInteger(number) ? Math.round(number) : number.toPrecision(3)} ${unit}B`;
}
function seconds(value) {
  if (value === 0) return "0";
  for (const [unit, step] of [["s", 1], ["ms", 1e-3], ["us", 1e-6]])
    if (value >= step) return `${(value / step).toPrecision(3)} ${unit}`;
  return `${(value / 1e-9).toPrecision(3)} ns`;
}

// Parts of time differ by pattern as well as by colour.
const fills = {compute: "var(--outside)", other: "var(--rest)", outside: "var(--outside)", data: "url(#hatch-data)",
  compress: "url(#hatch-compress)", moving: "var(--moving)", waiting: "url(#hatch-waiting)", hidden: "url(#hatch-hidden)"};
const parts = Object.keys(fills);
const byPart = {domain: parts, range: parts.map(part => fills[part])};

// A chart is one image with a name; what it shows is in the table below it.
function put(id, label, options) {
  const figure = document.getElementById(id);
  if (!figure) return;
  const drawn = plot({...options, style: {background: "transparent", color: "currentColor", fontSize: "12px"}});
  drawn.setAttribute("role", "img");
  drawn.setAttribute("aria-label", label);
  for (const inner of drawn.querySelectorAll("[aria-label]")) inner.removeAttribute("aria-label");
  for (const inner of drawn.querySelectorAll("[aria-description]")) inner.removeAttribute("aria-description");
  figure.replaceChildren(drawn);
}

function ranks() {
  const rows = data.ranks.flatMap(rank => [
    {rank: rank.rank, part: "outside", value: rank.outside_s},
    {rank: rank.rank, part: "moving", value: rank.moving_s},
    {rank: rank.rank, part: "waiting", value: rank.waited_s ?? 0}]);
  put("chart-ranks", "Time of each rank outside of communication, moving data and waiting", {
    width: width(), height: 60 + 22 * data.ranks.length, marginLeft: 60, marginBottom: 44,
    x: {label: "seconds"}, y: {label: "rank", type: "band"},
    color: byPart,
    marks: [gridX({strokeOpacity: .15}), barX(rows, {x: "value", y: "rank", fill: "part", title: d => `rank ${d.rank}, ${d.part}: ${seconds(d.value)}`}),
      ruleX([0])]});
}

function sizes(routine, index) {
  if (routine.bins.length === 0) return;
  const bins = routine.bins.map(bin => ({...bin, label: bin.bytes === 0 ? "0" : bytes(bin.bytes)}));
  const domain = bins.map(bin => bin.label);
  const common = {width: Math.min(width(), 120 + 62 * bins.length), height: 200, marginLeft: 64, marginBottom: 44, marginTop: 24, insetTop: 14,
    x: {label: "size, from", type: "band", domain}};
  put(`chart-calls-${index}`, `${routine.name}: calls by size`, {...common, y: {label: "calls", type: "sqrt"},
    marks: [gridY({strokeOpacity: .15}), barY(bins, {x: "label", y: "calls", fill: "var(--moving)", title: d => `${d.label}: ${d.calls} calls`}),
      text(bins, {x: "label", y: "calls", text: d => String(d.calls), dy: -7}), ruleY([0])]});
  put(`chart-time-${index}`, `${routine.name}: time by size`, {...common, y: {label: "seconds, all ranks"},
    marks: [gridY({strokeOpacity: .15}), barY(bins, {x: "label", y: "seconds", fill: "var(--waiting)", title: d => `${d.label}: ${seconds(d.seconds)}`}),
      text(bins, {x: "label", y: "seconds", text: d => seconds(d.seconds), dy: -7}), ruleY([0])]});
}

function matrix() {
  const {ranks, sent_bytes} = data.matrix;
  if (sent_bytes.length === 0) return;
  const most = Math.max(...sent_bytes.flat());
  const cells = sent_bytes.flatMap((row, from) => row.map((sent, to) => ({from: ranks[from], to: ranks[to], sent})));
  const side = Math.max(26, Math.min(64, (width() - 90) / ranks.length));
  put("chart-matrix", "Bytes sent from rank to rank", {
    width: 90 + side * ranks.length, height: 70 + side * ranks.length * .7, marginLeft: 60, marginTop: 44, padding: .04,
    x: {label: "to rank", type: "band", domain: ranks, axis: "top"}, y: {label: "from rank", type: "band", domain: ranks},
    marks: [cell(cells, {x: "to", y: "from", fill: "var(--low)"}),
      cell(cells, {x: "to", y: "from", fill: "var(--high)", fillOpacity: d => d.sent / most, title: d => `${d.from} to ${d.to}: ${bytes(d.sent)}`}),
      ...(side >= 46 ? [text(cells.filter(d => d.sent > 0 && d.sent <= most / 2), {x: "to", y: "from", text: d => bytes(d.sent), fontSize: 10}),
        text(cells.filter(d => d.sent > most / 2), {x: "to", y: "from", text: d => bytes(d.sent), fontSize: 10, fill: "var(--page)"})] : [])]});
}

function iterations() {
  if (data.strip.length === 0) return;
  const name = at => at.number === at.last ? `${at.number}` : `${at.number}-${at.last}`;
  const bars = data.strip.flatMap((at, index) => ["compute", "data", "compress", "moving", "waiting", "other"].map(part =>
    ({index, part, value: at.split[`${part}_s`], title: `iteration ${name(at)}, ${data.phases[at.phase].name}, ${part}: ${seconds(at.split[`${part}_s`])}`})));
  const hidden = data.strip.map((at, index) => ({index, value: -at.split.hidden_s, title: `iteration ${name(at)}, hidden: ${seconds(at.split.hidden_s)}`}));
  const phases = data.phases.map((phase, number) => ({phase, index: data.strip.findIndex(at => at.phase === number)})).filter(d => d.index >= 0);
  const most = Math.max(...data.strip.map(at => at.split.elapsed_s));
  put("chart-iterations", "Time of each iteration by what it was spent on; below the line: communication that was hidden", {
    width: width(), height: 260, marginLeft: 64, marginTop: 34, marginBottom: 44,
    x: {label: "iteration", type: "band", domain: data.strip.map((_, index) => index), padding: .05, tickFormat: index => name(data.strip[index]),
      ticks: data.strip.map((_, index) => index).filter(index => index % Math.ceil(data.strip.length / 10) === 0)},
    y: {label: "seconds"}, color: byPart,
    marks: [gridY({strokeOpacity: .15}), barY(bars, {x: "index", y: "value", fill: "part", title: "title"}),
      ...(hidden.some(d => d.value < 0) ? [barY(hidden, {x: "index", y: "value", fill: fills.hidden, title: "title"})] : []), ruleY([0]),
      ruleX(phases, {x: "index", stroke: "currentColor", strokeDasharray: "3 3", strokeOpacity: .6}),
      text(phases, {x: "index", y: () => most, dy: -16, textAnchor: "start", text: d => d.phase.name, fontWeight: 600})]});
}

function lanes() {
  const marks = data.lanes.flatMap(lane => lane.marks.map(([begin, end, part]) => ({rank: lane.rank, begin, end, part})));
  if (marks.length === 0) return;
  const bar = {x1: "begin", x2: "end", y: "rank", fill: "part", title: d => `rank ${d.rank}, ${d.part}: ${seconds(d.end - d.begin)} at ${seconds(d.begin)}`};
  put("chart-lanes", "What each rank did over time", {
    width: width(), height: 70 + 24 * data.lanes.length, marginLeft: 60, marginBottom: 44,
    x: {label: "seconds from the start"}, y: {label: "rank", type: "band", domain: data.lanes.map(lane => lane.rank), padding: .15}, color: byPart,
    marks: [gridX({strokeOpacity: .15}), barX(marks.filter(d => d.part !== "hidden"), bar),
      barX(marks.filter(d => d.part === "hidden"), {...bar, insetTop: 9})]});
}

function heat() {
  const {ranks, share, cell_s, what} = data.heat;
  if (ranks.length === 0) return;
  const cells = share.flatMap((row, rank) => row.map((value, index) => ({rank: ranks[rank], index, value})));
  const fixed = {x: "index", y: "rank"};
  put("chart-heat", `Share of ${what} of each rank over time`, {
    width: width(), height: 80 + 20 * ranks.length, marginLeft: 60, marginBottom: 44, padding: .02,
    x: {label: "seconds from the start", type: "band", ticks: share[0].map((_, index) => index).filter(index => index % 8 === 0), tickFormat: index => `${Number((index * cell_s).toPrecision(2))}`},
    y: {label: "rank", type: "band"},
    marks: [cell(cells, {...fixed, fill: "var(--low)"}),
      cell(cells, {...fixed, fill: "var(--high)", fillOpacity: "value", title: d => `rank ${d.rank} at ${seconds(d.index * cell_s)}: ${(100 * d.value).toFixed(0)} % ${what}`})]});
}

function bandwidth() {
  if (data.bandwidth.length === 0) return;
  const rows = data.bandwidth.map(row => ({...row, label: `${row.routine}, ${bytes(row.from_bytes)}`, rate: row.bytes_per_s.value / 1e9}));
  put("chart-bandwidth", "Rate of each class of calls", {
    width: width(), height: 70 + 22 * rows.length, marginLeft: Math.min(240, width() * .42), marginBottom: 44, marginRight: 90,
    x: {label: "GB/s of a rank"}, y: {label: null, type: "band", domain: rows.map(row => row.label)},
    marks: [gridX({strokeOpacity: .15}), barX(rows, {x: "rate", y: "label", fill: "var(--moving)", title: d => `${d.label}: ${d.rate.toPrecision(3)} GB/s, ${d.bytes_per_s.source}`}),
      text(rows, {x: "rate", y: "label", text: d => `${d.rate.toPrecision(3)} ${d.bytes_per_s.source}`, dx: 4, textAnchor: "start"}),
      ...(data.link ? [ruleX([data.link.bytes_per_s.value / 1e9], {stroke: "var(--bad)", strokeWidth: 2, strokeDasharray: "4 3"})] : []), ruleX([0])]});
}

function model() {
  if (!data.model || data.model.rows.length === 0) return;
  const {link, rows} = data.model;
  put("chart-model", "Measured and modelled times by size; the line is one message on the link", {
    width: width(), height: 320, marginLeft: 64, marginBottom: 44, x: {label: "bytes", type: "log", tickFormat: bytes}, y: {label: "seconds", type: "log", tickFormat: seconds},
    marks: [gridX({strokeOpacity: .15}), gridY({strokeOpacity: .15}), line(link, {x: "bytes", y: "seconds", stroke: "var(--outside)", strokeWidth: 2}),
      ruleX(rows, {x: "bytes", y1: "low_s", y2: "high_s", stroke: "var(--waiting)", strokeWidth: 6, strokeOpacity: .5}),
      dot(rows, {x: "bytes", y: "best_s", symbol: "square", stroke: "var(--waiting)", r: 6, title: d => `${d.routine}, ${bytes(d.bytes)}: modelled ${seconds(d.best_s)} (${d.best})`}),
      dot(rows, {x: "bytes", y: "measured_s", fill: "var(--moving)", r: 5, title: d => `${d.routine}, ${bytes(d.bytes)}: measured ${seconds(d.measured_s)}`})]});
}

function scaling() {
  if (!data.model || data.model.scaling.length === 0) return;
  const points = data.model.scaling;
  put("chart-scaling", `${data.model.scaled} on more ranks, modelled`, {
    width: Math.min(width(), 760), height: 280, marginLeft: 72, marginBottom: 44, x: {label: "ranks", type: "log", base: 2, tickFormat: d => `${d}`},
    y: {label: "seconds, modelled", tickFormat: seconds, zero: true},
    marks: [gridY({strokeOpacity: .15}), ruleX(points, {x: "ranks", y1: "low", y2: "high", stroke: "var(--waiting)", strokeWidth: 6, strokeOpacity: .5}),
      line(points, {x: "ranks", y: "seconds", stroke: "var(--moving)", strokeWidth: 2}),
      dot(points, {x: "ranks", y: "seconds", fill: "var(--moving)", r: 4, title: d => `${d.ranks} ranks: ${seconds(d.seconds)} (${d.algorithm})`}), ruleY([0])]});
}

// What a step consists of, by the names of the JSON: how each part is drawn, and what it is.
const stepParts = [["compute_us", "compute", "computing"], ["straggling_us", "waiting", "waiting for the slowest"],
  ["select_us", "compress", "choosing what to send"], ["slowed_us", "other", "slowed down by what travels meanwhile"],
  ["exposed_us", "moving", "exposed communication"]];

function workers() {
  if (!data.more_workers) return;
  const {results, measured, run} = data.more_workers;
  const ticks = Math.round(width() / 110);
  const bounded = results.filter(step => step.low_us < step.high_us);
  const bounds = {x1: d => d.low_us / 1e6, x2: d => d.high_us / 1e6, y: "workers"};
  const bars = results.flatMap(step => stepParts.map(([name, part, label]) =>
    ({workers: step.workers, part, value: step[name] / 1e6, title: `${step.workers} workers, ${label}: ${seconds(step[name] / 1e6)}, modelled`})));
  const seen = measured && results.some(step => step.workers === measured.workers) ? [measured] : [];
  put("chart-workers", `A step of ${run.name} on more workers, modelled: what it consists of, and the share that computes`, {
    width: width(), height: 58 + 26 * results.length, marginLeft: 60, marginTop: 8, marginBottom: 44, marginRight: 62,
    x: {label: "a step, modelled", tickFormat: seconds, ticks},
    y: {label: "workers", type: "band", domain: results.map(step => step.workers), padding: .15, tickFormat: count => `${count}`}, color: byPart,
    marks: [gridX({strokeOpacity: .15, ticks}), barX(bars, {x: "value", y: "workers", fill: "part", title: "title"}),
      ruleY(bounded, {...bounds, stroke: "var(--page)", strokeWidth: 5}), ruleY(bounded, {...bounds, strokeWidth: 2}),
      tickX(seen, {x: d => d.step_us / 1e6, y: "workers", stroke: "var(--bad)", strokeWidth: 3, title: d => `${d.workers} workers: ${seconds(d.step_us / 1e6)}, measured`}),
      text(results, {frameAnchor: "right", y: "workers", text: d => `${(100 * d.efficiency).toFixed(1)} %`, dx: 56}), ruleX([0])]});
}

function compression() {
  if (!data.compression) return;
  const rows = [{what: "dense", value: data.compression.dense_wire_bytes.value}, {what: "sparse", value: data.compression.sparse_wire_bytes.value}];
  put("chart-compression", "Bytes a rank sends an iteration, dense and sparse", {
    width: Math.min(width(), 760), height: 140, marginLeft: 70, marginBottom: 44, marginRight: 90, x: {label: "bytes a rank and iteration, modelled", tickFormat: bytes, ticks: 4},
    y: {label: null, type: "band", domain: ["dense", "sparse"]},
    marks: [gridX({strokeOpacity: .15}), barX(rows, {x: "value", y: "what", fill: "var(--moving)", title: d => `${d.what}: ${bytes(d.value)}`}),
      text(rows, {x: "value", y: "what", text: d => bytes(d.value), dx: 4, textAnchor: "start"}), ruleX([0])]});
}

function draw() {
  ranks();
  data.charted.forEach((name, index) => sizes(data.routines.find(routine => routine.name === name), index));
  matrix();
  iterations();
  lanes();
  heat();
  bandwidth();
  model();
  scaling();
  workers();
  compression();
}
draw();
for (const link of document.querySelectorAll(".chart-link"))
  if (!document.querySelector(link.firstElementChild.getAttribute("href"))) link.remove();
let last = width();
addEventListener("resize", () => { if (width() !== last) { last = width(); draw(); } });
