// A part of the page that is fetched anew keeps the focus where it was.
"use strict";
(() => {
  const kinds = "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']";
  let kept = -1;
  document.addEventListener("htmx:beforeSwap", (event) => {
    const part = event.detail.target, focused = document.activeElement;
    // htmx itself finds elements with an id again.
    kept = part && part !== focused && part.contains(focused) && !focused.id
      ? [...part.querySelectorAll(kinds)].indexOf(focused) : -1;
  });
  document.addEventListener("htmx:afterSettle", (event) => {
    if (kept < 0 || document.activeElement !== document.body) return;
    const all = event.detail.elt.querySelectorAll(kinds);
    all[Math.min(kept, all.length - 1)]?.focus({preventScroll: true});
    kept = -1;
  });
})();
