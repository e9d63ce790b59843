/* agentweb: an answer that ends while nobody looks marks the tab, and says so where that was switched on. */
"use strict";
(() => {
  const root = document.documentElement;
  const MARK = "● ";
  const isLive = () => document.querySelector("#composer-state")?.dataset.live === "yes";
  let wasLive = isLive();
  let isUnseen = false;

  document.addEventListener("htmx:wsAfterMessage", () => {
    const live = isLive();
    if (wasLive && !live && document.hidden) {
      isUnseen = true;
      notify();
    }
    wasLive = live;
    mark();
  });
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) isUnseen = false;
    mark();
  });

  // After every message, because the title itself may be new.
  function mark() {
    const bare = document.title.startsWith(MARK) ? document.title.slice(MARK.length) : document.title;
    document.title = isUnseen ? MARK + bare : bare;
  }

  function notify() {
    if (root.dataset.notify !== "yes" || !("Notification" in window) || Notification.permission !== "granted") return;
    const note = new Notification(document.querySelector("#title").textContent, {
      body: document.querySelector("#words").dataset.ended,
      tag: location.pathname,
    });
    note.addEventListener("click", () => { window.focus(); note.close(); });
  }

  // The one place that asks for the permission: who switches it on.
  const choice = document.querySelector("#id_notifications");
  choice?.addEventListener("change", async () => {
    const state = document.querySelector("#notify-state");
    state.textContent = "";
    if (!choice.checked) return;
    const answer = "Notification" in window ? await Notification.requestPermission() : "missing";
    if (answer === "granted") return;
    choice.checked = false;
    state.textContent = answer === "missing" ? state.dataset.missing : state.dataset.denied;
  });
})();
