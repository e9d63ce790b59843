/* agentweb: the page without a server asks whether it is back, and then loads what was wanted. */
"use strict";
(() => {
  const SECONDS = 5;
  async function look() {
    const isBack = await fetch("/healthz/live", { cache: "no-store" }).then(({ ok }) => ok, () => false);
    if (isBack && location.pathname !== "/offline/") location.reload();
  }
  window.addEventListener("online", look);
  setInterval(look, SECONDS * 1_000);
})();
