/* agentweb: a chat that was deleted while its page is open, in another tab or on another device.
 *
 * The page says so with `agentweb:gone`, and leads on. What was written stays in the browser, and goes along to a new
 * chat, with the files that wait to be sent.
 */
"use strict";
(() => {
  const note = document.querySelector("#gone");
  if (!note) return;
  const onward = note.querySelector("[data-onward]");
  const { user } = document.querySelector("#outbox").dataset;
  let isLeft = false;
  // Who deletes it here is led on by the server.
  document.addEventListener("htmx:beforeRequest", ({ detail }) => {
    isLeft = detail.pathInfo.requestPath.endsWith(`/c/${note.dataset.draft}/menu/delete/`);
  });
  document.addEventListener("agentweb:gone", () => { note.hidden = isLeft; });
  // It was brought back elsewhere.
  document.addEventListener("htmx:wsOpen", () => { note.hidden = true; });

  /** Move what is stored for this chat to the page of a new one, where there may be some already. */
  function move(kind, join) {
    const [here, there] = [note.dataset.draft, "new"].map((chat) => `${kind}:${user}:${chat}`);
    const written = localStorage.getItem(here);
    if (!written) return;
    const kept = localStorage.getItem(there);
    localStorage.setItem(there, kept ? join(kept, written) : written);
    localStorage.removeItem(here);
  }
  onward.addEventListener("click", () => {
    onward.target = "";
    try {
      move("draft", (kept, written) => {
        const [old, now] = [kept, written].map((one) => JSON.parse(one));
        return JSON.stringify({ ...old, text: `${old.text}\n\n${now.text}`, id: undefined });
      });
      move("files", (kept, written) => `${kept} ${written}`);
    } catch {
      // Storage is full or forbidden: what was written is on this page alone, which stays.
      onward.target = "_blank";
    }
  });
})();
