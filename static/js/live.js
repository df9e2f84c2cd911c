// Live: an open page asks now and then whether there is something newer, and says so. It never moves by itself.
"use strict";
(() => {
  const every = 5000, most = 60000, mostFollowed = 10000, patience = 3;
  let wait = every, failed = 0, timer = 0;

  const state = () => {
    try { return localStorage.getItem("ctx-live") === "off" ? "off" : "on"; } catch { return "on"; }
  };
  const show = () => {
    for (const place of document.querySelectorAll("[data-live-name]")) place.textContent = state();
  };
  // What asks: a line that says what is newer, or one that follows it.
  const asking = ".news, .follow", one = () => document.querySelector(asking);
  // A page that follows says so only while it does.
  const tell = () => {
    const place = document.getElementById("paused"), following = document.querySelector(".follow .js");
    if (!place || !following) return;
    const words = state() === "off" ? "▲ paused: live is off" : failed < patience ? "" : "▲ paused: the server did not answer; reload to go on";
    if (place.textContent !== words) place.textContent = words;
    following.hidden = Boolean(words);
  };
  const plan = () => {
    tell();
    clearTimeout(timer);
    timer = 0;
    if (state() === "on" && failed < patience && one()) timer = setTimeout(tick, wait);
  };
  const tick = () => {
    if (!document.hidden) document.body.dispatchEvent(new CustomEvent("ctx:tick"));
    // Where nobody touches the page, it asks less and less often.
    wait = Math.min(document.querySelector(".follow") ? mostFollowed : most, wait * 1.4);
    plan();
  };
  const wake = () => {
    if (wait === every) return;
    wait = every;
    plan();
  };
  const next = () => {
    const name = state() === "on" ? "off" : "on";
    try { localStorage.setItem("ctx-live", name); } catch { /* private mode: on for good */ }
    failed = 0;
    wait = every;
    show();
    plan();
    return state();
  };

  for (const name of ["keydown", "pointerdown", "visibilitychange"]) document.addEventListener(name, wake);
  document.addEventListener("htmx:afterRequest", (event) => {
    if (!event.detail.elt.matches(asking)) return;
    // What is followed goes on: the next ones are not far.
    if (event.detail.xhr.status === 200 && event.detail.elt.matches(".follow")) wake();
    failed = event.detail.successful ? 0 : failed + 1;
    if (failed === patience) plan();
  });
  // A list that was fetched anew may ask again, where the one before it could not.
  document.addEventListener("htmx:afterSettle", (event) => {
    const part = event.detail.elt;
    if (timer || part.closest(".news") || !one()) return;
    failed = 0;
    plan();
  });
  // Work under way is fetched every second or two: not while live is off, nor while nobody sees the page.
  document.addEventListener("htmx:beforeRequest", (event) => {
    const ticks = event.detail.elt.matches("[hx-trigger^=every]");
    if (ticks && (document.hidden || state() === "off")) event.preventDefault();
  });
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-live-next]")) next();
  });
  document.addEventListener("DOMContentLoaded", () => { show(); plan(); });
  window.ctxNextLive = next;
})();
