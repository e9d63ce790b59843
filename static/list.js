/* agentweb: the list of chats of a tab that comes to the front is asked for again, since another tab or device may have
 * begun, renamed or deleted one. A list that somebody is in, or has scrolled, stays as it is: a click would be lost.
 */
"use strict";
(() => {
  const rows = document.querySelector("#rows");
  if (!rows) return;
  let shown = null;
  let isAsking = false;

  const isUsed = () => rows.scrollTop || rows.matches(":hover, :focus-within") || document.querySelector("dialog[open]");

  async function renew() {
    if (document.hidden || isAsking || isUsed()) return;
    isAsking = true;
    try {
      const headers = { "HX-Request": "true", "HX-Target": "rows", "HX-Current-URL": location.href };
      const answer = await fetch(rows.dataset.list, { headers });
      const html = answer.ok && !answer.redirected ? await answer.text() : shown;
      if (html === shown || isUsed()) return;
      shown = html;
      const current = rows.querySelector(".row[aria-current]")?.getAttribute("aria-current");
      rows.innerHTML = html;
      if (current) rows.querySelector(".row[aria-current]")?.setAttribute("aria-current", current);
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
