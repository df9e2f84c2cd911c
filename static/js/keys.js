// Keys of the console. Each does what a link or button on the page does; none works while a field has the focus.
"use strict";
(() => {
  const never = -Infinity;
  let leader = never;
  const one = (selector) => document.querySelector(selector);
  const say = (text) => {
    const place = document.getElementById("said");
    if (place) place.textContent = text;
  };
  const follow = (link) => {
    if (link) link.click();
    return Boolean(link);
  };
  const typing = (target) => target.closest("input, select, textarea, [contenteditable]");

  const moveLine = (by) => {
    const links = [...document.querySelectorAll(lines)]
      .map((row) => row.querySelector("a"))
      .filter(Boolean);
    if (!links.length) return false;
    const row = document.activeElement.closest(lines);
    const at = row ? links.findIndex((link) => row.contains(link)) : by > 0 ? -1 : links.length;
    const target = links[Math.min(links.length - 1, Math.max(0, at + by))];
    target.focus();
    return true;
  };

  const unfold = () => {
    const all = [...document.querySelectorAll("main details")];
    const open = all.some((part) => !part.open);
    // Opening everything loads everything: a screenful at a time is enough.
    for (const part of open ? all.filter((each) => !each.open).slice(0, 30) : all) part.open = open;
    return all.length > 0;
  };

  // A line of a table, or of a list that is no table.
  const lines = "[data-list] tbody tr, ol[data-list] > li";

  const copy = () => {
    navigator.clipboard?.writeText(location.href).then(() => say("Address copied"), () => say("Copying was not allowed"));
    return true;
  };

  const acts = {
    "/": () => { const box = document.getElementById("jump"); box?.focus(); box?.select(); return Boolean(box); },
    "?": () => follow(one('.foot a[href$="/keys/"]')),
    t: () => { say(`Colours: ${window.ctxNextTheme()}`); return true; },
    u: () => { say(`Times: ${window.ctxNextTimes()}`); return true; },
    v: () => { say(`Live: ${window.ctxNextLive()}`); return true; },
    c: copy,
    e: unfold,
    j: () => follow(one('.head.page a[rel="next"]')) || moveLine(1),
    k: () => follow(one('.head.page a[rel="prev"]')) || moveLine(-1),
    d: () => follow(one('.head.page a[href*="/diff/"]')),
    ".": () => follow(one(".head.page a[download]")),
    p: () => follow(document.activeElement.closest(lines)?.querySelector("[data-peek]")),
  };

  document.addEventListener("keydown", (event) => {
    // An open drawer has keys of its own (peek.js).
    if (one("dialog[open]")) return;
    if (event.key === "Escape") {
      document.activeElement?.blur();
      for (const menu of document.querySelectorAll(".who[open]")) menu.open = false;
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    if (event.timeStamp - leader < 1200) {
      leader = never;
      if (follow(one(`[data-go="${CSS.escape(event.key)}"]`))) event.preventDefault();
      return;
    }
    if (event.key === "g") { leader = event.timeStamp; return; }
    const act = acts[event.key];
    if (act && act()) event.preventDefault();
  });

  // An address that names an item opens it.
  const openNamed = () => {
    const place = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const part = place && (place.matches("details") ? place : place.querySelector("details"));
    if (part) part.open = true;
  };
  addEventListener("hashchange", openNamed);
  addEventListener("load", openNamed);

  // What is copied from an address is exact, however long: what a page shows of it may be drawn otherwise.
  const textOf = async (address) => {
    const answer = await fetch(address);
    if (!answer.ok || answer.redirected) throw new Error(answer.status);
    return new Blob([await answer.text()], {type: "text/plain"});
  };
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-copy], [data-copy-from]");
    if (!button) return;
    if (!navigator.clipboard) { say("Copying needs https, or an address of this machine"); return; }
    const {copy: place, copyFrom: address} = button.dataset;
    const done = address
      ? navigator.clipboard.write([new ClipboardItem({"text/plain": textOf(address)})])
      : navigator.clipboard.writeText(one(place)?.textContent ?? "");
    done.then(() => say("Copied"), () => say("Nothing was copied: it was not allowed, or the server refused"));
  });

  document.addEventListener("htmx:beforeRequest", (event) => event.detail.target?.setAttribute("aria-busy", "true"));
  document.addEventListener("htmx:afterRequest", (event) => event.detail.target?.removeAttribute("aria-busy"));
  document.addEventListener("htmx:sendError", () => say("The server did not answer. Try again."));
  document.addEventListener("htmx:responseError", (event) => say(`The server refused: ${event.detail.xhr.status}`));
})();
