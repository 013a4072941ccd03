// Times in the browser's own zone, curves, and the page as it is now in place of the page as it was.
"use strict";
const UNITS = {
  share: (v) => `${(100 * v).toFixed(1)} %`,
  s: (v) => `${(1e3 * v).toFixed(1)} ms`,
  rate: (v) => {
    const power = v < 1 ? 0 : Math.min(5, Math.floor(Math.log2(v) / 10));
    return `${(v / 1024 ** power).toFixed(1)} ${["B", "KiB", "MiB", "GiB", "TiB", "PiB"][power]}/s`;
  },
};
const VERDICTS = document.documentElement.dataset.verdicts.split(" ");
UNITS.verdict = (v) => VERDICTS[v] ?? "";
const COLOURS = ["--first", "--second"];
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);

function draw(box) {
  const { unit, times, curves } = JSON.parse(box.dataset.chart);
  const said = UNITS[unit] || ((v) => v.toFixed(2));
  const value = (_, v) => (v === null ? "-" : said(v));
  const line = (name, at) => ({ label: name, value, stroke: colour(COLOURS[at]), width: 2, points: { size: 3 } });
  const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 } };
  const options = {
    width: box.clientWidth,
    height: 180,
    scales: unit === "verdict" ? { y: { range: [0, VERDICTS.length - 1] } } : {},
    axes: [axis, { ...axis, size: 90, values: (_, values) => values.map(said) }],
    series: [{ label: "at" }, ...Object.keys(curves).map(line)],
  };
  const plot = new uPlot(options, [times, ...Object.values(curves)], box);
  new ResizeObserver(() => plot.setSize({ width: box.clientWidth, height: 180 })).observe(box);
}

const two = (n) => String(n).padStart(2, "0");
const local = (d) =>
  `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;

function localize(main) {
  for (const time of main.querySelectorAll("time")) time.textContent = local(new Date(time.dateTime));
}

let since = "";
async function renew() {
  if (document.hidden) return;
  const stale = document.getElementById("stale");
  try {
    const answer = await fetch(location.href, { credentials: "same-origin" });
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    const found = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("main");
    const old = document.querySelector("main");
    localize(found);
    for (const one of old.querySelectorAll("input:checked"))
      found.querySelector(`#${CSS.escape(one.id)}`)?.setAttribute("checked", "");
    const focused = old.contains(document.activeElement) && document.activeElement;
    const place = focused && [...old.querySelectorAll("a, input, [tabindex]")].indexOf(focused);
    const headline = (main) => main.querySelector(".headline")?.textContent;
    if (headline(found) !== headline(old)) document.getElementById("spoken").textContent = headline(found);
    old.replaceWith(document.adoptNode(found));
    found.querySelectorAll(".chart").forEach(draw);
    if (focused) found.querySelectorAll("a, input, [tabindex]")[place]?.focus({ preventScroll: true });
    stale.hidden = true;
    since = "";
  } catch (error) {
    since ||= local(new Date());
    stale.textContent = `tarazu-page has not answered since ${since} (${error.message}): all below is older than that.`;
    stale.hidden = false;
  }
}

localize(document);
document.querySelectorAll(".chart").forEach(draw);
document.getElementById("zone").textContent = `Times are in ${Intl.DateTimeFormat().resolvedOptions().timeZone}; point at one for UTC.`;
const every = Number(document.documentElement.dataset.every) * 1000;
if (every) setInterval(renew, every);
