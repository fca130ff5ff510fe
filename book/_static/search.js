// The page of search results. An excerpt begins with the page's own words, not with its contents for print.
document.addEventListener("DOMContentLoaded", () => {
  "use strict";
  if (typeof Search === "undefined") return;
  const read = Search.htmlToText;
  Search.htmlToText = (page, anchor) => {
    const whole = new DOMParser().parseFromString(page, "text/html");
    for (const each of whole.querySelectorAll("#jb-print-docs-body, .bd-header-article, .prev-next-footer, script")) each.remove();
    return read(whole.documentElement.outerHTML, anchor);
  };
});
