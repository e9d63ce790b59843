/* agentweb: files dropped on the workspace page are sent with its form; too large ones are refused before. */
"use strict";
(() => {
  const form = document.querySelector("#upload");
  if (!form) return;
  const input = form.elements.files;
  const state = document.querySelector("#upload-state");

  const tooBig = () => [...input.files].find((file) => file.size > Number(form.dataset.most));
  input.addEventListener("change", () => {
    const file = tooBig();
    const isMany = input.files.length > Number(form.dataset.mostFiles);
    state.textContent = isMany ? form.dataset.many : file ? form.dataset.big.replace("%s", file.name) : "";
    input.setCustomValidity(state.textContent);
  });
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
