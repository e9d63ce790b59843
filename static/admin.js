/* Accessible names for the fields that Django's widgets leave without one: the search box of a choice, and the
 * date and the time field that share one label.
 */
"use strict";
addEventListener("load", () => {
  const words = (node) => node?.textContent.trim().replace(/:$/, "") ?? "";

  function name(root) {
    for (const box of root.querySelectorAll(".select2-selection[role='combobox']")) {
      const label = box.closest(".fieldBox, .form-row")?.querySelector("label, legend");
      const value = box.getAttribute("aria-labelledby") ?? "";
      if (!label || value.includes(" ") || (value && value === label.id)) continue;
      label.id ||= `${value || label.htmlFor}-label`;
      box.setAttribute("aria-labelledby", `${label.id} ${value}`.trim());
      box.querySelector("[role='textbox'], [role='searchbox']")?.setAttribute("aria-labelledby", label.id);
    }
    for (const input of root.querySelectorAll(".vDateField, .vTimeField")) {
      if (input.labels.length) continue;
      const row = input.closest(".fieldBox, .form-row");
      const parts = [words(row?.querySelector("label, legend")), words(input.previousSibling)];
      input.setAttribute("aria-label", parts.filter(Boolean).join(", "));
    }
  }
  // Django builds its boxes when jQuery is ready, in the order of registration.
  if (window.django?.jQuery) window.django.jQuery(() => name(document));
  else name(document);
  document.addEventListener("formset:added", (event) => name(event.target));
});
