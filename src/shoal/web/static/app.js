// Polls for the parts of this page that change, every two seconds, and replaces their texts.
"use strict";
(() => {
  // A form is sent only once, even if its button is pressed twice. The buttons are disabled after
  // this event, because a disabled button would not be sent with the form.
  document.addEventListener("submit", (event) => {
    if (event.target.method !== "post") return;
    const buttons = event.target.querySelectorAll("button:enabled");
    setTimeout(() => buttons.forEach((button) => { button.disabled = true; }));
    addEventListener("pageshow", () => buttons.forEach((button) => { button.disabled = false; }), { once: true });
  });
  // Text that does not fit into its cell is shown in full as a tooltip.
  document.addEventListener("mouseover", (event) => {
    const at = event.target.closest("td");
    if (at) at.title = at.scrollWidth > at.clientWidth ? at.textContent.trim() : "";
  });
  // On a phone, not all tabs fit: scroll to the current one.
  document.querySelector(".tabs [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  if (!document.body.dataset.live) return;

  const EVERY_MS = 2000, SLOWEST_MS = 15000, SVG = "http://www.w3.org/2000/svg";
  const address = document.body.dataset.live;
  const status = document.getElementById("status");
  let etag = "", failures = 0, timer = 0, asking = false;

  function setText(node, text) {
    if (node.textContent !== text) node.textContent = text;
  }

  function setKind(node, kind) {
    if (kind) node.dataset.kind = kind;
    else delete node.dataset.kind;
  }

  function show(live) {
    for (const node of document.querySelectorAll("[data-text]")) {
      const name = node.dataset.text;
      if (name in live.text) setText(node, live.text[name]);
      if (name in live.kinds) setKind(node, live.kinds[name]);
    }
    for (const node of document.querySelectorAll("[data-path]")) {
      if (node.dataset.path in live.paths) node.setAttribute("d", live.paths[node.dataset.path]);
    }
    for (const node of document.querySelectorAll("[data-share]")) {
      const share = live.shares[node.dataset.share];
      if (share !== undefined) node.lastElementChild.setAttribute("width", share * 100);
    }
    for (const node of document.querySelectorAll("[data-when]")) {
      node.disabled = node.dataset.when !== live.text.state;
    }
    for (const node of document.querySelectorAll("[data-table]")) {
      const own = live.tables[node.dataset.table];
      if (own) showTable(node, own);
    }
  }

  function showTable(table, own) {
    const body = table.tBodies[0], rows = own.rows || [];
    const heads = table.tHead.rows[0].cells;
    while (body.rows.length > rows.length) body.deleteRow(-1);
    rows.forEach((cells, number) => {
      const row = body.rows[number] || body.insertRow();
      while (row.cells.length > cells.length) row.deleteCell(-1);
      cells.forEach((cell, column) => {
        const at = row.cells[column] || row.insertCell();
        at.className = heads[column].className;
        at.dataset.label = heads[column].textContent;
        showCell(at, typeof cell === "string" ? { t: cell } : cell);
      });
    });
    const note = table.parentElement.nextElementSibling;
    setText(note, own.note || (rows.length ? "" : note.dataset.empty));
  }

  function showCell(at, cell) {
    setKind(at, cell.k);
    if (cell.b !== undefined && cell.b !== null) {
      const bar = at.querySelector("svg.bar") || replace(at, newBar());
      bar.lastElementChild.setAttribute("width", cell.b * 100);
      bar.setAttribute("aria-label", Math.round(cell.b * 100) + " %");
    } else if (cell.p) {
      const spark = at.querySelector("svg.spark") || replace(at, newSpark());
      spark.firstElementChild.setAttribute("d", cell.p);
    } else {
      let holder = at.querySelector("bdi");
      const link = at.querySelector("a");
      if (!holder || Boolean(link) !== Boolean(cell.h)) holder = replace(at, newText(cell.h)).querySelector("bdi") || at.querySelector("bdi");
      if (cell.h && at.querySelector("a").getAttribute("href") !== cell.h) at.querySelector("a").setAttribute("href", cell.h);
      setText(holder, cell.t || "");
    }
  }

  function replace(at, node) {
    at.replaceChildren(node);
    return node;
  }

  function newText(address) {
    const text = document.createElement("bdi");
    const outer = document.createElement(address ? "a" : "span");
    outer.append(text);
    return outer;
  }

  function newSvg(name, box) {
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("class", name);
    svg.setAttribute("viewBox", box);
    svg.setAttribute("preserveAspectRatio", "none");
    return svg;
  }

  function newBar() {
    const svg = newSvg("bar", "0 0 100 6");
    svg.setAttribute("role", "img");
    for (const name of ["all", "part"]) {
      const rect = document.createElementNS(SVG, "rect");
      rect.setAttribute("class", name);
      rect.setAttribute("width", "100");
      rect.setAttribute("height", "6");
      svg.append(rect);
    }
    return svg;
  }

  function newSpark() {
    const svg = newSvg("spark", "0 -1 80 22");
    svg.setAttribute("aria-hidden", "true");
    svg.append(document.createElementNS(SVG, "path"));
    return svg;
  }

  async function ask() {
    if (asking || document.hidden) return;
    asking = true;
    try {
      const headers = etag ? { "If-None-Match": etag } : {};
      const answer = await fetch(address, { headers, cache: "no-store", signal: AbortSignal.timeout(10000) });
      if (answer.status === 401 || isGone(answer)) return location.reload();
      if (answer.status === 200) {
        show(await answer.json());
        etag = answer.headers.get("ETag") || "";
      } else if (answer.status === 304) {
        await answer.text();  // Otherwise browsers treat the answer as aborted.
      } else {
        throw new Error(String(answer.status));
      }
      failures = 0;
      say("live", "");
    } catch {
      failures += 1;
      say("reconnecting…", "bad");
    } finally {
      asking = false;
      plan(Math.min(EVERY_MS * 2 ** Math.min(failures, 3), SLOWEST_MS));
    }
  }

  // Whether the server says that there is no such crawl any more. A 404 of another form comes from a
  // proxy, behind which the server may return.
  function isGone(answer) {
    return answer.status === 404 && answer.headers.get("Content-Type") === "application/problem+json";
  }

  function say(text, kind) {
    setText(status, text);
    setKind(status, kind);
  }

  function plan(wait) {
    clearTimeout(timer);
    if (!document.hidden) timer = setTimeout(ask, wait);
  }

  document.addEventListener("visibilitychange", () => plan(0));
  plan(EVERY_MS);
})();
