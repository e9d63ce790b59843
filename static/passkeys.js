/* agentweb: passkeys. A form with data-passkey asks the browser for one, and sends its answer.
 *
 * data-options has the server's challenge; data-ask is where to fetch one. Nothing is kept here.
 */
"use strict";
(() => {
  const can = Boolean(window.PublicKeyCredential?.parseRequestOptionsFromJSON);

  async function ask(form) {
    const given = form.dataset.options
      ? JSON.parse(form.dataset.options)
      : await (await fetch(form.dataset.ask, { headers: { Accept: "application/json" } })).json();
    if (form.dataset.passkey === "create") {
      const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(given.publicKey);
      return navigator.credentials.create({ publicKey });
    }
    return navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(given.publicKey) });
  }

  for (const form of document.querySelectorAll("form[data-passkey]")) {
    const say = (name, shown) => (form.querySelector(`[data-passkey-${name}]`).hidden = !shown);
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      say("none", !can);
      say("failed", false);
      if (!can) return;
      try {
        form.elements.credential.value = JSON.stringify((await ask(form)).toJSON());
        form.submit();
      } catch {
        say("failed", true);
      }
    });
  }
})();
