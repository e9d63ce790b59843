/* agentweb: files dropped on the page of the workspace go the way of its form; what is too big is said before. */
"use strict";
(() => {
  const form = document.querySelector("#upload");
  const area = document.querySelector("#main");
  if (!form || !area) return;
  const input = form.elements.files;
  const state = document.querySelector("#upload-state");
  const words = document.querySelector(".drop-words");
  area.append(words);

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

  const brings = (event) => event.dataTransfer?.types.includes("Files");
  for (const name of ["dragenter", "dragover"]) {
    document.addEventListener(name, (event) => {
      if (!brings(event)) return;
      event.preventDefault();
      event.dataTransfer.dropEffect = "copy";
      area.classList.add("is-dropping");
    });
  }
  document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) area.classList.remove("is-dropping"); });
  document.addEventListener("drop", (event) => {
    area.classList.remove("is-dropping");
    if (!brings(event)) return;
    event.preventDefault();
    const items = [...event.dataTransfer.items].filter((item) => item.kind === "file");
    if (items.some((item) => item.webkitGetAsEntry?.()?.isDirectory)) {
      state.textContent = form.dataset.folder;
      return;
    }
    input.files = event.dataTransfer.files;
    input.dispatchEvent(new Event("change"));
    form.requestSubmit();
  });
})();
