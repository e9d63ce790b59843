/* agentweb: the updates of a chat over HTTP, for networks that let no websocket through.
 *
 * It stands in for a WebSocket: it opens with the first answer, and its messages are those that a socket would get on
 * connecting, the page after its bookmark. What has not changed since is reported as a sign of life.
 */
"use strict";
(() => {
  // Milliseconds between two requests, and between two attempts to open a websocket after all.
  const [PACE, PROBE] = [2_000, 15_000];

  class PolledSocket extends EventTarget {
    /** `address` is that of the websocket, `page` that of the updates; `beat` is the sign of life. */
    constructor(address, page, beat, { read, onWebSocket }) {
      super();
      Object.assign(this, { page, beat, read, readyState: WebSocket.CONNECTING, shown: "", version: "" });
      this.next = setTimeout(() => this.poll());
      this.probe = setInterval(() => {
        const found = new WebSocket(address);
        found.addEventListener("open", () => { found.close(); if (this.readyState === WebSocket.OPEN) onWebSocket(); });
      }, PROBE);
    }
    /** Ask now, or again as soon as a request on its way is answered; the next one follows after the pace.
     *
     * Of two at once, the answer to the older could come last and take the place of the newer.
     */
    async poll() {
      clearTimeout(this.next);
      if (this.isAsking) { this.isLate = true; return; }
      this.isAsking = true;
      this.isLate = false;
      const asked = new URLSearchParams({ ...this.read(), version: this.version });
      const answer = await fetch(`${this.page}?${asked}`, { headers: { "HX-Request": "true" } }).catch(() => null);
      const text = answer?.ok ? await answer.text().catch(() => null) : null;
      this.isAsking = false;
      if (this.readyState === WebSocket.CLOSED) return;
      if (text === null || answer.redirected) { this.close({ 401: 4401, 404: 4404, 503: 1013 }[answer?.status]); return; }
      if (this.readyState === WebSocket.CONNECTING) {
        this.readyState = WebSocket.OPEN;
        this.dispatchEvent(new Event("open"));
      }
      this.version = answer.headers.get("Page-Version") ?? "";
      const isNew = text && text !== this.shown;
      if (isNew) this.shown = text;
      this.dispatchEvent(new MessageEvent("message", { data: isNew ? text : this.beat }));
      clearTimeout(this.next);
      if (this.readyState === WebSocket.OPEN) this.next = setTimeout(() => this.poll(), this.isLate ? 0 : PACE);
    }
    close(code = 1006) {
      if (this.readyState === WebSocket.CLOSED) return;
      this.readyState = WebSocket.CLOSED;
      clearTimeout(this.next);
      clearInterval(this.probe);
      this.dispatchEvent(new CloseEvent("close", { code }));
    }
  }
  // As on a WebSocket, such a handler comes after the listeners that were there before it.
  for (const name of ["open", "message", "error", "close"]) {
    Object.defineProperty(PolledSocket.prototype, `on${name}`, { set(heard) { this.addEventListener(name, heard); } });
  }
  window.agentweb = { ...window.agentweb, PolledSocket };
})();
