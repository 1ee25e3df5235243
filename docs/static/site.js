"use strict";

// Short code in a line of text is not broken, nor is a name, such as that of a stat.
function keepShortCodeTogether() {
  for (const code of document.querySelectorAll("article :is(p, li, td, dd) > code, article td a code")) {
    const { length } = code.textContent;
    code.classList.toggle("short", length <= 34 || (length <= 44 && /^[\w/<>]+$/.test(code.textContent)));
  }
}

// A wrapped line of code continues further to the right than it begins. A line break cannot be inside of an
// element: Sphinx highlights each line for itself.
function indentWrappedLines() {
  for (const pre of document.querySelectorAll("article .highlight:not(.highlight-text *) pre")) {
    const lines = pre.innerHTML.replace(/\n$/, "").split("\n");
    pre.innerHTML = lines.map((line) => `<span class="line">${line}\n</span>`).join("");
    for (const line of pre.children) {
      line.style.setProperty("--indent", `${Math.min(line.textContent.search(/\S|$/), 12) + 4}ch`);
    }
  }
}

// On a narrow screen, stack the cells of each table that has only two columns, has sentences in more columns, or
// would have to be scrolled sideways.
function stackTables() {
  for (const table of document.querySelectorAll("article table.docutils")) {
    const names = [...table.querySelectorAll("thead th")].map((head) => head.textContent.trim());
    table.classList.remove("stacked");
    const { scrollWidth, clientWidth } = table.parentElement;
    const isLong = [...table.querySelectorAll("td")].some((cell) => cell.textContent.length > 60);
    const isWide = names.length === 2 || isLong || scrollWidth > clientWidth;
    table.classList.toggle("stacked", innerWidth < 736 && isWide);
    for (const row of table.tBodies[0]?.rows ?? []) {
      [...row.cells].forEach((cell, index) => {
        if (cell.textContent.trim()) cell.dataset.column = (names[index] ?? "").replace(/[^?]$/, "$&:");
      });
    }
  }
}

addEventListener("DOMContentLoaded", () => {
  keepShortCodeTogether();
  indentWrappedLines();
  stackTables();
});
addEventListener("resize", stackTables);
