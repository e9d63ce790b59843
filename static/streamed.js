/* agentweb: a long block on its way is one element, and code has a button to copy it.
 *
 * The server closes a long code block, list or table in parts (rendering/incremental.py). A part after the first
 * has the class "further". Its content is moved to the end of the block before, so a reader sees one block that
 * grows. The last part stands in the tail of the answer, which is replaced with the next text.
 * At the end of the answer the stored turn comes, and what it shows as it was streamed stays the same elements: a
 * selection, the focus and the position in a wide block are not lost.
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

  /** Whether a streamed block, in parts and with its button, shows what the stored one does. */
  function isSame(streamed, stored) {
    const copy = streamed.cloneNode(true);
    for (const button of all("button[data-copy]", copy)) button.remove();
    for (const part of all(":is(pre, .table, .formula)[tabindex]", copy)) part.removeAttribute("tabindex");
    for (const part of all("pre > code + code, tbody + tbody", copy)) {
      part.previousElementSibling.append(...part.childNodes);
      part.remove();
    }
    const write = (node) => node.outerHTML.replace(/>\s+</g, "><");
    return write(copy) === write(stored);
  }
  function keepBlocks(done, stored) {
    const tail = done.nextElementSibling;
    if (tail?.matches(".tail")) done.append(...tail.childNodes);
    let at = done.firstElementChild;
    for (const block of [...stored.children]) {
      const next = at?.nextElementSibling;
      if (!at) done.append(block);
      else if (!isSame(at, block)) at.replaceWith(block);
      at = next;
    }
    removeFrom(at);
  }
  function removeFrom(at, end = null) {
    while (at && at !== end) {
      const next = at.nextSibling;
      at.remove();
      at = next;
    }
  }
  /** Make an element what the fresh one is, but keep the prose in it. */
  function renew(old, fresh) {
    for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
    for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    if (old.matches(".prose")) { keepBlocks(old, fresh); return; }
    let at = old.firstChild;
    for (const node of [...fresh.childNodes]) {
      let same = node.id && node.matches(".prose:not(.tail), :has(.prose)") ? at : null;
      while (same && same.id !== node.id) same = same.nextSibling;
      if (same) {
        removeFrom(at, same);
        at = same.nextSibling;
        renew(same, node);
      } else old.insertBefore(node, at);
    }
    removeFrom(at);
  }
  // agentweb.js has prepared the fragment by now: open details are open in it.
  document.addEventListener("htmx:oobBeforeSwap", ({ detail }) => {
    const [fresh, ...others] = detail.fragment.children;
    if (others.length || !fresh || fresh.id !== detail.target.id || !fresh.matches(".turn, .round")) return;
    detail.shouldSwap = false;
    // The last text may have come in the same message, and is in parts as yet.
    joinAll(detail.target);
    renew(detail.target, fresh);
    window.htmx.process(detail.target);
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
  /** What is wider than the page scrolls by the keyboard, too. Measuring is left out while an answer is written. */
  function letScroll(root) {
    if (one("#live .turn[data-live='yes']")) return;
    for (const part of all(".prose :is(.table, .formula):not([tabindex])", root)) {
      if (part.scrollWidth > part.clientWidth) part.tabIndex = 0;
    }
  }
  function dress(root) {
    joinAll(root);
    addButtons(root);
    letScroll(root);
  }
  dress(document);
  document.addEventListener("htmx:afterSettle", ({ target }) => dress(target.closest?.("#history") ?? document));
  document.addEventListener("htmx:wsAfterMessage", () => {
    const live = one("#live");
    if (live) dress(live);
  });
})();
