// Narrow screens: a table's lines become blocks, each cell under the name of its column, so that no column lies beyond the edge.
// Without JavaScript the table scrolls inside its own region instead.
"use strict";
(() => {
  const named = (head) => {
    const copy = head.cloneNode(true);
    for (const part of copy.querySelectorAll(".meaning, .sr")) part.remove();
    return copy.textContent.replace(/\s+/g, " ").trim();
  };
  const name = (table) => {
    const heads = [...table.tHead.rows[0].cells];
    // A head that spans columns names none of them.
    if (table.tHead.rows.length > 1 || heads.some((head) => head.colSpan > 1)) return;
    const names = heads.map(named);
    for (const row of [...table.tBodies].flatMap((body) => [...body.rows]))
      if (row.cells.length === names.length) [...row.cells].forEach((cell, place) => { cell.dataset.th = names[place]; });
    table.classList.add("stack");
  };
  const all = (part) => {
    for (const table of part.querySelectorAll("main .scroll > table:not(.rows, .events)")) if (table.tHead) name(table);
  };
  all(document);
  // A row of links that is longer than the screen begins with the page one is on in sight.
  for (const here of document.querySelectorAll(".top nav [aria-current], .tabs [aria-current]")) {
    const row = here.parentElement;
    const over = here.offsetLeft + here.offsetWidth - row.offsetLeft - row.clientWidth;
    if (over > 0) row.scrollLeft = over + 24;
  }
  document.addEventListener("htmx:afterSettle", () => all(document));
})();
