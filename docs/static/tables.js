"use strict";
// On a narrow screen, stack the cells of each table that would have to be scrolled sideways.
function stackTables() {
  for (const table of document.querySelectorAll("article table.docutils")) {
    const names = [...table.querySelectorAll("thead th")].map((head) => head.textContent.trim());
    table.classList.remove("stacked");
    table.classList.toggle("stacked", innerWidth < 736 && table.parentElement.scrollWidth > table.parentElement.clientWidth);
    for (const row of table.tBodies[0]?.rows ?? []) {
      [...row.cells].forEach((cell, index) => {
        if (names[index] && cell.textContent.trim()) cell.dataset.column = names[index];
      });
    }
  }
}
addEventListener("DOMContentLoaded", stackTables);
addEventListener("resize", stackTables);
