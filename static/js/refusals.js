// What the server refuses never takes the place of a part of the page, unless it is a part of the page that says so.
"use strict";
(() => {
  document.addEventListener("htmx:beforeSwap", (event) => {
    const {xhr, target, requestConfig} = event.detail;
    if (xhr.status < 400 || xhr.status === 422) return;
    const text = xhr.responseText, whole = /^\s*<!doctype/i.test(text);
    // A list answers a bad query with itself and the reason; a part answers with one sentence. A poll is not swapped at all.
    const fits = whole ? Boolean(target.id) && text.includes(`id="${target.id}"`) : Boolean(text);
    event.detail.shouldSwap = fits && xhr.status < 500 && !requestConfig.elt.matches(".news, .follow, [hx-trigger^=every]");
    const place = document.getElementById("said");
    if (!event.detail.shouldSwap && place) place.textContent = `The server answered ${xhr.status}. Nothing was changed on this page.`;
  });
})();
