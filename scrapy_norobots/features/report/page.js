"use strict";
(() => {
  const PAGE = 100;
  const find = (id) => document.getElementById(id);
  const { columns, rows, groups, dropped, docs, ...data } = JSON.parse(find("data").textContent);
  const files = new Map(data.files.map((file) => [file.origin, file]));
  const at = Object.fromEntries(columns.map((name, index) => [name, index]));
  const number = new Intl.NumberFormat("en");
  const headers = [...document.querySelectorAll("th[data-column]")];
  const lowered = new Array(rows.length);
  let shown = [], drawn, opened;

  // The state of the page is in the fragment of its URL: q, show, sort, page, file.
  const state = () => new URLSearchParams(location.hash.slice(1));

  function changed(changes) {
    const next = state();
    for (const [name, value] of Object.entries(changes)) {
      if (value) next.set(name, value);
      else next.delete(name);
    }
    return `#${next}`;
  }

  function go(changes) {
    history.replaceState(null, "", changed(changes));
    render();
  }

  function add(parent, kind, className, text) {
    const element = parent.appendChild(document.createElement(kind));
    element.className = className;
    // Data is inserted as text, never as markup. A long URL may break after "://" and after each dot.
    if (className.includes("site")) {
      element.append(...text.split(/(?<=:\/\/|\.)/).flatMap((part) => [part, document.createElement("wbr")]));
    } else if (text !== undefined) element.textContent = text;
    return element;
  }

  function showCell(row, header, value, data) {
    const cell = add(row, "td", header.className);
    const name = header.dataset.column;
    cell.dataset.name = header.textContent;
    if (name === "origin") {
      if (files.has(value)) add(cell, "a", "site", value).href = changed({ file: value });
      else add(cell, "span", "site", value);
    } else if (name === "outcome") {
      add(cell, "span", `outcome ${value.includes("stale") ? "stale" : value.split(" ")[0]}`, value);
      if (data[at.detail] && value !== "rules") add(cell, "span", "detail site", data[at.detail]);
    } else if (name === "seconds") cell.textContent = `${value.toFixed(value < 10 ? 2 : 1)} s`;
    else cell.textContent = value || name === "requests" || name === "dropped" ? number.format(value) : "";
    if (name === "ignored_lines" && value) add(cell, "span", "detail", data[at.findings]);
  }

  function matches(index, text) {
    lowered[index] ??= rows[index].filter((value) => typeof value === "string").join("\n").toLowerCase();
    return lowered[index].includes(text);
  }

  function draw(state) {
    const text = (state.get("q") ?? "").trim().toLowerCase();
    const group = groups[state.get("show")];
    const [, minus, name] = /^(-?)(.*)/.exec(state.get("sort") ?? "-dropped");
    const column = at[name] ?? at.dropped, sign = minus ? -1 : 1;
    shown = (group ?? [...rows.keys()]).filter((index) => !text || matches(index, text));
    shown.sort((a, b) => {
      const x = rows[a][column], y = rows[b][column];
      return x < y ? -sign : x > y ? sign : a - b;
    });
    const pages = Math.max(1, Math.ceil(shown.length / PAGE));
    const page = Math.min(pages, Math.max(1, Math.trunc(Number(state.get("page"))) || 1));
    const part = shown.slice((page - 1) * PAGE, page * PAGE);
    const body = document.createElement("tbody");
    for (const index of part) {
      const row = body.insertRow();
      headers.forEach((header, column) => showCell(row, header, rows[index][column], rows[index]));
    }
    find("rows").tBodies[0].replaceWith(body);
    for (const header of headers) {
      header.ariaSort = header.dataset.column !== columns[column] ? null : minus ? "descending" : "ascending";
    }
    const first = (page - 1) * PAGE + 1;
    find("status").textContent = part.length
      ? `${number.format(first)}–${number.format(first + part.length - 1)} of ${number.format(shown.length)}`
      : "none";
    find("previous").disabled = page === 1;
    find("next").disabled = page === pages;
    find("previous").onclick = () => go({ page: page - 1 });
    find("next").onclick = () => go({ page: page + 1 });
    if (find("filter").value !== (state.get("q") ?? "")) find("filter").value = state.get("q") ?? "";
    find("show").value = group ? state.get("show") : "";
  }

  function about(file) {
    const parts = [`As read for ${file.robot || "a robot without a name"} by ${file.readers.join(" and ")}.`];
    if (file.readers[0] !== "StrictRobotParser") parts.push("That parser does not say which lines apply.");
    else if (!file.applies.length) parts.push("It has no record for this robot and no default record.");
    for (const [why, count] of file.dropped_by) {
      parts.push(`${number.format(count)} ${dropped}, but not counted at a line: ${why}.`);
    }
    return parts.join(" ");
  }

  function showLine(table, file, index) {
    const line = index + 1;
    const row = table.insertRow();
    const record = file.applies.find(([first, last]) => first <= line && line <= last);
    const drops = file.drops[line];
    const notes = file.notes[line] ?? [];
    row.id = `line-${line}`;
    row.classList.toggle("applies", record !== undefined);
    row.classList.toggle("dropped", drops > 0);
    row.classList.toggle("idle", notes.some(([severity]) => severity === "error"));
    add(row, "td", "number", drops === undefined ? "" : number.format(drops));
    add(row, "th", "number", line).scope = "row";
    const text = add(row, "td", "text");
    add(text, "code", "site", file.lines[index]);
    if (record?.[0] === line) add(text, "span", "tag", `the record for ${file.robot}`);
    for (const [severity, kind, message, hint] of notes) {
      const said = (severity === "error" ? "No effect: " : "") + message + (hint ? ` ${hint}` : "");
      const remark = add(text, "span", `remark ${severity}`, `${said} `);
      add(remark, "a", "", kind).href = `${docs}standard.html#finding-${kind}`;
    }
    for (const difference of file.differs[line] ?? []) {
      add(text, "span", "remark differs", `Another reading: ${difference}.`);
    }
  }

  function open(file) {
    find("file-title").textContent = file.url;
    find("file-about").textContent = about(file);
    const table = document.createElement("tbody");
    file.lines.forEach((_, index) => showLine(table, file, index));
    if (file.more) {
      const cell = add(table.insertRow(), "td", "", `${number.format(file.more)} more lines are not in this report.`);
      cell.colSpan = 3;
    }
    find("lines").tBodies[0].replaceWith(table);
    find("file").showModal();
    (table.querySelector(".dropped") ?? table.querySelector(".applies"))?.scrollIntoView({ block: "center" });
  }

  function render() {
    const now = state();
    const file = files.get(now.get("file"));
    now.delete("file");
    if (String(now) !== drawn) draw(now);
    drawn = String(now);
    if (file === opened) return;
    opened = file;
    if (find("file").open) find("file").close();
    if (file) open(file);
  }

  for (const header of headers) {
    header.querySelector("button").addEventListener("click", () => {
      const name = header.dataset.column;
      const isText = typeof rows[0]?.[at[name]] === "string";
      const descending = header.ariaSort ? header.ariaSort === "ascending" : !isText;
      go({ sort: (descending ? "-" : "") + name, page: "" });
    });
  }
  find("filter").addEventListener("input", () => go({ q: find("filter").value, page: "" }));
  find("show").addEventListener("change", () => go({ show: find("show").value, page: "" }));
  find("csv").addEventListener("click", () => {
    const quoted = (value) => `"${String(value).replaceAll('"', '""')}"`;
    const lines = [columns, ...shown.map((index) => rows[index])].map((row) => row.map(quoted).join(","));
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([lines.join("\r\n") + "\r\n"], { type: "text/csv" }));
    link.download = "robots.csv";
    link.click();
  });
  find("close").addEventListener("click", () => find("file").close());
  find("file").addEventListener("close", () => find("file").open || go({ file: "" }));
  find("file").addEventListener("click", (event) => {
    if (event.target === find("file")) find("file").close();  // the backdrop
  });
  addEventListener("hashchange", () => {
    render();
    if (state().get("show") && !opened) find("sites").scrollIntoView();
  });
  if (innerWidth < 832) document.querySelectorAll(".pair details").forEach((part) => { part.open = false; });
  find("list").hidden = false;
  render();
})();
