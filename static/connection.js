/* agentweb: the connection of a chat: one socket, its way back when it is lost, and the words for that.
 *
 * htmx's extension makes a socket and swaps in what it says. When the next one is made is decided here alone: the
 * extension's own timer cannot be brought forward, so it never fires. A socket says where this page ends as it is
 * now, and the server begins behind that place, or anew where it knows no such history. The first socket of a page
 * also says which version the page was made at: where that is still the newest, nothing is sent.
 */
"use strict";
(() => {
  const one = (selector) => document.querySelector(selector);
  const pill = one("#connection");
  const words = one("#words")?.dataset;
  if (!pill || !words) return;
  const transcript = one("#transcript[ws-connect]");
  const htmx = window.htmx;
  const NEVER = 2 ** 31 - 1;
  // Milliseconds: the longest pause between two tries, the longest handshake, the longest silence (the server says
  // something every ten seconds), and how long a connection has to hold to count as a good one.
  const [PAUSE, HANDSHAKE, SILENCE, GOOD] = [10_000, 15_000, 30_000, 10_000];
  const BEAT = "<!-- alive -->";
  const [LOGGED_OUT, GONE, CROWDED] = [4401, 4404, 4429];
  const TOO_SLOW = [4008, 4408];

  let socket = null;
  let extension = null;
  let heard = 0;
  let opened = 0;
  let tries = 0;
  let spread = 0;
  let timer = 0;
  let told = 0;
  let ended = 0;

  /** Show words in the pill, after a moment in which they may have become needless; none hide it. */
  function show(content = [], { isLost = false, after = 0 } = {}) {
    clearTimeout(told);
    told = setTimeout(() => {
      pill.replaceChildren(...(navigator.onLine === false && content.length ? [words.offline] : content));
      pill.classList.toggle("is-lost", isLost);
      pill.hidden = !content.length;
    }, after);
  }

  htmx.config.wsReconnectDelay = () => NEVER;
  htmx.createWebSocket = (address) => {
    const url = new URL(address);
    const { after, mark } = one("#history").dataset;
    const { token, pageVersion: version } = transcript.dataset;
    url.search = new URLSearchParams({ after, mark, ...(token && { token }), ...(version && { version }) });
    delete transcript.dataset.pageVersion;
    const fresh = new WebSocket(url);
    // One that was given up may still speak, and would speak of the past.
    for (const name of ["open", "message", "error", "close"]) {
      fresh.addEventListener(name, (event) => {
        if (fresh !== socket) event.stopImmediatePropagation();
        else heard = Date.now();
      });
    }
    socket = fresh;
    heard = Date.now();
    opened = 0;
    return fresh;
  };

  /** Connect now, whatever there is. */
  function connect() {
    clearTimeout(timer);
    timer = ended = 0;
    const old = socket;
    socket = null;
    old?.close();
    extension.reconnect();
  }
  function connectLater() {
    const most = spread || Math.min(PAUSE, 1_000 * 2 ** tries);
    clearTimeout(timer);
    timer = setTimeout(connect, Math.random() * most);
    show([spread ? words.restarting : words.reconnecting], { after: spread ? 0 : 700 });
    spread = 0;
    tries += 1;
    if (!opened && tries % 3 === 2) ask();
  }
  function end(code) {
    clearTimeout(timer);
    timer = 0;
    ended = code;
    if (code === LOGGED_OUT) document.dispatchEvent(new Event("agentweb:out"));
    else show([code === CROWDED ? words.crowded : words.gone], { isLost: true });
  }
  /** Ask a page why there is no connection: a handshake that is refused does not say. */
  async function ask() {
    const answer = await fetch(transcript.dataset.page, { headers: { "HX-Request": "true" } }).catch(() => null);
    if (timer && answer?.status === 401) end(LOGGED_OUT);
    if (timer && answer?.status === 404) end(GONE);
    if (timer && answer?.ok) document.dispatchEvent(new Event("agentweb:stale"));
  }

  document.addEventListener("htmx:wsOpen", ({ detail }) => {
    extension = detail.socketWrapper;
    opened = Date.now();
    delete one("#restarting").dataset.within;
    show();
  });
  document.addEventListener("htmx:wsClose", ({ detail }) => {
    extension = detail.socketWrapper;
    const { code } = detail.event;
    if ([LOGGED_OUT, GONE, CROWDED].includes(code)) { end(code); return; }
    if (opened && Date.now() - opened > GOOD) tries = 0;
    if (TOO_SLOW.includes(code)) tries = Math.max(tries, 2);
    connectLater();
  });
  document.addEventListener("htmx:wsBeforeMessage", (event) => {
    if (event.detail.message === BEAT) event.preventDefault();
  });
  document.addEventListener("htmx:wsAfterMessage", () => {
    spread = 1_000 * (one("#restarting").dataset.within ?? 0);
  });

  /** Give up a socket whose server does not answer. */
  function check() {
    if (ended || timer || !socket) return;
    const silence = Date.now() - heard;
    if (socket.readyState === WebSocket.OPEN) {
      if (silence <= SILENCE) return;
      show([words.reconnecting]);
      connect();
    } else if (silence > HANDSHAKE) {
      // Its end is told at once, and leads to the next try.
      socket.close();
    }
  }
  /** Somebody looks at the page: what would be tried later is tried now. */
  function wake() {
    if (document.hidden || !extension) return;
    if (timer || ended === CROWDED) connect();
    else check();
  }
  const renew = () => { if (extension && (!ended || ended === CROWDED)) connect(); };
  addEventListener("offline", () => show([words.offline]));
  addEventListener("online", () => { show(); if (transcript) renew(); });
  if (!transcript) return;
  setInterval(check, 2_000);
  document.addEventListener("visibilitychange", wake);
  addEventListener("focus", wake);
  addEventListener("pageshow", (event) => { if (event.persisted) renew(); });

  window.agentweb = { ...window.agentweb, show, connect };
})();
