"use strict";
(() => {
  const PAGE = 100;
  const find = (id) => document.getElementById(id);
  const { columns, rows } = JSON.parse(find("rows").textContent);
  const at = Object.fromEntries(columns.map((name, index) => [name, index]));
  const number = new Intl.NumberFormat("en");
  const body = find("rows-table").tBodies[0];
  const headers = [...document.querySelectorAll("th[data-column]")];
  const lowered = new Array(rows.length);
  const order = [...rows.keys()];
  let shown = order;
  let column = "dropped", descending = true, page = 0;

  const isNumber = (name) => !["origin", "outcome", "source"].includes(name);

  // Insert data as text, never as markup.
  function cell(row, text, className, detail) {
    const td = row.insertCell();
    td.className = className;
    const first = td.appendChild(document.createElement("span"));
    first.textContent = text;
    if (detail) {
      const second = td.appendChild(document.createElement("span"));
      second.className = "detail site";
      second.textContent = detail;
    }
    return first;
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
      cell(row, get("origin"), "site");
      cell(row, outcome, "site", plain ? "" : get("detail")).className =
        "outcome " + (outcome.includes("stale") ? "stale" : outcome.split(" ")[0]);
      cell(row, get("source"), "");
      cell(row, get("seconds").toFixed(get("seconds") < 10 ? 2 : 1), "number");
      cell(row, number.format(get("requests")), "number");
      cell(row, number.format(get("dropped")), "number");
      cell(row, get("crawl_delay") ? `${number.format(get("crawl_delay"))} s` : "", "number");
      const ignored = get("ignored_lines");
      cell(row, ignored ? number.format(ignored) : "", "", get("findings"));
    }
    body.replaceChildren(...fragment.children);
    find("status").textContent = shown.length
      ? `${number.format(first + 1)}–${number.format(first + part.length)} of ${number.format(shown.length)}`
      : "none";
    find("previous").disabled = page === 0;
    find("next").disabled = page === pages - 1;
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
  find("previous").addEventListener("click", () => turn(-1));
  find("next").addEventListener("click", () => turn(1));
  find("list").hidden = false;
  sort();
})();
