/* agentweb: the list of saved prompts above the composer. It is opened by / in an empty message or by its button,
 * and chosen from by keyboard, mouse or touch; the text goes into the message, and nothing is sent. What was typed
 * after / and is no prompt goes back into the message as it was typed.
 */
"use strict";
(() => {
  const form = document.querySelector("#composer");
  const panel = document.querySelector("#prompt-panel");
  const button = document.querySelector("#prompts");
  if (!form || !panel || !button) return;
  const box = form.elements.text;
  const asked = panel.querySelector("#prompt-asked");
  const found = panel.querySelector("#prompt-found");
  const place = panel.querySelector("#prompt-text");
  const options = () => [...found.querySelectorAll("[role=option]")];
  const active = () => found.querySelector("[aria-selected=true]");
  // The list on the page is of what was typed before; Enter waits for the one of what is typed now.
  const isCurrent = () => found.querySelector("[data-asked]")?.dataset.asked === asked.value;
  let isTyped = false;
  let waits = false;
  button.hidden = false;

  function show(isOpen) {
    panel.hidden = !isOpen;
    button.setAttribute("aria-expanded", isOpen);
    waits = false;
    place.replaceChildren();
    panel.classList.remove("has-form");
  }
  function open(typed) {
    isTyped = typed;
    asked.value = "";
    found.replaceChildren();
    mark(null);
    show(true);
    asked.focus();
    asked.dispatchEvent(new Event("prompts-opened"));
  }
  function write(text) {
    box.dispatchEvent(new Event("input", { bubbles: true }));
    box.focus();
    box.scrollTop = text.length ? box.scrollHeight : 0;
  }
  /** Close the list; what was typed to find a prompt is part of the message again. */
  function close(typed = isTyped ? `/${asked.value}` : "") {
    show(false);
    if (isTyped) box.value = typed;
    isTyped = false;
    write("");
  }
  function insert(text) {
    show(false);
    if (isTyped) box.value = text;
    else box.setRangeText(text, box.selectionStart, box.selectionEnd, "end");
    isTyped = false;
    write(text);
  }
  function mark(option) {
    for (const each of options()) each.setAttribute("aria-selected", each === option);
    asked.setAttribute("aria-expanded", Boolean(option));
    if (option) asked.setAttribute("aria-activedescendant", option.id);
    else asked.removeAttribute("aria-activedescendant");
    option?.scrollIntoView({ block: "nearest" });
  }
  function move(step) {
    const all = options();
    if (all.length) mark(all[(all.indexOf(active()) + step + all.length) % all.length]);
  }

  function choose(option) {
    waits = false;
    if (option) window.htmx.ajax("GET", option.dataset.url, { source: panel, target: place, swap: "innerHTML" });
  }

  button.addEventListener("click", () => (panel.hidden ? open(false) : close()));
  box.addEventListener("input", (event) => {
    if (box.value === "/" && event.inputType === "insertText" && !event.isComposing) open(true);
  });
  asked.addEventListener("input", () => {
    waits = false;
    // A path, or words after what is no command: a message that begins with a slash.
    const listed = found.querySelector("[data-asked]")?.dataset.asked;
    const isNone = listed !== undefined && asked.value.startsWith(listed) && !options().length;
    if (isTyped && (asked.value.includes("/") || (isNone && asked.value.endsWith(" ")))) close();
  });
  asked.addEventListener("keydown", (event) => {
    if (event.isComposing || event.keyCode === 229) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      move(step);
    } else if (event.key === "Enter") {
      if (!isCurrent()) waits = true;
      else if (active()) choose(active());
      else if (isTyped) close();
    } else if (event.key === "Backspace" && isTyped && !asked.value) {
      close("");
    } else {
      return;
    }
    event.preventDefault();
  });
  panel.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      event.preventDefault();
      close();
    } else if (event.key === "Enter" && event.target.matches("textarea") && !event.shiftKey && !event.isComposing) {
      // As in the message box.
      if (document.documentElement.dataset.enter === "line" && !event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      event.target.form.requestSubmit();
    }
  });
  panel.addEventListener("click", (event) => {
    if (event.target.closest("[data-prompts-close]")) close();
    else choose(event.target.closest("[role=option]"));
  });
  function fail(event) {
    // A session that ended is asked for in place (session.js); the rest is no message that was not sent.
    const status = event.detail.xhr?.status;
    if (status === 401 || (status && status < 400)) return;
    event.stopPropagation();
    event.detail.shouldSwap = false;
    const note = document.createElement("p");
    note.className = "soft";
    note.setAttribute("role", "status");
    note.textContent = panel.dataset.failed;
    found.replaceChildren(note);
    mark(null);
  }
  for (const name of ["beforeSwap", "responseError", "sendError", "timeout"]) {
    panel.addEventListener(`htmx:${name}`, fail);
  }
  panel.addEventListener("htmx:afterSwap", (event) => {
    if (event.target === found) {
      mark(active());
      if (waits && isCurrent()) choose(active());
    } else if (event.target === place && !panel.hidden) {
      const ready = place.querySelector("[data-prompt-text]");
      if (ready) return insert(ready.textContent);
      panel.classList.add("has-form");
      place.querySelector(".is-wrong :is(textarea, select), textarea, select")?.focus();
    }
  });
})();
