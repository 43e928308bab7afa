// The charts of a report, drawn from the JSON in the page. Every figure is the summary's: nothing is
// computed here but places on the screen.
import {axisX, axisY, barX, barY, cell, gridX, gridY, plot, ruleX, ruleY, text} from "@observablehq/plot";

const data = JSON.parse(document.getElementById("data").textContent);
const width = () => Math.max(320, Math.min(1040, document.querySelector("main").clientWidth));

const scales = [["", 1], ["Ki", 2 ** 10], ["Mi", 2 ** 20], ["Gi", 2 ** 30], ["Ti", 2 ** 40]];
function bytes(value) {
  const [unit, step] = scales.findLast(([, least]) => value >= least) ?? scales[0];
  const number = value / step;
  return `${number >= 100 || Number.isInteger(number) ? Math.round(number) : number.toPrecision(3)} ${unit}B`;
}
function seconds(value) {
  for (const [unit, step] of [["s", 1], ["ms", 1e-3], ["us", 1e-6]])
    if (value >= step) return `${(value / step).toPrecision(3)} ${unit}`;
  return `${(value / 1e-9).toPrecision(3)} ns`;
}

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
  const parts = data.ranks.flatMap(rank => [
    {rank: rank.rank, part: "outside", value: rank.outside_s},
    {rank: rank.rank, part: "moving", value: rank.moving_s},
    {rank: rank.rank, part: "waiting", value: rank.waited_s ?? 0}]);
  put("chart-ranks", "Time of each rank outside of communication, moving data and waiting", {
    width: width(), height: 60 + 22 * data.ranks.length, marginLeft: 60, marginBottom: 44,
    x: {label: "seconds"}, y: {label: "rank", type: "band"},
    color: {domain: ["outside", "moving", "waiting"], range: ["var(--outside)", "var(--moving)", "var(--waiting)"]},
    marks: [gridX({strokeOpacity: .15}), barX(parts, {x: "value", y: "rank", fill: "part", title: d => `rank ${d.rank}, ${d.part}: ${seconds(d.value)}`}),
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

function draw() {
  ranks();
  data.charted.forEach((name, index) => sizes(data.routines.find(routine => routine.name === name), index));
  matrix();
}
draw();
let last = width();
addEventListener("resize", () => { if (width() !== last) { last = width(); draw(); } });
