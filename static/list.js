/* agentweb: the list of chats of a tab that comes to the front is asked for again, since another tab or device may have
 * begun, renamed or deleted one. A list that somebody is in, or has scrolled, stays as it is: a click would be lost.
 */
"use strict";
(() => {
  const rows = document.querySelector("#rows");
  if (!rows) return;
  let isAsking = false;

  const isUsed = () => rows.scrollTop || rows.matches(":hover, :focus-within") || document.querySelector("dialog[open]");

  /** What a list shows: the forms of folders have a token that is new each time, and the address of the page. */
  function write(list) {
    const copy = list.cloneNode(true);
    for (const field of copy.querySelectorAll('input[type="hidden"]')) field.remove();
    return copy.innerHTML.trim();
  }

  async function renew() {
    if (document.hidden || isAsking || isUsed()) return;
    isAsking = true;
    try {
      const headers = { "HX-Request": "true", "HX-Target": "rows", "HX-Current-URL": location.href };
      const answer = await fetch(rows.dataset.list, { headers });
      if (!answer.ok || answer.redirected) return;
      const fresh = rows.cloneNode();
      fresh.innerHTML = await answer.text();
      // The row of the page's own chat is kept new by the page.
      const [own, same] = [rows, fresh].map((list) => list.querySelector(".row[aria-current]"));
      if (own && same) same.replaceWith(own.cloneNode(true));
      if (isUsed() || write(fresh) === write(rows)) return;
      rows.replaceChildren(...fresh.childNodes);
      window.htmx.process(rows);
    } catch {
      // Without a server the list stays as it is.
    } finally {
      isAsking = false;
    }
  }
  document.addEventListener("visibilitychange", renew);
  addEventListener("focus", renew);
  document.addEventListener("agentweb:gone", renew);
})();
