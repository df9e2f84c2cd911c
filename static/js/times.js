// Times: as UTC, as the browser's own time, or relative, as the person chose. The page holds absolute UTC, which stands
// without JavaScript; where another form is chosen, times stay hidden until they have it, so that none changes before one's eyes.
"use strict";
(() => {
  const order = ["relative", "UTC", "local"];
  const root = document.documentElement;
  const units = [[86400, "d"], [3600, "h"], [60, "min"]];
  const mostDays = 30;
  const read = () => {
    try { const name = localStorage.getItem("ctx-times"); return order.includes(name) ? name : order[0]; } catch { return order[0]; }
  };
  const two = (number) => String(number).padStart(2, "0");
  const months = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");
  const local = (at) => `${at.getDate()} ${months[at.getMonth()]} ${at.getFullYear()}, ${two(at.getHours())}:${two(at.getMinutes())}`;
  const relative = (at, absolute) => {
    const past = (Date.now() - at) / 1000, apart = Math.abs(past);
    if (apart > mostDays * 86400) return absolute;
    if (apart < 60) return past < 0 ? "in a moment" : "just now";
    const [long, word] = units.find(([seconds]) => apart >= seconds);
    const text = `${Math.floor(apart / long)} ${word}`;
    return past < 0 ? `in ${text}` : `${text} ago`;
  };
  const write = (place, name) => {
    place.dataset.utc ??= place.textContent;
    const at = new Date(place.dateTime), {utc} = place.dataset;
    const text = name === "UTC" ? utc : name === "local" ? local(at) : relative(at, utc);
    if (place.textContent !== text) place.textContent = text;
  };
  const writeAll = (part) => {
    const name = read();
    for (const place of part.querySelectorAll("time[datetime]")) write(place, name);
    for (const place of document.querySelectorAll("[data-times-name]")) place.textContent = name;
  };
  const next = () => {
    const name = order[(order.indexOf(read()) + 1) % order.length];
    try { localStorage.setItem("ctx-times", name); } catch { /* private mode: the first stays */ }
    writeAll(document);
    return read();
  };
  root.dataset.times = "set";
  document.addEventListener("DOMContentLoaded", () => writeAll(document));
  // Parts that are fetched anew are written before they are painted.
  document.addEventListener("htmx:afterSwap", () => writeAll(document));
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-times-next]")) next();
  });
  setInterval(() => { if (!document.hidden && read() === "relative") writeAll(document); }, 60000);
  window.ctxNextTimes = next;
})();
