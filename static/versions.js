/* Versions and the queue: the inline editor, the scroll position when another path is shown, and the shortcuts
 * from message to message. Loaded before agentweb.js, so that an open editor is moved before the HTML around it is
 * replaced.
 */
"use strict";
(() => {
  const one = (selector, root = document) => root.querySelector(selector);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const transcript = one("#transcript");
  if (!transcript) return;
  const words = one("#words").dataset;
  const box = one("#text");
  const page = document.scrollingElement;
  const say = (text) => { one("#announcer").textContent = text; };
  const stay = () => document.dispatchEvent(new Event("agentweb:stay"));
  const usesKeys = () => one("#use-shortcuts")?.checked;

  // The editor. It is moved along when its turn is rendered again; when its turn is no longer shown, its text is
  // put into the composer, if that is empty.
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-cancel]") || !event.target.closest(".editor-slot")) return;
    event.preventDefault();
    close(event.target.closest(".editor"));
  });
  function close(editor) {
    const prompt = editor.closest(".prompt");
    editor.remove();
    one("[data-edit]", prompt)?.focus({ preventScroll: true });
  }
  document.addEventListener("keydown", (event) => {
    const editor = event.target.closest?.(".editor");
    if (!editor || event.isComposing) return;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      editor.requestSubmit();
    } else if (event.key === "Escape" && editor.closest(".editor-slot")) {
      event.preventDefault();
      event.stopPropagation();
      close(editor);
    }
  });
  // The socket may remove a form before its response arrives, so each form has a listener of its own.
  document.addEventListener("htmx:beforeRequest", (event) => {
    const form = event.target;
    if (!form.matches?.(".editor, .act")) return;
    if (form.matches(".editor")) form.dataset.sent = "";
    form.addEventListener("htmx:afterRequest", ({ detail }) => answered(form, detail.successful), { once: true });
  });
  function answered(form, isDone) {
    if (!isDone) {
      delete form.dataset.sent;
    } else if (form.matches("[data-take-back]")) {
      fill([one("template.source", form).content.textContent, box.value].filter(Boolean).join("\n\n"));
      box.focus();
    } else if (form.matches(".editor") || one("[data-act]", form)) {
      form.closest(".editor")?.remove();
      toLast();
    }
  }
  // Other words for an earlier message stop the answer on its way, and are sent when it has ended. While messages
  // wait for that end, the server says what to do with them first.
  let next = null;
  const isLive = () => one("#composer-state")?.dataset.live === "yes";
  document.addEventListener("submit", (event) => {
    const editor = event.target;
    if (!editor.matches?.(".editor") || !isLive() || one(".queue li")) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (!next) one("#stop")?.click();
    next = editor;
    one(".primary", editor).disabled = true;
  }, true);
  document.addEventListener("htmx:wsAfterMessage", () => {
    if (!next || isLive()) return;
    const editor = next;
    next = null;
    one(".primary", editor).disabled = false;
    if (editor.isConnected) editor.requestSubmit();
  });
  let moved = null;
  document.addEventListener("htmx:oobBeforeSwap", (event) => {
    const { fragment, target } = event.detail;
    for (const editor of all(".editor-slot > .editor:not([data-sent])", target)) {
      const name = `[id="${editor.parentElement.id}"]`;
      const text = one("textarea", editor);
      const slot = one(name, fragment) ?? all(name).find((node) => !target.contains(node));
      if (slot) {
        if (document.activeElement === text) moved = text;
        slot.replaceChildren(editor);
      } else if (box && !box.value && text.value !== text.defaultValue) {
        fill(text.value);
      }
    }
  });
  function fill(text) {
    box.value = text;
    box.dispatchEvent(new Event("input"));
  }

  // Another path: keep scroll position and focus, or move them to the other version of that turn.
  let place = null;
  let shown = [];
  let chosen = "";
  let wantsLast = false;
  const turns = () => all(".turn", transcript);
  document.addEventListener("click", (event) => {
    const version = event.target.closest("[data-version]");
    if (version) chosen = version.closest(".turn").dataset.parent;
  });
  document.addEventListener("htmx:wsBeforeMessage", (event) => {
    place = null;
    shown = [];
    if (!event.detail.message.includes('id="live"')) return;
    shown = turns().map((turn) => turn.id);
    const active = document.activeElement?.closest(".turn");
    const top = one(".bar").getBoundingClientRect().bottom;
    const isFollowing = page.scrollHeight - page.clientHeight - page.scrollTop < 60;
    const seen = turns().find((turn) => turn.getBoundingClientRect().bottom > top);
    const wanted = chosen && turns().find((turn) => turn.dataset.parent === chosen);
    const turn = wanted || active || (isFollowing ? null : seen);
    if (!turn) return;
    const part = document.activeElement?.closest(".turn > .prompt, .turn > .answer");
    place = {
      id: turn.id,
      parent: turn.dataset.parent,
      top: turn.getBoundingClientRect().top,
      focus: document.activeElement?.dataset.version ? document.activeElement.id : "",
      part: active === turn && part ? `.${part.className}` : "",
    };
  });
  document.addEventListener("htmx:wsAfterMessage", () => {
    if (moved) { moved.focus({ preventScroll: true }); moved = null; }
    const isOther = shown.some((name) => !document.getElementById(name));
    const turn = place && (document.getElementById(place.id) ?? turns().find((node) => node.dataset.parent === place.parent));
    if (isOther) {
      const position = turn && one(".turn-versions .figures .hidden", turn);
      say(position?.textContent ?? words.moved);
      if (chosen) stay();
      chosen = "";
    }
    if (turn) {
      const by = turn.getBoundingClientRect().top - place.top;
      if (Math.abs(by) > 1) page.scrollTop += by;
      if (isOther && (place.focus || place.part)) refocus(turn);
    }
    if (wantsLast) toLast();
  });
  // A disabled button cannot have the focus: focus the one beside it.
  function refocus(turn) {
    const button = place.focus && document.getElementById(place.focus);
    const goal = button && !button.disabled ? button : one("[data-version]:not(:disabled)", turn);
    ((place.focus && goal) || one(place.part || ".prompt", turn))?.focus({ preventScroll: true });
  }
  // The requested turn is the last one; it may arrive before or after the response to the post.
  function toLast() {
    const last = one("#live .turn[data-live='yes']:last-child .answer");
    wantsLast = !last;
    last?.focus({ preventScroll: true });
  }

  // Shortcuts: from message to message, and actions on the focused message, else on the last one.
  const messages = () => all(".turn > .prompt, .turn > .answer", transcript);
  const current = () => document.activeElement?.closest(".turn > .prompt, .turn > .answer");
  function step(by) {
    const list = messages();
    const top = one(".bar").getBoundingClientRect().bottom + 8;
    const seen = list.findIndex((node) => node.getBoundingClientRect().bottom > top);
    const from = list.indexOf(current());
    const at = from >= 0 ? from + by : seen;
    const goal = list[Math.max(0, Math.min(list.length - 1, at))];
    stay();
    goal?.focus({ preventScroll: true });
    goal?.scrollIntoView({ block: "start" });
  }
  function find(selector) {
    const turn = current()?.closest(".turn");
    return (turn && one(selector, turn)) ?? all(selector, transcript).at(-1);
  }
  function toggle() {
    const turn = current()?.closest(".turn") ?? turns().filter((node) => one(".tool, .tools", node)).at(-1);
    const details = turn ? all("details.tool, details.tools", turn) : [];
    const isOpen = details.some((node) => node.open);
    for (const node of details) node.open = !isOpen;
  }
  const acts = {
    j: () => step(1),
    k: () => step(-1),
    e: () => find("[data-edit]")?.click(),
    r: () => find("[data-act='retry']")?.click(),
    "[": () => find("[data-version='previous']:not(:disabled)")?.click(),
    "]": () => find("[data-version='next']:not(:disabled)")?.click(),
    c: () => {
      const message = current();
      (message ? one("[data-copy='prompt'], [data-copy='answer']", message) : find("[data-copy='answer']"))?.click();
    },
    t: toggle,
  };
  let isGoing = false;
  addEventListener("keydown", (event) => {
    if (!usesKeys() || event.isComposing || event.defaultPrevented) return;
    const isCommand = event.ctrlKey || event.metaKey;
    const writes = event.target.closest?.("input, textarea, select, [contenteditable]");
    if (isCommand && event.shiftKey && event.code === "Semicolon") {
      event.preventDefault();
      all(".code > [data-copy]", transcript).at(-1)?.click();
    } else if (event.key === "ArrowUp" && event.target === box && !box.value && !isCommand && !event.shiftKey) {
      const edit = all("[data-edit]", transcript).at(-1);
      if (!edit) return;
      event.preventDefault();
      edit.click();
    } else if (!writes && !isCommand && !event.altKey && !one("dialog[open]")) {
      const act = !isGoing && acts[event.key];
      isGoing = event.key === "g";
      if (!act) return;
      event.preventDefault();
      act();
    }
  });
})();
