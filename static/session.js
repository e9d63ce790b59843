/* agentweb: a session that ends while its page is open.
 *
 * Without a session a request, also for a fragment, gets a 401. Then the log-in is shown as a dialog on the page;
 * afterwards the page has a new token and repeats the request. A 403 may only mean that the token is old: a user
 * who is logged in already gets a new token without a dialog. A form that leaves the page asks before it is sent.
 */
"use strict";
(() => {
  const dialog = document.querySelector("#session");
  if (!dialog) return;
  const place = document.querySelector("#session-form");
  const pill = document.querySelector("#connection");
  let after = [];
  let isOut = false;
  let isAsking = false;

  /** The address of the log-in; its other ways lead back to this page. */
  const address = () => `${dialog.dataset.url}?${new URLSearchParams({ next: location.pathname + location.search })}`;

  const ask = () => fetch(address(), { headers: { "HX-Request": "true" } });

  const say = (text) => {
    const note = document.createElement("p");
    note.className = "error";
    note.setAttribute("role", "alert");
    note.textContent = text;
    place.replaceChildren(note, ...[...place.children].filter((one) => !one.matches(".error")));
  };

  /** Log in, or find that the user is logged in; then call `next`, or `instead` if the dialog is closed.
   *
   * What `isHere` says is on this page alone is not left for another way to log in: that opens in another tab.
   */
  async function logIn(next, instead = () => {}, { answer = null, isHere = false } = {}) {
    after.push({ next, instead, isHere });
    if (isAsking) return;
    isAsking = true;
    await show(answer ?? ask());
  }

  /** Use the session of another tab, if it is the same person's. */
  async function isBack() {
    const holder = document.createElement("div");
    try {
      holder.innerHTML = await (await ask()).text();
    } catch {
      return false;
    }
    const found = holder.querySelector("#again[data-user]");
    if (found?.dataset.user !== dialog.dataset.user) return false;
    done(holder.querySelector("[name=csrfmiddlewaretoken]").value, found.dataset.socket);
    return true;
  }

  async function show(asked) {
    let html;
    try {
      const answer = await asked;
      const to = answer.headers.get("HX-Redirect");
      if (to) { location.assign(to); return; }
      html = await answer.text();
    } catch {
      if (!dialog.open) dialog.showModal();
      say(dialog.dataset.lost);
      return;
    }
    place.innerHTML = html;
    if (after.some(({ isHere }) => isHere)) for (const link of place.querySelectorAll("a")) link.target = "_blank";
    const found = place.querySelector("#again[data-user]");
    if (found && found.dataset.user === dialog.dataset.user) {
      done(place.querySelector("[name=csrfmiddlewaretoken]").value, found.dataset.socket);
      return;
    }
    if (!dialog.open) dialog.showModal();
    if (found) say(dialog.dataset.other);
    else place.querySelector("input:not([type=hidden]), .acts a")?.focus();
  }

  function done(token, socketToken) {
    document.querySelector("#transcript[data-token]")?.setAttribute("data-token", socketToken);
    document.body.setAttribute("hx-headers", JSON.stringify({ "X-CSRFToken": token }));
    for (const field of document.querySelectorAll("[name=csrfmiddlewaretoken]")) field.value = token;
    const tasks = after;
    after = [];
    isAsking = false;
    dialog.close();
    place.replaceChildren();
    if (isOut) { isOut = false; window.agentweb.connect(); }
    for (const task of tasks) task.next();
  }

  dialog.addEventListener("submit", (event) => {
    event.preventDefault();
    const form = event.target;
    show(fetch(address(), {
      method: "POST", headers: { "HX-Request": "true" }, body: new FormData(form),
    }));
  });
  dialog.addEventListener("click", (event) => {
    if (event.target.closest("[data-close]")) dialog.close();
  });
  dialog.addEventListener("close", () => {
    const tasks = after;
    after = [];
    isAsking = false;
    for (const task of tasks) task.instead();
  });

  // Who logged in in another tab comes back to this one.
  document.addEventListener("visibilitychange", () => { if (!document.hidden && dialog.open) isBack(); });

  /** A request was answered. Another tab may have logged in while this one learned of the end. */
  function notice() {
    if (isOut && !isAsking) isBack();
  }

  // Requests of htmx: trigger a refused one again, once.
  const repeated = new WeakSet();
  document.addEventListener("htmx:responseError", (event) => {
    const { xhr, elt, requestConfig } = event.detail;
    if (xhr.status !== 401 && (xhr.status !== 403 || repeated.has(elt))) return;
    repeated.add(elt);
    logIn(() => {
      if (!elt.isConnected) return;
      const { type, submitter } = requestConfig.triggeringEvent ?? {};
      // The button that was pressed is part of what is sent, and htmx knows it by its click.
      if (submitter?.isConnected) submitter.click();
      else if (type === "submit") elt.requestSubmit();
      else if (type === "click") elt.click();
    }, () => elt.dispatchEvent(new Event("unsent", { bubbles: true })));
  });
  document.addEventListener("htmx:afterRequest", (event) => {
    if (!event.detail.successful) return;
    repeated.delete(event.detail.elt);
    notice();
  });
  document.addEventListener("agentweb:delivered", notice);

  // Forms that the browser sends itself: the page and what was filled in would be left for the log-in.
  const asked = new WeakSet();
  const sure = new WeakSet();
  document.addEventListener("submit", (event) => {
    const { target: form, submitter } = event;
    if (form.getAttribute("method") !== "post" || dialog.contains(form) || submitter?.matches("[hx-post]")) return;
    if (form.matches("#composer, [hx-post], [data-passkey]")) return;
    if (!form.querySelector("textarea, select, input:not([type=hidden])") || sure.delete(form)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (asked.has(form)) return;
    asked.add(form);
    const send = () => {
      asked.delete(form);
      sure.add(form);
      form.requestSubmit(submitter);
    };
    // A server that does not answer says so when the form is sent.
    const keep = () => asked.delete(form);
    ask().then((answer) => (answer.ok ? logIn(send, keep, { answer, isHere: true }) : send()), send);
  }, true);

  // The server also closes the socket when the session is over.
  document.addEventListener("agentweb:out", async () => {
    isOut = true;
    // Another tab may have logged in again.
    if (!isAsking && await isBack()) return;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "linklike";
    button.textContent = pill.dataset.again;
    button.addEventListener("click", () => logIn(() => {}));
    window.agentweb.show([pill.dataset.out, " ", button]);
  });

  // A handshake was refused although the user is logged in: the page's token is of an older session.
  document.addEventListener("agentweb:stale", () => { if (!isAsking) isBack(); });

  window.agentweb = { ...window.agentweb, logIn };
})();
