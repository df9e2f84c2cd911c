// Colour scheme: set before the first paint, changed from the menu or with t.
"use strict";
(() => {
  const order = ["system", "light", "dark"];
  const root = document.documentElement;
  const read = () => {
    try { return localStorage.getItem("ctx-theme") || "system"; } catch { return "system"; }
  };
  const apply = (name) => {
    if (name === "light" || name === "dark") root.dataset.theme = name;
    else delete root.dataset.theme;
    for (const place of document.querySelectorAll("[data-theme-name]")) place.textContent = name;
  };
  const next = () => {
    const name = order[(order.indexOf(read()) + 1) % order.length];
    try { localStorage.setItem("ctx-theme", name); } catch { /* private mode: for this page only */ }
    apply(name);
    return name;
  };
  root.dataset.js = "on";
  apply(read());
  document.addEventListener("DOMContentLoaded", () => apply(read()));
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-theme-next]")) next();
  });
  window.ctxNextTheme = next;
})();
