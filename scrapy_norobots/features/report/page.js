"use strict";
(() => {
  const PAGE = 100;
  const find = (id) => document.getElementById(id);
  const { columns, rows } = JSON.parse(find("rows").textContent);
  const at = Object.fromEntries(columns.map((name, index) => [name, index]));
  const number = new Intl.NumberFormat("en");
  const body = find("rows-table").tBodies[0];
  const files = new Map(JSON.parse(find("files").textContent).map((file) => [file.origin, file]));
  const above = document.querySelector(".pager");
  const below = find("below").appendChild(above.cloneNode(true));
  const headers = [...document.querySelectorAll("th[data-column]")];
  const dropped = headers.find((header) => header.dataset.column === "dropped").textContent;
  const hasDelays = headers.some((header) => header.dataset.column === "crawl_delay");
  const lowered = new Array(rows.length);
  const order = [...rows.keys()];
  let shown = order;
  let column = "dropped", descending = true, page = 0;

  const isNumber = (name) => !["origin", "outcome", "source"].includes(name);

  // On a narrow screen, where each row is a block, a cell needs the name of its column.
  function emptyCell(row) {
    const td = row.insertCell();
    td.dataset.name = headers[td.cellIndex].textContent;
    return td;
  }

  // A long URL may break after "://" and after each dot.
  function breakable(element, text) {
    element.append(...text.split(/(?<=:\/\/|\.)/).flatMap((part) => [part, document.createElement("wbr")]));
  }

  // Insert data as text, never as markup.
  function cell(row, text, className, detail) {
    const td = emptyCell(row);
    td.className = className;
    const first = td.appendChild(document.createElement("span"));
    if (className === "site") breakable(first, text);
    else first.textContent = text;
    if (detail) {
      const second = td.appendChild(document.createElement("span"));
      second.className = "detail site";
      breakable(second, detail);
    }
    return first;
  }

  // The name of an origin opens its robots.txt, if that is in this report.
  function nameCell(row, origin) {
    const file = files.get(origin);
    if (!file) {
      cell(row, origin, "site");
      return;
    }
    const td = emptyCell(row);
    const button = td.appendChild(document.createElement("button"));
    button.type = "button";
    button.className = "open site";
    breakable(button, origin);
    button.setAttribute("aria-haspopup", "dialog");
    button.addEventListener("click", () => show(file));
  }

  function add(parent, kind, className, text) {
    const element = parent.appendChild(document.createElement(kind));
    element.className = className;
    if (text !== undefined) element.textContent = text;
    return element;
  }

  const WORDS = { error: "No effect: ", warning: "", info: "" };

  function about(file) {
    const parts = [`As read for ${file.robot || "a robot without a name"} by ${file.readers.join(" and ")}.`];
    if (file.readers[0] !== "StrictRobotParser") parts.push("That parser does not say which lines apply.");
    else if (!file.applies.length) parts.push("It has no record for this robot and no default record.");
    for (const [why, count] of file.dropped_by) {
      parts.push(`${dropped}, but not counted at a line: ${number.format(count)} (${why}).`);
    }
    return parts.join(" ");
  }

  function showLine(table, file, index) {
    const line = index + 1;
    const row = table.insertRow();
    const record = file.applies.find(([first, last]) => first <= line && line <= last);
    const notes = file.notes[line] ?? [];
    const drops = file.drops[line];
    row.id = `line-${line}`;
    if (record) row.classList.add("applies");
    if (drops) row.classList.add("dropped");
    if (notes.some(([severity]) => severity === "error")) row.classList.add("idle");
    add(row, "td", "number", drops === undefined ? "" : number.format(drops));
    add(row, "th", "number", line).scope = "row";
    const text = add(row, "td", "text");
    add(text, "code", "site", file.lines[index]);
    if (record && record[0] === line) add(text, "span", "tag", `the record for ${file.robot}`);
    for (const [severity, message, hint] of notes) {
      add(text, "span", `remark ${severity}`, WORDS[severity] + message + (hint ? ` ${hint}` : ""));
    }
    for (const difference of file.differs[line] ?? []) {
      add(text, "span", "remark differs", `Another reading: ${difference}.`);
    }
  }

  function show(file) {
    find("file-title").textContent = file.url;
    find("file-about").textContent = about(file);
    const table = document.createElement("tbody");
    file.lines.forEach((_, index) => showLine(table, file, index));
    if (file.more) {
      const cell = table.insertRow().insertCell();
      cell.colSpan = 3;
      cell.className = "empty";
      cell.textContent = `${number.format(file.more)} more lines are not in this report.`;
    }
    find("lines").tBodies[0].replaceWith(table);
    find("file").showModal();
    (table.querySelector(".dropped") ?? table.querySelector(".applies"))?.scrollIntoView({ block: "center" });
  }

  function draw() {
    const pages = Math.max(1, Math.ceil(shown.length / PAGE));
    page = Math.min(page, pages - 1);
    const first = page * PAGE;
    const part = shown.slice(first, first + PAGE);
    const fragment = document.createElement("tbody");
    for (const index of part) {
      const data = rows[index];
      const get = (name) => data[at[name]];
      const row = fragment.insertRow();
      const outcome = get("outcome");
      const plain = outcome === "rules";
      nameCell(row, get("origin"));
      cell(row, outcome, "site", plain ? "" : get("detail")).className =
        "outcome " + (outcome.includes("stale") ? "stale" : outcome.split(" ")[0]);
      cell(row, get("source"), "");
      cell(row, `${get("seconds").toFixed(get("seconds") < 10 ? 2 : 1)} s`, "number");
      cell(row, number.format(get("requests")), "number");
      cell(row, number.format(get("dropped")), "number");
      if (hasDelays) cell(row, get("crawl_delay") ? `${number.format(get("crawl_delay"))} s` : "", "number");
      const ignored = get("ignored_lines");
      cell(row, ignored ? number.format(ignored) : "", "", get("findings"));
    }
    body.replaceChildren(...fragment.children);
    const status = shown.length
      ? `${number.format(first + 1)}–${number.format(first + part.length)} of ${number.format(shown.length)}`
      : "none";
    for (const pager of [above, below]) {
      const [said, previous, next] = pager.children;
      said.textContent = status;
      previous.disabled = page === 0;
      next.disabled = page === pages - 1;
    }
    find("below").hidden = pages === 1;
  }

  function sort() {
    const index = at[column];
    const sign = descending ? -1 : 1;
    order.sort((a, b) => {
      const x = rows[a][index], y = rows[b][index];
      return x < y ? -sign : x > y ? sign : a - b;
    });
    for (const header of headers) {
      if (header.dataset.column !== column) header.removeAttribute("aria-sort");
      else header.setAttribute("aria-sort", descending ? "descending" : "ascending");
    }
    filter();
  }

  function filter() {
    const text = find("filter").value.trim().toLowerCase();
    const outcome = find("outcome").value;
    shown = order.filter((index) => {
      if (outcome && rows[index][at.outcome] !== outcome) return false;
      if (!text) return true;
      lowered[index] ??= rows[index].filter((value) => typeof value === "string").join("\n").toLowerCase();
      return lowered[index].includes(text);
    });
    page = 0;
    draw();
  }

  function turn(by) {
    page += by;
    draw();
    find("list").scrollIntoView({ block: "start" });
  }

  for (const header of headers) {
    header.querySelector("button").addEventListener("click", () => {
      const name = header.dataset.column;
      descending = name === column ? !descending : isNumber(name);
      column = name;
      sort();
    });
  }
  for (const outcome of [...new Set(rows.map((row) => row[at.outcome]))].sort()) {
    find("outcome").append(new Option(outcome, outcome));
  }
  find("filter").addEventListener("input", filter);
  find("outcome").addEventListener("change", filter);
  below.firstElementChild.removeAttribute("role");  // a screen reader announces a change once
  for (const part of below.children) part.removeAttribute("id");
  for (const pager of [above, below]) {
    const [, previous, next] = pager.children;
    previous.addEventListener("click", () => turn(-1));
    next.addEventListener("click", () => turn(1));
  }
  find("close").addEventListener("click", () => find("file").close());
  find("file").addEventListener("click", (event) => {
    if (event.target === find("file")) find("file").close();  // the backdrop
  });
  find("list").hidden = false;
  sort();
})();
