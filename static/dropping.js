/* agentweb: files dropped anywhere on a page that accepts files. The page handles the event `files-dropped`, whose
 * detail has `all` dropped items, their `files`, and `hasFolder`.
 */
"use strict";
(() => {
  const area = document.querySelector("#main");
  const words = document.querySelector(".drop-words");
  if (!area || !words) return;
  // Above the dimmed page, and not in the composer's stacking context below it.
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
