/* agentweb: where the focus goes when a question was answered, since its buttons go away with it. */
"use strict";
(() => {
  const one = (selector, root = document) => root.querySelector(selector);
  /** The question whose answer is on its way, and its turn. */
  let asked = null;

  document.addEventListener("htmx:beforeRequest", ({ target }) => {
    if (target.matches?.(".question")) asked = { question: target.id, turn: target.closest(".turn").id };
  });
  // While it is on its way its buttons are disabled, and the one that was pressed has lost the focus.
  document.addEventListener("htmx:afterRequest", ({ detail, target }) => {
    if (detail.successful || target.id !== asked?.question) return;
    asked = null;
    detail.requestConfig.triggeringEvent?.submitter?.focus({ preventScroll: true });
  });
  // The next question as a whole, none of its buttons: a key pressed once too often must not allow anything.
  document.addEventListener("htmx:wsAfterMessage", () => {
    if (!asked || document.getElementById(asked.question)) return;
    const turn = document.getElementById(asked.turn);
    const next = turn && one(".question", turn);
    asked = null;
    if (document.activeElement !== document.body) return;
    if (next) next.focus();
    else if (turn) one(".answer", turn)?.focus({ preventScroll: true });
  });
})();
