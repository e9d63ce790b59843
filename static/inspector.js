/* The inspector beside a chat: `i` opens it, as a drawer where there is room and as a page where not. */
"use strict";
(() => {
  const drawer = document.querySelector("#inspector");
  const link = document.querySelector("[data-inspector]");
  if (!drawer || !link) return;
  const wide = matchMedia("(min-width: 75rem)");
  const wants = () => { try { return localStorage.getItem("inspector") === "open"; } catch { return false; } };
  const keep = (value) => { try { localStorage.setItem("inspector", value); } catch { /* storage is forbidden */ } };

  function open() {
    if (!wide.matches) { location.assign(link.href); return; }
    drawer.hidden = false;
    link.setAttribute("aria-expanded", "true");
    keep("open");
    load();
  }
  // What stands in the drawer until it was loaded once.
  const lost = drawer.querySelector("[data-lost]");
  async function load() {
    await window.htmx.ajax("GET", `${link.pathname}?drawer=1`, { target: drawer, swap: "innerHTML" }).catch(() => null);
    lost.hidden = false;
  }
  function close() {
    const had = drawer.contains(document.activeElement);
    drawer.hidden = true;
    link.setAttribute("aria-expanded", "false");
    keep("closed");
    if (had) link.focus();
  }
  link.addEventListener("click", (event) => {
    if (!wide.matches || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    if (drawer.hidden) open();
    else close();
  });
  drawer.addEventListener("click", (event) => {
    if (event.target.closest("[data-close='inspector']")) close();
    if (event.target.closest("[data-again]")) load();
  });
  // Runs before the shortcuts of the chat, which close layers above the drawer.
  addEventListener("keydown", (event) => {
    if (event.isComposing || event.defaultPrevented || !document.querySelector("#use-shortcuts")?.checked) return;
    const writes = event.target.closest?.("input:not([type=radio]), textarea, select, [contenteditable]");
    const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey;
    const isCovered = document.querySelector("dialog[open], .meter[open], :popover-open");
    if (event.key === "i" && isPlain && !event.shiftKey && !writes && !isCovered) {
      event.preventDefault();
      if (drawer.hidden) open();
      else close();
    } else if (event.key === "Escape" && !event.shiftKey && !drawer.hidden && !isCovered && !document.querySelector("#stop")) {
      close();
    }
  }, true);
  // Reload the drawer when a turn ends, because it has made calls.
  let wasLive = false;
  document.addEventListener("htmx:wsAfterMessage", () => {
    const live = document.querySelector("#composer-state")?.dataset.live === "yes";
    if (wasLive && !live && !drawer.hidden) load();
    wasLive = live;
  });
  document.addEventListener("htmx:wsOpen", () => { if (lost.isConnected && !lost.hidden && !drawer.hidden) load(); });
  if (wide.matches && wants()) open();
})();
