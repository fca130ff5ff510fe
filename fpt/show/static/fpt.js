// Tables and figures: a header that sorts is a button, and a frame that scrolls can be reached with the keyboard.
// The sorting is done by sortable.min.js (sortable-tablesort 4.1.7, sortable.LICENSE).
// A table of five columns or more is set as cards on a phone (fpt.css): there a cell names its column.
document.addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll("figure.fpt table, .pst-scrollable-table-container table")) {
    const heads = [...(table.tHead?.rows[0].cells || [])].map((head) => head.textContent.trim());
    if (heads.length < 5) continue;
    table.classList.add("cards");
    for (const cell of table.querySelectorAll("tbody td")) {
      if (cell.textContent.trim()) cell.dataset.label = heads[cell.cellIndex];
    }
  }
  for (const table of document.querySelectorAll("figure.fpt table")) {
    if (table.tBodies[0].rows.length < 2) continue;
    table.classList.add("sortable", "asc", "n-last");
    for (const head of table.tHead.rows[0].cells) {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
    }
  }
  const frames = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      const scrolls = target.scrollWidth > target.clientWidth;
      if (scrolls) target.tabIndex = 0;
      else target.removeAttribute("tabindex");
    }
  });
  for (const frame of document.querySelectorAll(".fpt-scroll")) frames.observe(frame);
});

// On paper nothing can be opened: what is folded is open there, and as before afterwards. Cells stay folded.
{
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open], .hide)")];
    for (const each of opened) each.open = true;
  });
  addEventListener("afterprint", () => {
    for (const each of opened) each.open = false;
  });
}
