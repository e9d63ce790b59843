// The price of the next message: the one without cache is shown once the prompt cache has expired.
(() => {
  const begun = new WeakMap();

  function show() {
    const place = document.querySelector("#next-price[data-left]");
    if (!place) return;
    if (!begun.has(place)) begun.set(place, performance.now());
    const isOver = performance.now() - begun.get(place) >= 1_000 * place.dataset.left;
    const later = place.querySelector(".later"), now = place.querySelector(".now");
    if (later) later.hidden = !isOver;
    if (now) now.hidden = isOver && Boolean(later);
  }

  show();
  setInterval(show, 1_000);
})();
