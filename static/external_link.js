/* agentweb: an outside link in an answer is opened by the page that looks at the words in its address. */
"use strict";
(() => {
  function openLink(event) {
    const link = event.target.closest?.(".turn a[target=_blank][href^=http i]");
    const chat = location.pathname.match(/^.*\/c\/[0-9a-f-]{36}\//)?.[0];
    if (!link || !chat || (event.type === "auxclick" && event.button !== 1)) return;
    event.preventDefault();
    window.open(`${chat}link/?to=${encodeURIComponent(link.href)}`, "_blank", "noopener");
  }
  for (const kind of ["click", "auxclick"]) document.addEventListener(kind, openLink);
})();
