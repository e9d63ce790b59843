/* agentweb: files that are dropped anywhere on a page that takes some. What is done with them is the page's own
 * affair: it hears `files-dropped`, with `all` that was dropped, its `files`, and whether it `hasFolder`.
 */
"use strict";
(() => {
  const area = document.querySelector("#main");
  const words = document.querySelector(".drop-words");
  if (!area || !words) return;
  // Above the page that is dimmed, and not in the composer's own layer below it.
  area.append(words);

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
    const flat = items.filter((item) => !item.webkitGetAsEntry?.()?.isDirectory);
    const detail = {
      all: event.dataTransfer.files,
      files: flat.map((item) => item.getAsFile()).filter(Boolean),
      hasFolder: flat.length < items.length,
    };
    document.dispatchEvent(new CustomEvent("files-dropped", { detail }));
  });
})();
