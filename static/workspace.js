/* agentweb: files dropped on the workspace page are sent with its form. */
"use strict";
(() => {
  const form = document.querySelector("#upload");
  if (!form) return;
  const input = form.elements.files;
  const state = document.querySelector("#upload-state");

  form.addEventListener("submit", () => {
    state.textContent = form.dataset.busy;
    form.setAttribute("aria-busy", "true");
  });

  document.addEventListener("files-dropped", ({ detail }) => {
    if (detail.hasFolder) {
      state.textContent = form.dataset.folder;
      return;
    }
    input.files = detail.all;
    input.dispatchEvent(new Event("change"));
    form.requestSubmit();
  });
})();
