/* agentweb: a long block on its way is one element, and code has a button to copy it.
 *
 * The server closes a long code block, list or table in parts (rendering/incremental.py). A part after the first
 * has the class "further". Its content is moved to the end of the block before, so a reader sees one block that
 * grows. The last part stands in the tail of the answer, which is replaced with the next text.
 */
"use strict";
(() => {
  const one = (selector, root = document) => root.querySelector(selector);
  const all = (selector, root = document) => root.querySelectorAll(selector);
  const words = one("#words")?.dataset ?? {};
  /** For each tail, its nodes that stand at the end of the block before it. */
  const moved = new WeakMap();

  const inner = (block) => (block.matches(".code") ? one("pre", block) : block.matches(".table") ? one("table", block) : block);
  const kind = (block) => (block?.matches(".code, .table") ? block.classList[0] : block?.localName);

  /** Move what a further part holds into the block before it; return the moved nodes. */
  function join(block, part) {
    if (!block || kind(block) !== kind(part)) return null;
    const nodes = [...inner(part).children];
    inner(block).append(...nodes);
    part.remove();
    return nodes;
  }
  function joinAll(root) {
    for (const done of all(".prose:not(.tail)", root)) {
      for (const part of all(":scope > .further", done)) join(part.previousElementSibling, part);
      const tail = done.nextElementSibling;
      const part = tail?.matches(".tail") && tail.firstElementChild;
      if (part && part.matches(".further")) {
        const nodes = join(done.lastElementChild, part);
        if (nodes) moved.set(tail, nodes);
      }
    }
  }
  document.addEventListener("htmx:oobBeforeSwap", ({ detail: { target } }) => {
    for (const node of moved.get(target) ?? []) node.remove();
    moved.delete(target);
  });

  function addButtons(root) {
    for (const code of all(".prose .code:not(:has(> button))", root)) {
      const button = document.createElement("button");
      const label = document.createElement("span");
      button.type = "button";
      button.className = "quiet";
      button.dataset.copy = "code";
      label.textContent = words.copy;
      button.append(label);
      one("pre", code).tabIndex = 0;
      code.append(button);
    }
  }
  function dress(root) {
    joinAll(root);
    addButtons(root);
  }
  dress(document);
  document.addEventListener("htmx:afterSettle", ({ target }) => dress(target.closest?.("#history") ?? document));
  document.addEventListener("htmx:wsAfterMessage", () => {
    const live = one("#live");
    if (live) dress(live);
  });
})();
