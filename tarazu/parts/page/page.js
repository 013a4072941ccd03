// Times in the browser's own zone; and the page as it is now takes the place of the page as it was, while somebody looks.
"use strict";
const every = Number(document.documentElement.dataset.every) * 1000;
const two = (n) => String(n).padStart(2, "0");
const months = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");
const day = (d) => `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}`;
const hour = (d) => `${two(d.getHours())}:${two(d.getMinutes())}`;
const said = (d) => `${day(d)} ${hour(d)}:${two(d.getSeconds())}`;
const offset = (d) => {
  const minutes = -d.getTimezoneOffset();
  return `UTC${minutes < 0 ? "−" : "+"}${two(Math.floor(Math.abs(minutes) / 60))}:${two(Math.abs(minutes) % 60)}`;
};
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
function localize(root) {
  for (const time of root.querySelectorAll("time")) {
    const date = new Date(time.dateTime);
    if (!Number.isNaN(date.getTime())) time.textContent = said(date);
  }
  for (const line of root.querySelectorAll(".zone"))
    line.textContent = `Times are in ${zone} (${offset(new Date())}); point at one for UTC.`;
  for (const svg of root.querySelectorAll("svg[data-ticks]")) {
    const { begin, end, ticks, left, right } = Object.fromEntries(Object.entries(svg.dataset).map(([k, v]) => [k, Number(v)]));
    const [model, ...others] = svg.querySelectorAll(".tick");
    if (!model) continue;
    others.forEach((tick) => tick.remove());
    const shift = new Date(end * 1000).getTimezoneOffset() * 60;
    for (let at = Math.ceil((begin - shift) / ticks) * ticks + shift; at <= end; at += ticks) {
      const x = left + ((at - begin) / (end - begin)) * (right - left);
      if (x < left + 10 || x > right - 10) continue;
      const date = new Date(at * 1000), tick = model.cloneNode();
      tick.textContent = ticks < 86400 ? hour(date) : `${months[date.getMonth()]} ${two(date.getDate())}`;
      tick.setAttribute("x", x.toFixed(1));
      model.before(tick);
    }
    model.remove();
  }
}
// Where the reader is, so that he is there still on the page as it is now.
const kinds = "a[href], input, summary, [tabindex]";
const place = (main, one) => [...main.querySelectorAll(kinds)].filter((other) => same(other, one)).indexOf(one);
const same = (a, b) => a.tagName === b.tagName && a.id === b.id && a.getAttribute("href") === b.getAttribute("href");
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
    for (const chosen of old.querySelectorAll("input:checked"))
      for (const one of found.querySelectorAll("input")) if (one.id === chosen.id) one.checked = true;
    const open = [...old.querySelectorAll("details")].map((one) => one.open);
    found.querySelectorAll("details").forEach((one, at) => (one.open = Boolean(open[at])));
    const boxes = [...old.querySelectorAll(".wide")].map((box) => [box.scrollLeft, box.scrollTop]);
    const focused = old.contains(document.activeElement) ? document.activeElement : null;
    const at = focused ? place(old, focused) : -1;
    const headline = (main) => main.querySelector(".headline")?.textContent;
    const news = headline(found) === headline(old) ? "" : headline(found);
    old.replaceWith(document.adoptNode(found));
    found.querySelectorAll(".wide").forEach((box, at) => boxes[at] && box.scrollTo(...boxes[at]));
    if (at >= 0) [...found.querySelectorAll(kinds)].filter((other) => same(other, focused))[at]?.focus({ preventScroll: true });
    if (news) document.getElementById("spoken").textContent = news;
    stale.hidden = true;
    since = "";
  } catch (error) {
    since ||= said(new Date());
    stale.textContent = `tarazu-page has not answered since ${since} (${error.message}): all below is older than that.`;
    stale.hidden = false;
  }
}
localize(document);
// A click on an OST of the map leads to it; by keyboard its server's page does.
function clicked(event) {
  const cell = event.target.closest(".map i");
  if (cell) return [cell.parentElement.dataset, 0, [...cell.parentElement.children].indexOf(cell)];
  const drawing = event.target.closest(".block svg");
  if (!drawing) return null;
  const { left, top } = drawing.getBoundingClientRect();
  return [drawing.dataset, Math.floor((event.clientY - top) / 15), Math.floor((event.clientX - left) / 14)];
}
document.addEventListener("click", (event) => {
  const found = clicked(event);
  if (!found) return;
  const [{ at, osts }, line, column] = found;
  const ost = osts.split(";")[line]?.split(" ")[column];
  if (ost) location.href = `${at}-OST${Number(ost).toString(16).padStart(4, "0")}`;
});
if (every) setInterval(renew, every);
