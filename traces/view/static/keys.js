// Keys, the theme, and buttons that copy. Every page can be used without them.
"use strict";
(() => {
  const THEMES = ["auto", "light", "dark"];
  const KEYS = [
    ["j", "k", "the next and the previous row, or candidate"],
    ["Enter", "", "open the row"],
    ["p", "", "the parent"],
    ["b", "", "the best candidate"],
    ["c", "", "tick the row for a comparison; on a candidate, compare it with its parent"],
    ["/", "", "to the search or the filter"],
    ["t", "", "another theme"],
    ["?", "", "this list"],
  ];

  // Storage may be refused: then a choice lasts as long as its page.
  function recall() {
    try {
      return localStorage.getItem("theme") || "auto";
    } catch {
      return "auto";
    }
  }

  function keep(theme) {
    try {
      localStorage.setItem("theme", theme);
    } catch {
      // It lasts as long as the page.
    }
  }

  function show(theme) {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    document.getElementById("theme").textContent = `theme: ${theme}`;
    document.dispatchEvent(new CustomEvent("changed"));
  }

  function changeTheme() {
    const theme = THEMES[(THEMES.indexOf(recall()) + 1) % THEMES.length];
    keep(theme);
    show(theme);
  }

  function element(name, text, ...children) {
    const made = document.createElement(name);
    if (text) made.textContent = text;
    made.append(...children);
    return made;
  }

  function listKeys() {
    let dialog = document.querySelector("dialog");
    if (!dialog) {
      const list = element("dl", "");
      for (const [one, other, meaning] of KEYS) {
        const keys = [one, other].filter(Boolean).map((key) => element("kbd", key));
        list.append(element("dt", "", ...keys), element("dd", meaning));
      }
      const close = element("button", "Close");
      close.type = "button";
      close.addEventListener("click", () => dialog.close());
      dialog = element("dialog", "", element("h2", "Keys"), list, close);
      dialog.setAttribute("aria-label", "Keys");
      document.body.append(dialog);
    }
    if (dialog.open) dialog.close();
    else dialog.showModal();
  }

  const rows = () => [...document.querySelectorAll("table.rows tbody tr[data-key]")];

  function move(by) {
    const all = rows();
    if (!all.length) return follow(by > 0 ? "a[rel=next]" : "a[rel=prev]");
    const at = all.findIndex((row) => row.classList.contains("here"));
    const next = all[Math.min(all.length - 1, Math.max(0, at < 0 ? 0 : at + by))];
    for (const row of all) row.classList.toggle("here", row === next);
    next.querySelector("a").focus({ preventScroll: true });
    next.scrollIntoView({ block: "nearest" });
  }

  function follow(selector) {
    const link = document.querySelector(selector);
    if (link) link.click();
  }

  function compare() {
    const box = document.querySelector("tr.here input[name=of]");
    if (box) box.checked = !box.checked;
    else follow("a.compare");
  }

  const ACTIONS = {
    j: () => move(1),
    k: () => move(-1),
    p: () => follow("tr.here a.parent, a.parent"),
    b: () => follow("tr.best a, a.best"),
    c: compare,
    "/": () => document.querySelector("form.filter input[type=search], form.filter select")?.focus(),
    t: changeTheme,
    "?": listKeys,
  };

  function press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.target.matches("input:not([type=checkbox]), select, textarea")) return;
    const action = Object.hasOwn(ACTIONS, event.key) && ACTIONS[event.key];
    if (!action || (document.querySelector("dialog[open]") && event.key !== "?")) return;
    event.preventDefault();
    action();
  }

  function addCopying() {
    if (!navigator.clipboard) return;
    for (const box of document.querySelectorAll('.code[aria-label^="Code"]')) {
      if (box.previousElementSibling?.classList.contains("copy")) continue;
      const button = element("button", "Copy the code");
      button.type = "button";
      button.className = "copy";
      button.addEventListener("click", async () => {
        const lines = [...box.querySelectorAll(".line")].map((line) => {
          const number = line.querySelector(".no");
          return line.textContent.slice(number ? number.textContent.length : 0).replace(/\n$/, "");
        });
        await navigator.clipboard.writeText(`${lines.join("\n")}\n`);
        button.textContent = "Copied";
      });
      box.before(button);
    }
  }

  show(recall());
  for (const [id, act] of [["theme", changeTheme], ["keys", listKeys]]) {
    const button = document.getElementById(id);
    button.hidden = false;
    button.addEventListener("click", act);
  }
  addCopying();
  document.addEventListener("changed", addCopying);
  document.addEventListener("keydown", press);
})();
