/* agentweb: files that are too big, or too many, are refused before they are uploaded. */
"use strict";
(() => {
  for (const form of document.querySelectorAll("form[data-most]")) {
    const input = form.querySelector("[type=file]");
    const state = form.querySelector("[role=status]");
    input.addEventListener("change", () => {
      const big = [...input.files].find((file) => file.size > Number(form.dataset.most));
      const isMany = input.files.length > Number(form.dataset.mostFiles ?? 1);
      state.textContent = isMany ? form.dataset.many : big ? form.dataset.big.replace("%s", () => big.name) : "";
      input.setCustomValidity(state.textContent);
    });
  }
})();
