// What a short text stands for (a time's UTC, the meaning of a type) is shown on hover and on focus alike.
"use strict";
(() => {
  const told = "time[datetime], [data-tip]";
  const named = "main [title]:not(.cc, svg *), header [title]";
  const tip = document.createElement("div");
  tip.id = "tip";
  tip.popover = "manual";
  tip.role = "tooltip";
  let shown = null;
  const enhance = () => {
    for (const place of document.querySelectorAll(named)) {
      place.dataset.tip = place.title;
      place.removeAttribute("title");
    }
    for (const place of document.querySelectorAll(told)) {
      // What stands there is told without the tip too; the one tip describes only what it is shown for.
      if (place.dataset.tip) place.setAttribute("aria-description", place.dataset.tip);
      // Inside of a link the link takes the focus.
      if (!place.closest("a, button, summary, label")) place.tabIndex = 0;
    }
  };
  const hide = () => {
    if (!shown) return;
    tip.hidePopover();
    if (shown.getAttribute("aria-describedby") === tip.id) shown.removeAttribute("aria-describedby");
    shown = null;
  };
  const show = (place) => {
    hide();
    if (!place?.dataset.tip) return;
    tip.textContent = place.dataset.tip;
    tip.showPopover();
    shown = place;
    // One that has a description of its own keeps it.
    if (!place.hasAttribute("aria-describedby")) place.setAttribute("aria-describedby", tip.id);
    const box = place.getBoundingClientRect(), own = tip.getBoundingClientRect(), gap = 6;
    const below = box.bottom + gap + own.height < innerHeight;
    tip.style.left = `${Math.max(gap, Math.min(box.left, innerWidth - own.width - gap))}px`;
    tip.style.top = `${below ? box.bottom + gap : Math.max(gap, box.top - gap - own.height)}px`;
  };
  const teller = (target) => target.closest?.(told) ?? (target.matches?.("a, button") ? target.querySelector(told) : null);
  document.addEventListener("DOMContentLoaded", () => { document.body.append(tip); enhance(); });
  document.addEventListener("htmx:afterSwap", enhance);
  document.addEventListener("focusin", (event) => show(teller(event.target)));
  document.addEventListener("focusout", hide);
  document.addEventListener("pointerover", (event) => { if (event.pointerType !== "touch") show(teller(event.target)); });
  document.addEventListener("pointerout", (event) => { if (shown && !shown.contains(event.relatedTarget)) hide(); });
  document.addEventListener("scroll", hide, true);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
})();
