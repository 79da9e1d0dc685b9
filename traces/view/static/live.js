// Keeps an open page as it would be if it were opened now: it listens for news, asks for the page
// again, and changes what differs. What the reader has scrolled, selected, opened or typed stays.
"use strict";
(() => {
  const LEAST_MS = 500; // between two times that the page is asked for
  const AGAIN_MS = 2000; // until a connection that the server refused is tried again
  // What the reader changes, or the browser and the charts' library do.
  const OWN = new Set(["open", "value", "checked", "selected", "hidden"]);

  const name = (node) => node.nodeType === 1 && (node.id || node.dataset.key || "");
  const isLike = (old, fresh) => old.nodeName === fresh.nodeName && name(old) === name(fresh);

  function changeAttributes(old, fresh) {
    for (const { name: key, value } of fresh.attributes) {
      if (OWN.has(key) || old.getAttribute(key) === value) continue;
      const isHere = key === "class" && old.classList.contains("here");
      old.setAttribute(key, isHere ? `${value} here` : value);
    }
    for (const { name: key } of [...old.attributes]) {
      if (OWN.has(key) || fresh.hasAttribute(key)) continue;
      if (old.classList.contains("here") && key === "class") old.className = "here";
      else old.removeAttribute(key);
    }
  }

  function change(old, fresh) {
    if (old.isEqualNode(fresh)) return;
    if (old.nodeType !== 1) {
      if (old.data !== fresh.data) old.data = fresh.data;
      return;
    }
    if (old.classList.contains("plot")) return; // drawn from the figure beside it
    if (old === document.activeElement && old.matches("input, select, textarea")) return;
    changeAttributes(old, fresh);
    changeChildren(old, fresh);
  }

  // What scripts put beside what the server sent.
  const isOurs = (node) => node.nodeType === 1 && node.matches(".copy, details.choice");

  function changeChildren(old, fresh) {
    const named = new Map();
    for (const child of old.childNodes) if (name(child)) named.set(name(child), child);
    let at = old.firstChild;
    for (const wanted of [...fresh.childNodes]) {
      while (at && isOurs(at)) at = at.nextSibling;
      const known = name(wanted) ? named.get(name(wanted)) : at;
      if (known && isLike(known, wanted)) {
        if (known === at) at = at.nextSibling;
        else old.insertBefore(known, at);
        change(known, wanted);
      } else {
        old.insertBefore(document.importNode(wanted, true), at);
      }
    }
    while (at) {
      const next = at.nextSibling;
      if (!isOurs(at)) at.remove();
      at = next;
    }
  }

  function follow(address, seen) {
    const place = document.querySelector(".fresh");
    let source = null;
    let wasRunning = null;
    let isWanted = false;
    let isAsking = false;
    let last = 0;

    function say(word, state) {
      if (place.textContent !== word) place.textContent = word;
      place.dataset.state = state;
    }

    async function refresh() {
      if (isAsking || !isWanted) return;
      isAsking = true;
      await new Promise((done) => setTimeout(done, Math.max(0, last + LEAST_MS - Date.now())));
      isWanted = false;
      try {
        const reply = await fetch(location.href, { headers: { Accept: "text/html" } });
        if (!reply.ok) throw new Error(String(reply.status));
        const fresh = new DOMParser().parseFromString(await reply.text(), "text/html");
        seen = Number(fresh.body.dataset.seq);
        document.title = fresh.title;
        changeChildren(document.getElementById("main"), fresh.getElementById("main"));
        document.dispatchEvent(new CustomEvent("changed"));
      } catch {
        isWanted = true;
      }
      last = Date.now();
      isAsking = false;
      if (isWanted) setTimeout(refresh, AGAIN_MS);
    }

    function take(event) {
      const { seq, running } = JSON.parse(event.data);
      say(running ? "live" : "", running ? "live" : "idle");
      isWanted ||= seq !== seen || (wasRunning !== null && wasRunning !== running);
      wasRunning = running;
      refresh();
    }

    function listen() {
      source = new EventSource(address);
      source.addEventListener("news", take);
      source.addEventListener("error", () => {
        say("connection lost, trying again", "lost");
        if (source.readyState === EventSource.CLOSED) setTimeout(attend, AGAIN_MS);
      });
    }

    // A browser has few connections to one server: a page that nobody sees has none.
    function attend() {
      const isOpen = source && source.readyState !== EventSource.CLOSED;
      if (document.hidden && isOpen) source.close();
      else if (!document.hidden && !isOpen) listen();
    }

    document.addEventListener("visibilitychange", attend);
    addEventListener("pagehide", () => source && source.close());
    addEventListener("pageshow", attend);
    attend();
  }

  const { live, seq } = document.body.dataset;
  if (live && location.protocol !== "file:") follow(live, Number(seq));
})();
