"use strict";

// Short code in a line of text is not broken, nor is a name, such as that of a stat. A long name is broken only
// after a slash or a dot.
function keepShortCodeTogether() {
  for (const code of document.querySelectorAll("article :is(p, li, td, dd) code")) {
    const text = code.textContent;
    const isName = /^[\w/<>.]+$/.test(text);
    const isShort = text.length <= (isName ? 44 : 40);
    code.classList.toggle("short", isShort);
    if (isName && !isShort) {
      code.replaceChildren(...text.split(/(?<=[/.])/).flatMap((part) => [part, document.createElement("wbr")]));
    }
  }
}

// Browsers may break a line after a hyphen, and so in an option such as --json.
function keepOptionsTogether() {
  for (const code of document.querySelectorAll("article pre, article :is(p, li, td, dd) code")) {
    code.innerHTML = code.innerHTML.replace(/(?<![\w-])--[a-z-]+/g, '<span class="short">$&</span>');
  }
}

// A wrapped line of code continues further to the right than it begins. A line break cannot be inside of an
// element: Sphinx highlights each line for itself.
function indentWrappedLines() {
  for (const pre of document.querySelectorAll("article .highlight:not(.highlight-text *) pre")) {
    const lines = pre.innerHTML.replace(/\n$/, "").split("\n");
    // No line is broken between the spaces that it begins with and a long word.
    const kept = lines.map((line) => line.replace(/^ +/, '<span class="start">$&</span>'));
    pre.innerHTML = kept.map((line) => `<span class="line">${line}\n</span>`).join("");
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
  keepOptionsTogether();
  indentWrappedLines();
  stackTables();
});
addEventListener("resize", stackTables);
