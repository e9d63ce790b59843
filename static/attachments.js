/* agentweb: files of a message, from the button, the clipboard or a drop to the chips above the text.
 *
 * A file is uploaded at once and waits on the server; the chip that is returned has its id as a field of the form.
 * So a draft stores only ids, and a message is sent as the same plain form as one without files.
 */
"use strict";
(() => {
  const one = (selector, root = document) => root.querySelector(selector);
  const form = one("#composer");
  const rules = one("#file-rules")?.dataset;
  if (!form || !rules) return;
  const list = one("#waiting");
  const input = one("#file-input");
  const button = one("#attach");
  const sum = one("#waiting-sum");
  const box = form.elements.text;
  const images = rules.images.split(" ");
  const user = one("#outbox").dataset.user;
  const key = `files:${user}:${form.dataset.draft}`;
  const store = {
    get(name) { try { return localStorage.getItem(name); } catch { return null; } },
    set(name, value) {
      try {
        if (value) localStorage.setItem(name, value);
        else localStorage.removeItem(name);
      } catch { /* storage is full or forbidden: the chips are still on the screen */ }
    },
    isStarted(chat) { try { return sessionStorage.getItem("started") === chat; } catch { return false; } },
  };
  const say = (text) => { one("#announcer").textContent = text; };
  const token = () => ({ "X-CSRFToken": form.elements.csrfmiddlewaretoken.value });
  const with_ = (text, value) => text.replace("%s", value);
  const megabytes = (size) => `${(size / 1e6).toLocaleString(document.documentElement.lang, { maximumFractionDigits: 1 })} MB`;
  const tokens = (count) => (count < 1000 ? String(count) : `${(count / 1000).toFixed(1).replace(/\.0$/, "")}k`);
  const chips = (kind = "") => [...list.querySelectorAll(`.file-chip${kind}`)];

  // State that follows from the chips: their tokens, the stored draft, and sending once uploads are done.
  let wanted = false;
  function wait(isWanted) {
    wanted = isWanted;
    if (wanted) complain(rules.wait, "soft waits");
    else one("#composer-error .waits")?.remove();
  }
  function changed() {
    const ready = chips("[data-file]");
    list.hidden = !list.children.length;
    const weight = ready.reduce((total, chip) => total + Number(chip.dataset.tokens), 0);
    sum.hidden = !weight;
    sum.textContent = with_(rules.sum, tokens(weight));
    store.set(key, ready.map((chip) => chip.dataset.file).join(" "));
    if (wanted && !chips("[data-busy]").length) {
      wait(false);
      if (!chips("[data-error]").length) form.requestSubmit();
    }
  }
  function renewed() {
    form.dispatchEvent(new Event("files-changed"));
    changed();
  }
  function complain(text, kind = "error") {
    const note = document.createElement("p");
    note.className = kind;
    note.textContent = text;
    one("#composer-error").replaceChildren(note);
  }

  // One chip, from the selected file to the server's response.
  function element(name, className, text = "") {
    const node = document.createElement(name);
    node.className = className;
    node.textContent = text;
    return node;
  }
  function drawn(name) {
    const chip = element("li", "file-chip");
    const words = element("span", "file-words");
    const label = element("bdi", "file-name", name);
    const close = element("button", "quiet square");
    label.title = name;
    close.type = "button";
    close.dataset.remove = "";
    close.innerHTML = '<svg class="icon" aria-hidden="true"><use href="#i-close"/></svg>';
    close.append(element("span", "hidden", with_(rules.remove, name)));
    words.append(label);
    chip.append(element("span", "file-mark"), words, close);
    one(".file-mark", chip).innerHTML = '<svg class="icon" aria-hidden="true"><use href="#i-file"/></svg>';
    list.append(chip);
    return chip;
  }
  function failed(chip, text, again) {
    const words = one(".file-words", chip);
    words.replaceChildren(one(".file-name", chip), element("small", "file-error", text));
    if (again) {
      const retry = element("button", "linklike", rules.again);
      retry.type = "button";
      retry.addEventListener("click", again);
      words.append(retry);
    }
    delete chip.dataset.busy;
    chip.dataset.error = "";
    say(`${one(".file-name", chip).textContent}: ${text}`);
    changed();
  }
  function most(file) {
    if (images.includes(file.type)) return Number(rules.mostImage);
    return Number(file.type === "application/pdf" ? rules.mostPdf : rules.mostText);
  }
  function flaw(file) {
    const other = /^(video|audio|font)\/|^application\/(zip|gzip|x-7z|x-rar|x-tar)/;
    if ((file.type.startsWith("image/") && !images.includes(file.type)) || other.test(file.type)) return rules.taken;
    return file.size > most(file) ? with_(rules.big, megabytes(most(file))) : "";
  }
  async function add(files) {
    for (const file of files) {
      const room = Number(rules.mostFiles) - chips().length;
      if (room <= 0) { complain(with_(rules.many, rules.mostFiles)); say(with_(rules.many, rules.mostFiles)); break; }
      const chip = drawn(file.name);
      chip.dataset.busy = "";
      changed();
      const smaller = await scaled(file);
      const problem = flaw(smaller);
      if (problem) failed(chip, problem);
      else if (chip.isConnected) upload(chip, smaller, smaller !== file);
    }
  }
  function upload(chip, file, isScaled) {
    const name = one(".file-name", chip).textContent;
    const words = one(".file-words", chip);
    const bar = document.createElement("progress");
    bar.max = 1;
    bar.value = 0;
    bar.setAttribute("aria-label", with_(rules.uploading, name));
    words.replaceChildren(one(".file-name", chip), bar);
    delete chip.dataset.error;
    chip.dataset.busy = "";
    const again = () => { upload(chip, file, isScaled); changed(); };
    const data = new FormData();
    data.append("file", file, file.name);
    const request = new XMLHttpRequest();
    chip.addEventListener("removed", () => request.abort());
    request.upload.addEventListener("progress", (event) => { if (event.lengthComputable) bar.value = event.loaded / event.total; });
    request.addEventListener("error", () => failed(chip, rules.failed, again));
    request.addEventListener("load", () => {
      if (!chip.isConnected) return;
      const answer = document.createElement("template");
      answer.innerHTML = request.responseText;
      const made = one(".file-chip", answer.content);
      const moved = request.getResponseHeader("HX-Redirect")
        || (request.responseURL && new URL(request.responseURL).pathname !== rules.url);
      if (request.status === 200 && made && !moved) {
        if (isScaled) one("small", made).append(` · ${rules.scaled}`);
        chip.replaceWith(made);
        say(with_(rules.attached, name));
        renewed();
      } else if (moved || request.status === 403 || request.status === 401) {
        failed(chip, rules.stale);
      } else {
        const text = one(".file-error", answer.content)?.textContent;
        failed(chip, text ?? rules.failed, text ? null : again);
      }
    });
    request.open("POST", rules.url);
    request.setRequestHeader("X-CSRFToken", token()["X-CSRFToken"]);
    request.setRequestHeader("HX-Request", "true");
    request.send(data);
  }

  // Shrink photos: a camera's are larger than any model uses, and several exceed the size of a request.
  async function scaled(file) {
    if (!images.includes(file.type) || file.type === "image/gif" || !window.createImageBitmap) return file;
    try {
      const image = await createImageBitmap(file, { imageOrientation: "from-image" });
      const side = Math.max(image.width, image.height);
      const limit = Number(rules.mostSide);
      if (side <= limit && file.size <= most(file)) return file;
      const canvas = document.createElement("canvas");
      const scale = Math.min(1, limit / side);
      canvas.width = Math.max(1, Math.round(image.width * scale));
      canvas.height = Math.max(1, Math.round(image.height * scale));
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      const types = file.type === "image/jpeg" ? ["image/jpeg"] : [file.type, "image/webp", "image/jpeg"];
      for (const type of types) {
        const made = await new Promise((done) => { canvas.toBlob(done, type, 0.9); });
        if (made && made.type === type && made.size <= most(made)) return new File([made], file.name, { type });
      }
    } catch { /* the browser cannot decode it: the server decides */ }
    return file;
  }

  // Adding files: button, clipboard, drop.
  button.hidden = false;
  button.addEventListener("click", () => input.click());
  input.addEventListener("change", () => { add([...input.files]); input.value = ""; box.focus(); });
  document.addEventListener("paste", (event) => {
    if (event.target !== box && event.target.closest?.("input, textarea, [contenteditable], dialog")) return;
    const held = event.clipboardData;
    const text = held.getData("text/plain");
    if (held.files.length && !held.types.includes("text/html")) {
      event.preventDefault();
      add([...held.files]);
    } else if (event.target === box && Number(rules.paste) && text.length > Number(rules.paste)) {
      event.preventDefault();
      add([new File([text], rules.pasted, { type: "text/plain" })]);
    }
  });
  document.addEventListener("files-dropped", ({ detail }) => {
    if (detail.hasFolder) complain(rules.folder);
    add(detail.files);
    box.focus();
  });

  // Removing files.
  function gone(chip) {
    wait(false);
    const after = chip.nextElementSibling ?? chip.previousElementSibling;
    chip.dispatchEvent(new Event("removed"));
    chip.remove();
    (after && one("[data-remove]", after) || box).focus();
    renewed();
  }
  const remove = (address) => fetch(address, { method: "POST", headers: token() }).catch(() => null);
  list.addEventListener("click", async (event) => {
    const close = event.target.closest("[data-remove]");
    const words = event.target.closest("[data-as-text]");
    const chip = event.target.closest(".file-chip");
    if (close) {
      if (close.dataset.remove) remove(close.dataset.remove);
      say(with_(rules.removed, one(".file-name", chip).textContent));
      gone(chip);
    } else if (words) {
      const answer = await fetch(words.dataset.asText).catch(() => null);
      if (!answer?.ok || answer.redirected) { failed(chip, rules.failed); return; }
      box.focus();
      box.setRangeText(await answer.text(), box.selectionStart, box.selectionEnd, "end");
      remove(one("[data-remove]", chip).dataset.remove);
      gone(chip);
      box.focus();
      box.dispatchEvent(new Event("input"));
    }
  });

  // What is changed meanwhile is another message, which its writer sends.
  box.addEventListener("input", () => wait(false));

  // Sending waits for running uploads. This listener runs first, so that no other treats the message as sent.
  document.addEventListener("submit", (event) => {
    if (event.target !== form) return;
    const isBusy = chips("[data-busy]").length > 0;
    const wrong = chips("[data-error]")[0];
    if (isBusy || wrong) {
      event.preventDefault();
      event.stopImmediatePropagation();
      wait(isBusy);
      if (isBusy) say(rules.wait);
      else { complain(rules.problem); one("[data-remove]", wrong).focus(); }
    }
  }, true);
  form.addEventListener("sent", () => {
    for (const chip of chips()) chip.remove();
    changed();
  });

  // Show the files of a draft again, and those of a message that came back.
  function showAgain(ids) {
    const asked = ids.map((id) => `id=${encodeURIComponent(id)}`).join("&");
    if (ids.length) fetch(`${rules.waiting}?${asked}`).then(async (answer) => {
      if (!answer.ok || answer.redirected) return;
      const found = document.createElement("template");
      found.innerHTML = await answer.text();
      const there = found.content.querySelectorAll(".file-chip").length;
      list.prepend(found.content);
      changed();
      if (there < ids.length) { complain(rules.gone, "soft"); say(rules.gone); }
    }).catch(() => null);
  }
  form.addEventListener("files-back", ({ detail }) => showAgain(detail));
  // Files that were attached after the first message of a new chat belong to the chat that it began.
  if (store.isStarted(form.dataset.draft)) {
    store.set(key, store.get(`files:${user}:new`));
    store.set(`files:${user}:new`, "");
  }
  showAgain((store.get(key) ?? "").split(" ").filter(Boolean));
})();
