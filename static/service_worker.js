/* agentweb: the page that is shown while the server cannot be reached, and notifications of an installed app.
 *
 * What is stored is one page of nobody's and what it needs. Nothing that a person asked for or was shown is stored or
 * answered from here: a navigation goes to the server, and only one without any answer gets that page.
 */
"use strict";
const KEPT = "offline";
const PAGE = "/offline/";
const PARTS = ["agentweb.css", "agentweb.svg", "offline.js"].map((name) => `/static/${name}`);

self.addEventListener("install", (event) => {
  // Without cookies: the page is that of a stranger.
  const wanted = [PAGE, ...PARTS].map((path) => new Request(path, { cache: "reload", credentials: "omit" }));
  event.waitUntil(caches.open(KEPT).then((kept) => kept.addAll(wanted)).then(() => self.skipWaiting()));
});
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("fetch", (event) => {
  const { method, mode, url } = event.request;
  if (method !== "GET") return;
  const { origin, pathname } = new URL(url);
  const stored = mode === "navigate" ? PAGE : PARTS.find((path) => origin === self.location.origin && path === pathname);
  if (!stored) return;
  event.respondWith(fetch(event.request).catch(async (error) => {
    const answer = await caches.match(stored, { cacheName: KEPT });
    if (!answer) throw error;
    return answer;
  }));
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  const path = event.notification.tag;
  event.waitUntil(self.clients.matchAll({ type: "window" }).then((open) => {
    const tab = open.find(({ url }) => new URL(url).pathname === path);
    return tab ? tab.focus() : self.clients.openWindow(path);
  }));
});
