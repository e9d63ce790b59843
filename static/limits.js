/* agentweb: budget notices: each is announced to screen readers once, when it appears, and future times are also
 * shown relative to now. That a budget allows messages again is an event, `agentweb:allowed`.
 */
"use strict";
(() => {
  const relative = new Intl.RelativeTimeFormat(document.documentElement.lang || undefined, { numeric: "auto" });
  const UNITS = [["day", 86400], ["hour", 3600], ["minute", 60]];
  function tellTimes() {
    for (const node of document.querySelectorAll("time[data-until]")) {
      const left = Math.max(0, (new Date(node.dateTime) - Date.now()) / 1000);
      if (Number.isNaN(left)) continue;
      const [unit, size] = UNITS.find(([, size]) => left >= 2 * size) ?? UNITS[2];
      const text = relative.format(Math.ceil(left / size), unit);
      if (node.textContent !== text) node.textContent = text;
    }
  }
  tellTimes();
  setInterval(tellTimes, 15_000);

  const present = () => document.querySelectorAll("#limits [data-notice]");
  const told = new Set([...present()].map((node) => node.dataset.notice));
  const isStopped = () => Boolean(document.querySelector("#limits .is-over"));
  let wasStopped = isStopped();
  const announcer = document.querySelector("#limit-announcer");
  function tellNotices() {
    tellTimes();
    const fresh = [...present()].filter((node) => !told.has(node.dataset.notice));
    for (const node of fresh) told.add(node.dataset.notice);
    if (fresh.length && announcer) {
      announcer.textContent = fresh.flatMap((node) => [...node.querySelectorAll("p")])
        .map((node) => node.textContent.trim()).join(" ");
    }
    const before = wasStopped;
    wasStopped = isStopped();
    if (before && !wasStopped) document.dispatchEvent(new Event("agentweb:allowed"));
  }
  document.addEventListener("htmx:wsAfterMessage", tellNotices);
  document.addEventListener("htmx:afterSettle", tellNotices);
})();
