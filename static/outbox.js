/* agentweb: messages on their way to the server.
 *
 * Every message is kept in this browser, under its client id, until the server has taken it; without a network it
 * waits here. The server accepts an id once, so an attempt that did arrive, or two tabs that send, do no harm. A
 * message that the server refuses is returned to its writer.
 */
"use strict";
(() => {
  const form = document.querySelector("#composer");
  const list = document.querySelector("#outbox");
  if (!form || !list) return;
  const PREFIX = "outbox:";
  const user = list.dataset.user;
  // The chat whose messages this page shows. A temporary chat is another one than a chat that stays.
  let own = PREFIX + form.dataset.draft + (form.elements.is_temporary ? ":temporary" : "");
  // Messages on their first way, which their writer waits for.
  const first = new Set();
  // Those of them that are not shown yet: most arrive before they are seen.
  const early = new Set();
  let isBusy = false;
  let isAsked = false;
  let pause = 0;
  let timer = null;

  // What cannot be stored, since storage is full or forbidden, is kept while the page is open.
  const unstored = {};
  function readAll(key) {
    try { return JSON.parse(unstored[key] ?? localStorage.getItem(key) ?? "[]"); } catch { return []; }
  }
  const read = (key) => readAll(key).filter((one) => one.user === user);
  /** Store the person's messages of a key; those of others who use this browser stay. */
  function write(key, own) {
    const entries = [...readAll(key).filter((one) => one.user !== user), ...own];
    delete unstored[key];
    try {
      if (entries.length) localStorage.setItem(key, JSON.stringify(entries));
      else localStorage.removeItem(key);
    } catch {
      unstored[key] = JSON.stringify(entries);
    }
  }
  function keys() {
    let stored = [];
    try { stored = Object.keys(localStorage).filter((key) => key.startsWith(PREFIX)); } catch { /* as above */ }
    return [...new Set([...stored, ...Object.keys(unstored)])];
  }

  /** Keep a message, whose files wait on the server. */
  function put(data) {
    const fields = [];
    for (const [name, value] of data) {
      if (!(value instanceof File) && name !== "csrfmiddlewaretoken") fields.push([name, value]);
    }
    const entry = {
      user, url: form.getAttribute("action"), id: data.get("client_id"), text: data.get("text"),
      files: data.getAll("attachments"),
      names: [...form.querySelectorAll("[data-file] .file-name")].map((one) => one.textContent),
      body: new URLSearchParams(fields).toString(),
    };
    const entries = read(own).filter((one) => one.id !== entry.id);
    write(own, [...entries, entry]);
    if (navigator.onLine !== false) {
      first.add(entry.id);
      early.add(entry.id);
      setTimeout(() => { early.delete(entry.id); show(); }, 400);
    }
    show();
  }

  function button(text, act) {
    const made = document.createElement("button");
    made.type = "button";
    made.className = "linklike";
    made.textContent = text;
    made.addEventListener("click", act);
    return made;
  }
  function show() {
    const rows = read(own).filter((one) => !early.has(one.id)).map((entry) => {
      const row = document.createElement("div");
      const text = document.createElement("p");
      const line = document.createElement("p");
      row.className = `outbox-row${entry.refused ? " is-refused" : ""}`;
      text.className = "bubble plain";
      text.textContent = [entry.text, entry.names?.join(", ")].filter(Boolean).join("\n");
      line.className = "outbox-line";
      const state = first.has(entry.id) ? list.dataset.sending : list.dataset.waiting;
      line.append(`${entry.refused ?? entry.held ?? state} `, button(list.dataset.back, () => takeBack(entry)));
      if (entry.held) line.append(" ", button(list.dataset.again, () => later(0)));
      row.append(text, line);
      return row;
    });
    list.replaceChildren(...rows);
    list.hidden = !rows.length;
    list.scrollTop = list.scrollHeight;
  }

  function takeBack(entry) {
    write(own, read(own).filter((one) => one.id !== entry.id));
    const box = form.elements.text;
    box.value = [entry.text, box.value].filter(Boolean).join("\n\n");
    box.dispatchEvent(new Event("input", { bubbles: true }));
    form.dispatchEvent(new CustomEvent("files-back", { detail: entry.files ?? [] }));
    box.focus();
    show();
  }

  function later(seconds) {
    clearTimeout(timer);
    timer = setTimeout(flush, seconds * 1000);
  }

  async function flush() {
    isAsked = isBusy;
    if (isBusy || navigator.onLine === false || !keys().some((key) => read(key).length)) return;
    isBusy = true;
    try {
      if (navigator.locks) await navigator.locks.request("agentweb-outbox", flushAll);
      else await flushAll();
      pause = 0;
      if (keys().some((key) => read(key)[0]?.held)) later(60);
    } catch {
      first.clear();
      early.clear();
      pause = Math.min(30, pause * 2 || 2);
      later(pause);
    } finally {
      isBusy = false;
      if (isAsked) later(0);
      show();
    }
  }

  /** Send the kept messages of each chat in order; throws when the server is unreachable. */
  async function flushAll() {
    for (const key of keys()) {
      let entry;
      do [entry] = read(key); while (entry && !entry.refused && await send(key, entry));
    }
  }

  /** Let the messages that were written after a first one follow it to the chat that it began. */
  function follow(key, chat) {
    const id = chat.split("/").at(-2);
    const there = PREFIX + id;
    const entries = read(key).map((one) => ({ ...one, url: `${chat}send/` }));
    write(key, []);
    if (entries.length) write(there, [...read(there), ...entries]);
    if (key !== own) { isAsked = true; return; }
    // What is written until the chat has opened goes there, too.
    own = there;
    form.setAttribute("action", `${chat}send/`);
    try { sessionStorage.setItem("started", id); } catch { /* storage is forbidden: there is no draft to take along */ }
    location.assign(chat);
  }

  function mark(key, entry, fields) {
    write(key, read(key).map((one) => (one.id === entry.id ? { ...one, ...fields } : one)));
  }

  /** Send one message; return whether the next one of its chat can go. */
  async function send(key, entry) {
    const headers = {
      ...JSON.parse(document.body.getAttribute("hx-headers") ?? "{}"),
      "HX-Request": "true",
      "Content-Type": "application/x-www-form-urlencoded",
    };
    // A request that is never answered would hold up every tab; sent again, it is the same message. A long one needs
    // time on a slow network: ten bytes go in a millisecond at 80 kbit/s.
    const signal = AbortSignal.timeout?.(60_000 + entry.body.length / 10);
    const response = await fetch(entry.url, { method: "POST", headers, body: entry.body, signal });
    const to = response.headers.get("HX-Redirect");
    // What comes after a redirect is another page, which says nothing of the message.
    if (response.ok && !response.redirected) {
      write(key, read(key).filter((one) => one.id !== entry.id));
      document.dispatchEvent(new Event("agentweb:delivered"));
      if (to) follow(key, to);
      return !to;
    }
    if (to) {
      // Not taken, and the person has to be elsewhere first. A page that is left sends nothing more; one that stays,
      // since the other did not come, lets other tabs send and tries again in a while.
      location.assign(to);
      pause = 30;
      isAsked = false;
      throw new Error("elsewhere");
    }
    const isFirst = first.delete(entry.id);
    if (response.status === 401 || (response.status === 403 && !entry.isRepeated)) {
      mark(key, entry, { isRepeated: true });
      window.agentweb.logIn(() => later(0), () => {
        if (key !== own || form.elements.text.value) return;
        takeBack(entry);
        form.dispatchEvent(new Event("unsent"));
      });
      return false;
    }
    if (response.status >= 500) throw new Error("later");
    const refused = new DOMParser().parseFromString(await response.text(), "text/html").querySelector(".send-error");
    if (response.status === 404 && key === own && form.dataset.draft !== "new") {
      document.dispatchEvent(new Event("agentweb:gone"));
      return false;
    }
    const reason = refused?.textContent ?? list.dataset.refused;
    // A chat that cannot take a message now (409) may take it later, unless its writer is there to decide.
    const isLater = response.status === 409 && !isFirst;
    if (key === own && !form.elements.text.value && !isLater) {
      const note = document.createElement("p");
      note.className = "error send-error";
      note.textContent = reason;
      if (response.status === 409) note.dataset.held = "";
      takeBack(entry);
      document.querySelector("#composer-error").replaceChildren(note);
      return false;
    }
    mark(key, entry, response.status === 409 ? { held: reason } : { refused: reason });
    return false;
  }

  document.addEventListener("submit", (event) => {
    if (event.target !== form) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (!form.elements.text.value.trim() && !form.elements.attachments) return;
    put(new FormData(form));
    // The composer is free for the next message.
    form.dispatchEvent(new Event("sent"));
    later(0);
  }, true);

  // What waits for a chat that was deleted goes along with the draft.
  document.addEventListener("agentweb:gone", () => { for (const entry of read(own).reverse()) takeBack(entry); });
  // What waits in the queue has come, also where no answer said so: what is taken back from it is not sent again.
  document.addEventListener("htmx:beforeRequest", ({ target }) => {
    const id = /\/queue\/([^/]+)\/withdraw\/$/.exec(target.getAttribute?.("action") ?? "")?.[1];
    if (!id) return;
    write(own, read(own).filter((one) => one.id !== id));
    show();
  });
  // A budget allows messages again: why one was not sent is over, and what waits can go.
  document.addEventListener("agentweb:allowed", () => {
    document.querySelector("#composer-error [data-held]")?.remove();
    later(0);
  });
  addEventListener("online", () => later(0));
  document.addEventListener("htmx:wsOpen", () => later(0));

  // A stop that did not reach the server is requested again while the same turn runs.
  const running = () => document.querySelector("#live .turn[data-live='yes']")?.id;
  let unstopped = null;
  for (const name of ["htmx:sendError", "htmx:timeout"]) {
    document.addEventListener(name, (event) => {
      if (event.detail.elt.id === "stop") unstopped = running();
    });
  }
  document.addEventListener("htmx:wsAfterMessage", () => {
    if (unstopped && unstopped === running()) document.querySelector("#stop")?.click();
    unstopped = null;
  });
  addEventListener("storage", (event) => { if (event.key === own) show(); });
  try { sessionStorage.removeItem("started"); } catch { /* storage is forbidden: nothing is in it */ }
  show();
  later(0);
})();
