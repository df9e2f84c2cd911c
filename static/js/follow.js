// Follow: new lines join the table at its top. Who reads further down keeps what they read in its place.
"use strict";
(() => {
  let kept = null, top = 0;
  const follows = (event) => event.detail.requestConfig?.elt.matches(".follow");
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (!follows(event)) return;
    const rows = [...document.querySelectorAll("#events-body > tr")];
    // At the live end, where the first line is in sight, new ones push the others down.
    kept = rows[0]?.getBoundingClientRect().top >= 0 ? null : rows.find((row) => row.getBoundingClientRect().bottom > 0);
    top = kept?.getBoundingClientRect().top ?? 0;
  });
  document.addEventListener("htmx:afterSwap", (event) => {
    if (!kept || !follows(event)) return;
    scrollBy({top: kept.getBoundingClientRect().top - top, behavior: "instant"});
    kept = null;
  });
})();
