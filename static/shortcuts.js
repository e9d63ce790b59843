/* agentweb: the keyboard shortcuts of every page and of a chat, which the reader can switch off. */
"use strict";
(() => {
  const one = (selector) => document.querySelector(selector);
  const help = one("#shortcuts");
  const choice = one("#use-shortcuts");
  for (const button of document.querySelectorAll("[data-open='shortcuts']")) {
    button.addEventListener("click", () => { one("#sidebar").hidePopover?.(); help.showModal(); });
  }
  let going = false;
  addEventListener("keydown", (event) => {
    if (!choice?.checked || event.isComposing || event.defaultPrevented) return;
    const writes = event.target.closest?.("input, textarea, select, [contenteditable]");
    const isCommand = event.ctrlKey || event.metaKey;
    if (isCommand && event.shiftKey && event.code === "KeyO") {
      event.preventDefault();
      location.assign(one("#new-chat").href);
    } else if (isCommand && !event.shiftKey && !event.altKey && event.code === "KeyK") {
      event.preventDefault();
      if (one("#q")) one("#q").focus();
      else location.assign(one("#find").href);
    } else if (event.key === "?" && !writes && !help.open) {
      help.showModal();
    } else if (!writes && !isCommand && !event.altKey && !one("dialog[open]")) {
      // g, then the letter of a link with data-go.
      const goal = going && /^[a-z]$/.test(event.key) && one(`[data-go="${event.key}"]`);
      going = event.key === "g";
      if (goal) location.assign(goal.href);
    }
  });

  const box = one("#composer textarea");
  if (!box) return;
  addEventListener("keydown", (event) => {
    // Without shortcuts Esc still stops the answer, in the message box alone.
    if (!choice?.checked && (event.target !== box || event.shiftKey)) return;
    if (event.isComposing || event.defaultPrevented) return;
    if (event.key === "Escape" && event.shiftKey) {
      event.preventDefault();
      box.focus();
    } else if (event.key === "Escape") {
      if (one("dialog[open]") || one("#sidebar").matches(":popover-open")) return;
      const opened = one(".meter[open]");
      if (opened) opened.open = false;
      else one("#stop")?.click();
    }
  });
})();
