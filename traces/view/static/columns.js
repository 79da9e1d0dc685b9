// Which columns of the candidates' table are shown; every one without this script.
"use strict";
(() => {
  const KEY = "columns hidden";
  const FIRST = 2; // what ticks a row and what names it stay

  function recall() {
    try {
      return JSON.parse(localStorage.getItem(KEY)) || [];
    } catch {
      return [];
    }
  }

  function keep(hidden) {
    try {
      localStorage.setItem(KEY, JSON.stringify(hidden));
    } catch {
      // It lasts as long as the page.
    }
  }

  // A rule and no attribute: rows come and go while a campaign runs.
  const rules = new CSSStyleSheet();
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, rules];

  function show(names, hidden) {
    const cells = names.flatMap((name, at) =>
      hidden.includes(name) ? [`#candidates tr > :nth-child(${at + 1}):not([colspan])`] : [],
    );
    rules.replaceSync(cells.length ? `${cells.join(",")} { display: none; }` : "");
  }

  function begin() {
    const table = document.getElementById("candidates");
    const form = document.getElementById("compare");
    if (!table || !form) return;
    const names = [...table.querySelectorAll("thead th")].map((th) =>
      th.textContent.replace("▾", "").trim(),
    );
    let hidden = recall().filter((name) => names.includes(name));
    const fold = document.createElement("details");
    const title = document.createElement("summary");
    title.textContent = "Columns";
    fold.className = "choice";
    fold.append(title);
    for (const name of names.slice(FIRST)) {
      const label = document.createElement("label");
      const box = document.createElement("input");
      box.type = "checkbox";
      box.checked = !hidden.includes(name);
      box.addEventListener("change", () => {
        hidden = hidden.filter((other) => other !== name);
        if (!box.checked) hidden.push(name);
        keep(hidden);
        show(names, hidden);
      });
      label.append(box, ` ${name}`);
      fold.append(label);
    }
    form.after(fold);
    show(names, hidden);
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
  else begin();
})();
