/* agentweb: the connection of a chat: one socket, its reconnection, and the status shown meanwhile.
 *
 * htmx's extension opens a socket and swaps in its messages. The time of the next attempt is decided only here: the
 * extension's own timer cannot be brought forward, so it is set to never fire. A handshake carries the bookmark of
 * the page (where it ends now), and the server sends what follows it, or the whole page if it does not know that
 * history. The first handshake also carries the version of the page: if it is still the newest, nothing is sent.
 * So do later ones, which name the version that the last sign of life gave the page: then the budgets alone are sent.
 * A page that was changed since is newer than that, and so is the server, which then sends what follows the bookmark.
 * Where pages come and no socket opens, a PolledSocket takes its place until one does.
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
  // Milliseconds: longest pause between two attempts, longest handshake, longest silence (the server sends a sign of
  // life every ten seconds), and the duration after which a connection counts as good.
  const [PAUSE, HANDSHAKE, SILENCE, GOOD] = [10_000, 15_000, 30_000, 10_000];
  const BEAT = /^<!-- alive(?: (\d+))? -->$/;
  const [LOGGED_OUT, GONE, CROWDED, AWAY] = [4401, 4404, 4429, 1013];
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
  let isAway = false;
  let isPolled = false;
  let left = "";

  /** Show content in the status pill after a delay, unless it is replaced before; no content hides the pill. */
  function show(content = [], { isLost = false, after = 0 } = {}) {
    clearTimeout(told);
    told = setTimeout(() => {
      pill.replaceChildren(...(navigator.onLine === false && content.length ? [words.offline] : content));
      pill.classList.toggle("is-lost", isLost);
      pill.hidden = !content.length;
    }, after);
  }

  const bookmark = () => {
    const { after, mark } = one("#history").dataset;
    return { after, mark };
  };
  const poll = (url) => new window.agentweb.PolledSocket(url, transcript.dataset.updates, "<!-- alive -->", {
    read: bookmark,
    onWebSocket: () => { isPolled = false; connect(); },
  });

  htmx.config.wsReconnectDelay = () => NEVER;
  htmx.createWebSocket = (address) => {
    const url = new URL(address);
    const { token, pageVersion: version } = transcript.dataset;
    const shown = version ? { version } : left && { left };
    url.search = new URLSearchParams({ ...bookmark(), ...(token && { token }), ...shown });
    delete transcript.dataset.pageVersion;
    const fresh = isPolled ? poll(url) : new WebSocket(url);
    // A socket that was given up may still deliver events, which are outdated.
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

  /** Connect now, and replace any existing socket. */
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
    const reason = isAway ? words.away : words.reconnecting;
    show([spread ? words.restarting : reason], { after: spread || isAway ? 0 : 700 });
    spread = 0;
    tries += 1;
    if (!opened && tries % 3 === 2) ask();
  }
  function end(code) {
    clearTimeout(timer);
    timer = 0;
    ended = code;
    if (code === LOGGED_OUT) document.dispatchEvent(new Event("agentweb:out"));
    else show(code === CROWDED ? [words.crowded] : [], { isLost: true });
    if (code === GONE) document.dispatchEvent(new Event("agentweb:gone"));
  }
  /** Request a page to learn why there is no connection: a refused handshake gives no reason. */
  async function ask() {
    const answer = await fetch(transcript.dataset.page, { headers: { "HX-Request": "true" } }).catch(() => null);
    if (timer && answer?.status === 401) end(LOGGED_OUT);
    if (timer && answer?.status === 404) end(GONE);
    if (!opened && !ended && isAway !== (answer?.status === 503)) {
      isAway = !isAway;
      show([isAway ? words.away : words.reconnecting]);
    }
    if (timer && answer?.ok) {
      document.dispatchEvent(new Event("agentweb:stale"));
      isPolled = true;
      connect();
    }
    // A deleted chat was brought back.
    if (ended === GONE && answer?.ok) connect();
  }

  document.addEventListener("htmx:wsOpen", ({ detail }) => {
    extension = detail.socketWrapper;
    opened = Date.now();
    isAway = false;
    delete one("#restarting").dataset.within;
    delete one("#deleted").dataset.now;
    show(isPolled ? [words.polled] : []);
  });
  document.addEventListener("htmx:wsClose", ({ detail }) => {
    extension = detail.socketWrapper;
    const { code } = detail.event;
    if ([LOGGED_OUT, GONE, CROWDED].includes(code)) { end(code); return; }
    isAway ||= code === AWAY;
    isPolled = false;
    if (opened && Date.now() - opened > GOOD) tries = 0;
    if (TOO_SLOW.includes(code)) tries = Math.max(tries, 2);
    connectLater();
  });
  document.addEventListener("htmx:wsBeforeMessage", (event) => {
    const beat = BEAT.exec(event.detail.message);
    if (!beat) return;
    left = beat[1] ?? left;
    event.preventDefault();
  });
  // What a form has just changed is asked for at once.
  for (const name of ["htmx:afterRequest", "agentweb:delivered"]) {
    document.addEventListener(name, () => { if (isPolled) socket?.poll?.(); });
  }
  document.addEventListener("htmx:wsAfterMessage", () => {
    spread = 1_000 * (one("#restarting").dataset.within ?? 0);
    if ("now" in one("#deleted").dataset && !ended) end(GONE);
  });

  /** Give up a socket whose server is silent. */
  function check() {
    if (ended || timer || !socket) return;
    const silence = Date.now() - heard;
    if (socket.readyState === WebSocket.OPEN) {
      if (silence <= SILENCE) return;
      show([words.reconnecting]);
      connect();
    } else if (silence > HANDSHAKE) {
      // The close event comes at once and schedules the next attempt.
      socket.close();
    }
  }
  /** The page becomes visible: make a scheduled attempt now. */
  function wake() {
    if (document.hidden || !extension) return;
    if (ended === GONE) ask();
    else if (timer || ended === CROWDED) connect();
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
