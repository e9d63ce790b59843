/* agentweb: mark a hidden tab when its answer ends or needs a decision; also notify, if that is switched on. */
"use strict";
(() => {
  const root = document.documentElement;
  const MARK = "● ";
  const isLive = () => document.querySelector("#composer-state")?.dataset.live === "yes";
  const isAsked = () => Boolean(document.querySelector(".question"));
  const words = document.querySelector("#words")?.dataset ?? {};
  let wasLive = isLive();
  let wasAsked = isAsked();
  let isUnseen = false;

  document.addEventListener("htmx:wsAfterMessage", () => {
    const live = isLive();
    const asked = isAsked();
    if (document.hidden && ((wasLive && !live) || (asked && !wasAsked))) {
      isUnseen = true;
      notify(asked ? words.asks : words.ended);
    }
    wasLive = live;
    wasAsked = asked;
    mark();
  });
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) isUnseen = false;
    mark();
  });

  // After every message, because the message may have changed the title.
  function mark() {
    const asks = `${words.asks} · `;
    let bare = document.title;
    for (const sign of [MARK, asks]) if (bare.startsWith(sign)) bare = bare.slice(sign.length);
    document.title = (isUnseen ? MARK : "") + (isAsked() ? asks : "") + bare;
  }
  mark();

  function notify(text) {
    if (root.dataset.notify !== "yes" || !("Notification" in window) || Notification.permission !== "granted") return;
    const title = document.querySelector("#title").textContent;
    const options = { body: text, tag: location.pathname };
    let note;
    try {
      note = new Notification(title, options);
    } catch {
      // A phone shows one only through the worker.
      navigator.serviceWorker?.ready.then((worker) => worker.showNotification(title, options));
      return;
    }
    note.addEventListener("click", () => { window.focus(); note.close(); });
  }

  // What is shown while the server cannot be reached; without it the browser shows its own page.
  navigator.serviceWorker?.register("/service-worker.js").catch(() => {});

  // The browser's permission is requested only when the reader switches notifications on.
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
