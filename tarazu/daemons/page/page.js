// The page as it is now takes the place of the page as it was; nothing is asked for while nobody looks.
"use strict";
const every = Number(document.documentElement.dataset.every) * 1000;
async function renew() {
  if (document.hidden) return;
  try {
    const answer = await fetch(location.href, { credentials: "same-origin" });
    if (!answer.ok) throw new Error(answer.status);
    const found = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("main");
    const old = document.querySelector("main");
    for (const chosen of old.querySelectorAll("input:checked"))
      for (const one of found.querySelectorAll("input")) if (one.id === chosen.id) one.checked = true;
    const places = [...old.querySelectorAll(".wide")].map((box) => [box.scrollLeft, box.scrollTop]);
    old.replaceWith(document.adoptNode(found));
    found.querySelectorAll(".wide").forEach((box, at) => places[at] && box.scrollTo(...places[at]));
    document.getElementById("stale").hidden = true;
  } catch {
    document.getElementById("stale").hidden = false;
  }
}
if (every) setInterval(renew, every);
