/* agentweb: messages that could not be sent yet.
 *
 * A message whose request did not reach the server is kept in this browser, under the client id it had before, and
 * is sent as soon as the server responds. The server accepts an id once, so a first attempt that did arrive, or two
 * tabs that send, do no harm. A message that the server refuses is returned to its writer.
 */
"use strict";
(() => {
  const form = document.querySelector("#composer");
  const list = document.querySelector("#outbox");
  if (!form || !list) return;
  const PREFIX = "outbox:";
  const user = list.dataset.user;
  const own = PREFIX + form.dataset.draft;
  const isNew = form.dataset.draft === "new";
  let isBusy = false;
  let pause = 0;
  let timer = null;

  function readAll(key) {
    try { return JSON.parse(localStorage.getItem(key) ?? "[]"); } catch { return []; }
  }
  const read = (key) => readAll(key).filter((one) => one.user === user);
  /** Store the person's messages of a key; those of others who use this browser stay. */
  function write(key, own) {
    const entries = [...readAll(key).filter((one) => one.user !== user), ...own];
    try {
      if (entries.length) localStorage.setItem(key, JSON.stringify(entries));
      else localStorage.removeItem(key);
      return true;
    } catch {
      return false;
    }
  }
  const keys = () => Object.keys(localStorage).filter((key) => key.startsWith(PREFIX));

  /** Keep a message; return false if it cannot be kept: it contains a file, or storage is full. */
  function put(data) {
    const fields = [];
    for (const [name, value] of data) {
      if (value instanceof File) { if (value.size) return false; } else if (name !== "csrfmiddlewaretoken") fields.push([name, value]);
    }
    const entry = {
      user, url: form.getAttribute("action"), id: data.get("client_id"), text: data.get("text"),
      body: new URLSearchParams(fields).toString(),
    };
    const entries = read(own).filter((one) => one.id !== entry.id);
    if (!entry.text?.trim() || !write(own, [...entries, entry])) return false;
    show();
    return true;
  }

  function show() {
    const rows = read(own).map((entry) => {
      const row = document.createElement("div");
      const text = document.createElement("p");
      const line = document.createElement("p");
      const back = document.createElement("button");
      row.className = `outbox-row${entry.refused ? " is-refused" : ""}`;
      text.className = "bubble plain";
      text.textContent = entry.text;
      line.className = "outbox-line";
      line.textContent = `${entry.refused ?? (isBusy && isNew ? list.dataset.sending : list.dataset.waiting)} `;
      back.type = "button";
      back.className = "linklike";
      back.textContent = list.dataset.back;
      back.addEventListener("click", () => takeBack(entry));
      line.append(back);
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
    box.focus();
    show();
  }

  function later(seconds) {
    clearTimeout(timer);
    timer = setTimeout(flush, seconds * 1000);
  }

  async function flush() {
    if (isBusy || navigator.onLine === false || !keys().some((key) => read(key).length)) return;
    isBusy = true;
    show();
    try {
      if (navigator.locks) await navigator.locks.request("agentweb-outbox", flushAll);
      else await flushAll();
      pause = 0;
    } catch {
      pause = Math.min(30, pause * 2 || 2);
      later(pause);
    } finally {
      isBusy = false;
      show();
    }
  }

  /** Send all kept messages in order; throws when the server is unreachable. */
  async function flushAll() {
    for (const key of keys()) {
      for (const entry of read(key)) {
        if (entry.refused) break;
        if (!await send(key, entry)) break;
      }
    }
  }

  async function send(key, entry) {
    const headers = {
      ...JSON.parse(document.body.getAttribute("hx-headers") ?? "{}"),
      "HX-Request": "true",
      "Content-Type": "application/x-www-form-urlencoded",
    };
    const response = await fetch(entry.url, { method: "POST", headers, body: entry.body });
    const to = response.headers.get("HX-Redirect");
    // What comes after a redirect is another page, which says nothing of the message.
    if (response.ok && !response.redirected) {
      entry.isRepeated = false;
      write(key, read(key).filter((one) => one.id !== entry.id));
      if (key === own && isNew && to) {
        localStorage.removeItem(`draft:${user}:new`);
        location.assign(to);
      }
      return true;
    }
    if (to) {
      // Not taken, and the person has to be elsewhere first. Nothing more is sent from a page that is being left.
      location.assign(to);
      return new Promise(() => {});
    }
    if (response.status === 401 || (response.status === 403 && !entry.isRepeated)) {
      write(key, read(key).map((one) => (one.id === entry.id ? { ...one, isRepeated: true } : one)));
      window.agentweb.logIn(() => later(0));
      return false;
    }
    if (response.status === 409 || response.status >= 500) throw new Error("later");
    const refused = new DOMParser().parseFromString(await response.text(), "text/html").querySelector(".send-error");
    const reason = refused?.textContent ?? list.dataset.refused;
    if (key === own && !form.elements.text.value) {
      const note = document.createElement("p");
      note.className = "error";
      note.textContent = reason;
      takeBack(entry);
      document.querySelector("#composer-error").replaceChildren(note);
      return false;
    }
    write(key, read(key).map((one) => (one.id === entry.id ? { ...one, refused: reason } : one)));
    return false;
  }

  // Tell the composer that its message is kept here.
  function given() { form.dispatchEvent(new Event("stored")); }
  document.addEventListener("submit", (event) => {
    if (event.target !== form || !form.elements.text.value.trim()) return;
    if (!isNew && navigator.onLine !== false) return;
    if (!put(new FormData(form))) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    given();
    later(0);
  }, true);
  function failed(event) {
    const { elt, requestConfig } = event.detail;
    if (elt !== form || !put(requestConfig.formData)) return;
    document.querySelector("#composer-error").replaceChildren();
    if (form.elements.text.value === requestConfig.formData.get("text")) given();
    later(2);
  }
  document.addEventListener("htmx:sendError", failed);
  document.addEventListener("htmx:timeout", failed);
  document.addEventListener("htmx:responseError", (event) => {
    if ([502, 503, 504].includes(event.detail.xhr.status)) failed(event);
  });

  addEventListener("online", () => later(0));
  document.addEventListener("htmx:wsOpen", () => later(0));

  // A stop that did not reach the server is requested again while the same turn runs.
  const running = () => document.querySelector("#live .turn[data-live='yes']")?.id;
  let unstopped = null;
  document.addEventListener("htmx:sendError", (event) => {
    if (event.detail.elt.id === "stop") unstopped = running();
  });
  document.addEventListener("htmx:wsAfterMessage", () => {
    if (unstopped && unstopped === running()) document.querySelector("#stop")?.click();
    unstopped = null;
  });
  addEventListener("storage", (event) => { if (event.key === own) show(); });
  show();
  later(0);
})();
