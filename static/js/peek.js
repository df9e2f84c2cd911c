// Peek: a line of a list opens beside it. The drawer is a dialog, so that the browser holds the focus; it closes with Esc.
"use strict";
(() => {
  const drawer = () => document.querySelector("[data-peek-dialog]");
  let asked = null;
  const buttons = () => [...document.querySelectorAll("#results [data-peek]")];
  const move = (by) => {
    const all = buttons(), at = asked ? all.indexOf(asked) : -1;
    if (at < 0) return;
    all[Math.min(all.length - 1, Math.max(0, at + by))].click();
  };
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-peek]");
    if (button) { asked = button; return; }
    const open = drawer();
    if (!open) return;
    if (event.target === open) { open.close(); return; }
    const row = event.target.closest("#results tbody tr");
    if (!row || event.target.closest("a, button, input, label, summary, [popover]") || String(getSelection())) return;
    row.querySelector("[data-peek]")?.click();
  });
  document.addEventListener("htmx:afterSettle", (event) => {
    const open = drawer();
    if (!open || event.detail.target?.id !== "peek-body") return;
    // The answer to what was asked before the drawer closed opens it no more.
    if (!asked) { event.detail.target.replaceChildren(); return; }
    if (!open.open) {
      // The focus goes back to the line when the drawer closes.
      asked.focus({preventScroll: true});
      open.showModal();
    }
    open.scrollTop = 0;
    document.getElementById("peek-open")?.focus({preventScroll: true});
  });
  document.addEventListener("close", (event) => {
    if (event.target !== drawer()) return;
    if (asked?.isConnected) asked.focus({preventScroll: true});
    asked = null;
    document.getElementById("peek-body").replaceChildren();
  }, true);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !drawer()?.open) return;
    const by = {j: 1, k: -1}[event.key];
    if (by) { move(by); event.preventDefault(); }
  });
})();
