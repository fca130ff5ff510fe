// The page of claims (book/claims.md): filters by paper and verdict, and opens the claim of an address.
// Without this script the page is the whole list, each claim to be opened.
document.addEventListener("DOMContentLoaded", () => {
  "use strict";
  const ALL = "all";
  const cards = [...document.querySelectorAll("details.claim")];
  if (!cards.length) return;

  const READ = {
    Paper: (card) => [card.dataset.paper],
    Verdict: (card) => [card.dataset.verdict],
  };

  const said = document.createElement("p");
  said.setAttribute("role", "status");
  const form = document.createElement("form");
  form.className = "fpt-filter";
  form.setAttribute("aria-label", "Which claims are shown");
  const selects = Object.entries(READ).map(([name, read]) => {
    const label = document.createElement("label"), select = document.createElement("select");
    select.id = `claims-${name.toLowerCase()}`;
    select.append(...[ALL, ...new Set(cards.flatMap(read))].map((value) => new Option(value, value)));
    label.append(`${name} `, select);
    form.append(label);
    return [select, read];
  });
  form.append(said);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("change", show);
  cards[0].closest("section").before(form);

  function show() {
    for (const card of cards)
      card.hidden = !selects.every(([select, read]) => select.value === ALL || read(card).includes(select.value));
    for (const section of new Set(cards.map((card) => card.closest("section"))))
      section.hidden = [...section.querySelectorAll("details.claim")].every((card) => card.hidden);
    said.textContent = `${cards.filter((card) => !card.hidden).length} of ${cards.length} claims are shown.`;
  }

  /** Opens the claim that the address names, whatever is filtered. */
  function follow() {
    const card = cards.find((each) => each.id === location.hash.slice(1).toLowerCase());
    if (!card) return;
    if (card.hidden) {
      for (const [select] of selects) select.value = ALL;
      show();
    }
    card.open = true;
    card.scrollIntoView();
  }

  show();
  follow();
  addEventListener("hashchange", follow);
});
