/* agentweb: the browser's time zone for the server, which names days and times by it. The cookie says nothing else. It
 * is written again when a tab comes to the front, before the list asks: the reader may be elsewhere by then.
 */
"use strict";
(() => {
  function tell() {
    const zone = new Intl.DateTimeFormat().resolvedOptions().timeZone;
    if (!zone) return;
    const secure = location.protocol === "https:" ? "; secure" : "";
    document.cookie = `time-zone=${zone}; path=/; max-age=31536000; samesite=lax${secure}`;
  }
  tell();
  document.addEventListener("visibilitychange", tell);
})();
