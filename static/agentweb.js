/* agentweb: the behaviour of pages that the server cannot render. The only state here is the draft, which is stored.
 *
 * The server sends finished HTML by the socket, and htmx swaps it in. This file keeps the scroll position, the
 * draft, open details and the focus meanwhile, and adds the copies. What is streamed is joined by streamed.js.
 */
"use strict";
(() => {
  const one = (selector, root = document) => root.querySelector(selector);
  const all = (selector, root = document) => root.querySelectorAll(selector);
  const words = one("#words")?.dataset ?? {};
  const store = {
    get(key) { try { return localStorage.getItem(key); } catch { return null; } },
    set(key, value) {
      try {
        if (value === null) localStorage.removeItem(key);
        else localStorage.setItem(key, value);
      } catch { /* storage is full or forbidden: the text is still on the screen */ }
    },
    /** Whether this tab has just come from the page on which it began this chat (outbox.js). */
    isStarted(chat) { try { return sessionStorage.getItem("started") === chat; } catch { return false; } },
  };
  const say = (text) => { const node = one("#announcer"); if (node) node.textContent = text; };

  // What Enter does in a message box: a touch screen's keyboard has no Shift+Enter for a new line.
  const chosen = document.documentElement.dataset;
  const isTouch = matchMedia("(hover: none) and (pointer: coarse)").matches;
  if (chosen.enter === "auto") chosen.enter = isTouch ? "line" : "send";
  const { enter } = chosen;

  // Times in the reader's time zone and locale: 15:30 in en-GB, 3:30 PM in en-US.
  const written = document.documentElement.lang || navigator.language;
  const language = navigator.languages.find((one) => one.split("-")[0] === written.split("-")[0]) ?? written;
  const short = new Intl.DateTimeFormat(language, { hour: "2-digit", minute: "2-digit" });
  const long = new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "short" });
  const date = new Intl.DateTimeFormat(language, { dateStyle: "medium" });
  const days = new Intl.RelativeTimeFormat(language, { numeric: "auto" });
  function localise(root) {
    for (const node of all("time[data-when]:not([data-done])", root)) {
      const when = new Date(node.dateTime);
      if (Number.isNaN(when.getTime())) continue;
      const now = new Date(), next = new Date(now.getFullYear(), now.getMonth(), now.getDate() + 1);
      const day = when.toDateString();
      let shown = (day === now.toDateString() ? short : long).format(when);
      if (day === next.toDateString()) shown = `${days.format(1, "day")} ${short.format(when)}`;
      if (node.dataset.when === "day") shown = date.format(when);
      node.textContent = `${node.dataset.prefix ?? ""} ${shown}`.trim();
      node.title = long.format(when);
      node.dataset.done = "";
    }
  }
  function countDown() {
    for (const node of all("time[data-countdown]")) {
      const left = Math.max(0, Math.ceil((new Date(node.dateTime) - Date.now()) / 1000));
      node.textContent = node.dataset.countdown.replace("%s", left);
    }
    for (const node of all("time[data-elapsed]")) {
      const gone = Math.max(0, Math.floor((Date.now() - new Date(node.dateTime)) / 1000));
      node.textContent = gone ? node.dataset.elapsed.replace("%s", gone) : "";
    }
  }
  setInterval(countDown, 500);

  // The chat that is open is in view in the list, when the list opens or is replaced, too.
  const showRow = () => one("#rows .row[aria-current]")?.scrollIntoView({ block: "nearest" });
  showRow();
  one("#sidebar")?.addEventListener("toggle", showRow);
  document.addEventListener("htmx:oobAfterSwap", (event) => { if (event.detail.target.id === "rows") showRow(); });

  // Copying.
  async function copy(text, button) {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
      button.focus();
    }
    const label = one("span", button);
    const { copied, again } = { copied: words.copied, again: words.copy, ...button.dataset };
    label.textContent = copied;
    say(copied);
    setTimeout(() => { label.textContent = again; }, 1500);
  }
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-copy]");
    if (!button) return;
    const source = {
      code: () => one("pre", button.parentElement).textContent,
      prompt: () => one(".bubble", button.closest(".prompt")).textContent,
      answer: () => one("template.source", button.parentElement).content.textContent,
      link: () => one("a.share-url", button.parentElement).href,
    };
    copy(source[button.dataset.copy](), button);
  });

  function dress(root) {
    localise(root);
    countDown();
  }
  dress(document);

  // The menu of a conversation as a dialog; without script the same links open pages.
  const menu = one("#menu");
  const dialog = one("#menu-dialog");
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.target === menu) {
      if (!menu.firstElementChild) dialog.close();
      else if (!dialog.open) dialog.showModal();
    } else if (event.target.closest?.("#found")) localise(document);
  });
  dialog?.addEventListener("click", ({ target }) => { if (target === dialog || target.closest("[data-close]")) dialog.close(); });

  const transcript = one("#transcript");
  const form = one("#composer");
  if (!form) return;

  // The scroll position: follow the answer at the bottom, stay when scrolled up.
  const page = document.scrollingElement;
  const below = one("#below");
  let follows = true;
  const gap = () => page.scrollHeight - page.clientHeight - page.scrollTop;
  const toBottom = () => { page.scrollTop = page.scrollHeight; };
  let lastTop = page.scrollTop;
  addEventListener("scroll", () => {
    const top = page.scrollTop;
    if (top < lastTop - 2 && gap() > 2) follows = false;
    else if (gap() < 60) follows = true;
    lastTop = top;
    if (follows) below.hidden = true;
  }, { passive: true });
  document.addEventListener("agentweb:stay", () => { follows = false; });
  document.addEventListener("submit", ({ target }) => { if (one("[data-act='continue']", target)) follows = true; });
  below.addEventListener("click", () => { follows = true; below.hidden = true; toBottom(); });
  /** Keep an element in view while what is around it gets its size, until the reader moves. */
  function holdAt(name) {
    for (let at = document.getElementById(name); at; at = at.parentElement) if (at.localName === "details") at.open = true;
    const place = () => document.getElementById(name)?.scrollIntoView();
    const sizes = new ResizeObserver(place);
    const end = () => sizes.disconnect();
    sizes.observe(transcript);
    for (const event of ["wheel", "touchstart", "pointerdown", "keydown"]) addEventListener(event, end, { once: true, passive: true });
    setTimeout(end, 10_000);
    place();
  }
  if (transcript) {
    const wanted = new URLSearchParams(location.search).get("m");
    if (wanted && !location.hash && document.getElementById(`m-${wanted}`)) {
      location.replace(`#m-${wanted}`);
    }
    const goal = location.hash.slice(1);
    if (goal && document.getElementById(goal)) {
      follows = false;
      holdAt(goal);
    } else {
      toBottom();
    }
    let height = transcript.offsetHeight;
    const sizes = new ResizeObserver(() => {
      const grew = transcript.offsetHeight > height;
      height = transcript.offsetHeight;
      if (follows) toBottom();
      else if (grew && isLive()) below.hidden = false;
    });
    // A dock that grows would cover the end of the transcript.
    for (const part of [transcript, one(".dock")]) sizes.observe(part);
  }

  // The composer: size, draft, and one client id per message: two tabs may send the same words, and then it is one
  // message; other words are another.
  const box = form.elements.text;
  const id = form.elements.client_id;
  // People who share a browser have drafts of their own.
  const user = one("#outbox").dataset.user;
  const key = `draft:${user}:${form.dataset.draft}`;
  const isNew = form.dataset.draft === "new";
  const isLive = () => one("#composer-state")?.dataset.live === "yes";
  const fresh = () => crypto.randomUUID?.() ??
    "10000000-1000-4000-8000-100000000000".replace(/[018]/g, (c) =>
      (c ^ crypto.getRandomValues(new Uint8Array(1))[0] & 15 >> c / 4).toString(16));
  // The page of a new chat has the model and the effort that were chosen for its draft.
  const picked = (name) => (isNew ? one(`#model-choice [name=${name}]:checked`)?.value : undefined);
  function keep() {
    const draft = { text: box.value, id: id.value, model: picked("model"), effort: picked("effort") };
    store.set(key, box.value ? JSON.stringify(draft) : null);
  }
  function fit() {
    if (CSS.supports("field-sizing", "content")) return;
    box.style.height = "auto";
    box.style.height = `${box.scrollHeight}px`;
  }
  function clear() {
    box.value = "";
    id.value = fresh();
    keep();
    fit();
  }
  // What was written after the first message of a new chat belongs to the chat that it began.
  if (store.isStarted(form.dataset.draft)) {
    store.set(key, store.get(`draft:${user}:new`));
    store.set(`draft:${user}:new`, null);
    box.focus();
  }
  const remembered = JSON.parse(store.get(key) ?? "{}");
  if (!box.value && remembered.text) box.value = remembered.text;
  // Not the id in the page: the back button may show that page again after the id was used.
  id.value = (box.value === remembered.text && remembered.id) || fresh();
  fit();
  if (isNew) {
    const { model, effort } = remembered;
    const choice = one("#model-choice");
    const isThere = model && one(`[name=model][value="${CSS.escape(model)}"]`, choice);
    if (isThere && (model !== picked("model") || effort !== picked("effort"))) addEventListener("DOMContentLoaded", () => {
      window.htmx.ajax("GET", choice.getAttribute("hx-get"), { source: choice, swap: "none", values: { model, effort } });
    });
    document.addEventListener("htmx:oobAfterSwap", ({ detail }) => { if (detail.target.id === "model-choice") keep(); });
  }
  box.enterKeyHint = enter === "line" ? "enter" : "send";
  box.addEventListener("input", () => {
    id.value = fresh();
    keep();
    fit();
  });
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    if (enter === "line" && !event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    form.requestSubmit();
  });
  // Other files make another message (attachments.js).
  form.addEventListener("files-changed", () => {
    id.value = fresh();
    keep();
  });
  // The message is in the outbox (outbox.js), and the next one can be written.
  form.addEventListener("sent", () => {
    follows = true;
    one("#composer-error").replaceChildren();
    clear();
    box.focus();
  });
  form.addEventListener("unsent", (event) => { if (event.target === form) complain(words.unsent); });
  // All tabs share one draft: the one changed last.
  addEventListener("storage", (event) => {
    if (event.key !== key) return;
    const [before, now] = [event.oldValue, event.newValue].map((one) => JSON.parse(one ?? "{}"));
    if (box.value === (before.text ?? "")) {
      box.value = now.text ?? "";
      id.value = now.id ?? fresh();
      fit();
    } else if (event.newValue === null) {
      // The other tab has sent its draft; the text here is another message.
      id.value = fresh();
      keep();
    }
  });
  function complain(text) {
    const note = document.createElement("p");
    note.className = "error";
    note.textContent = text;
    one("#composer-error").replaceChildren(note);
  }
  /** Say that nothing came of a request; what asks by itself asks again, and the inspector says so in its place. */
  function fail({ xhr, elt, requestConfig }) {
    const asked = requestConfig?.elt ?? elt;
    if (asked.matches("#inspector, [hx-trigger*='every']")) return;
    const what = asked.elements?.text ? words.unsent : words.failed;
    complain(xhr.status === 403 ? words.stale : what);
  }
  for (const link of all("[data-prompt]")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      box.value = link.dataset.prompt;
      box.dispatchEvent(new Event("input"));
      box.focus();
    });
  }

  // An error page is not a fragment, so it is not swapped in.
  document.addEventListener("htmx:beforeSwap", (event) => {
    const { xhr } = event.detail;
    if (xhr.status >= 400 && xhr.status !== 401 && !xhr.responseText.includes("send-error")) {
      event.detail.shouldSwap = false;
      fail(event.detail);
    }
  });
  for (const name of ["htmx:sendError", "htmx:timeout"]) {
    // A stop is requested again (outbox.js).
    document.addEventListener(name, ({ detail }) => (detail.elt.id === "stop" ? complain(words.unstopped) : fail(detail)));
  }
  document.addEventListener("htmx:responseError", (event) => {
    if (event.detail.xhr.status >= 500) fail(event.detail);
  });

  // Earlier messages are inserted above; keep the scroll position.
  let anchor = null;
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (event.target.classList?.contains("earlier")) anchor = page.scrollHeight - page.scrollTop;
  });
  document.addEventListener("htmx:afterSettle", (event) => {
    if (anchor !== null) {
      page.scrollTop = page.scrollHeight - anchor;
      anchor = null;
    }
    dress(event.target.closest?.("#history") ?? document);
  });

  // Fragments from the socket. An element that exists already is replaced in place, so that an append which
  // arrives twice does no harm. Open details stay open, and the focus stays where it is.
  let focused = null;
  document.addEventListener("htmx:oobBeforeSwap", (event) => {
    const { fragment, target } = event.detail;
    const active = document.activeElement;
    const name = active && target.contains(active) && address(active);
    if (name) focused = name;
    for (const child of [...fragment.children]) {
      const present = child.id && document.getElementById(child.id);
      if (present && present !== target && target.contains(present)) {
        restore(present, child);
        present.replaceWith(child);
        window.htmx.process(child);
      }
    }
    for (const child of fragment.children) restore(target, child);
  });
  function address(node) {
    if (node.id) return `[id="${CSS.escape(node.id)}"]`;
    const owner = node.closest("[data-key]");
    return owner && `[data-key="${CSS.escape(owner.dataset.key)}"] > summary`;
  }
  function restore(old, fresh) {
    const was = new Map();
    for (const node of [...all("details[data-key]", old), old]) {
      if (node.dataset.key) was.set(node.dataset.key, node.open);
    }
    for (const node of [...all("details[data-key]", fresh), fresh]) {
      if (was.has(node.dataset.key)) node.open = was.get(node.dataset.key);
    }
  }

  // After each message from the socket: update times, title, the dot in the list, the announcement.
  let wasLive = isLive();
  document.addEventListener("htmx:wsAfterMessage", () => {
    dress(one("#live"));
    localise(one(".dock"));
    // Where the button that stops was, there is nothing when the answer has ended: what follows is a message.
    if (focused) { (one(focused) ?? (focused === '[id="stop"]' ? box : null))?.focus({ preventScroll: true }); focused = null; }
    const title = one("#title").textContent;
    if (title && !document.title.includes(title)) document.title = `${title} · agentweb`;
    // After a snapshot only the heading has a new title, so copy it to the list.
    const row = one(".row[aria-current] .row-title");
    if (row && row.textContent !== title) row.textContent = row.title = title;
    const live = isLive();
    const dot = one(".row[aria-current] .dot");
    const asks = one(".row[aria-current] .asks");
    const isAsked = Boolean(one(".question"));
    if (dot) dot.hidden = !live || isAsked;
    if (asks) asks.hidden = !isAsked;
    if (live && !wasLive) say(words.answering);
    if (!live && wasLive) {
      const text = [...all("#live .turn:last-child .prose")].map((node) => node.textContent).join(" ");
      say(words.done.replace("%s", text.split(/\s+/).filter(Boolean).length));
    }
    if (!live) one("#composer-error .error:not(.send-error)")?.remove();
    wasLive = live;
  });

  // A click elsewhere closes the meter.
  document.addEventListener("click", (event) => {
    for (const opened of all(".meter[open]")) if (!opened.contains(event.target)) opened.open = false;
  });
})();
