// The explorer (book/map.md): choose task, model, two arms, budget and learning rate; see who leads.
// Every number and interval was computed by fpt.results and lies in the page as JSON; here it is only placed.
// fpt/show/explore.py says what a setup holds.
// An address chooses too: #study=plane-digits&task=digits&arms=UR,FP&rate=3e-3&budget=750. It needs only study. It
// follows what the reader chooses, and then has a model too. A small explorer (book/freeze.md) has one setup, its chart
// and the sliders, and no part in the address.
//
// A choice is { setup, pair, budgetPlace, ratePlace }; the places are those in the setup's lists of budgets and rates.
// The explorer is { setups, view, choice, small }: all that can be chosen, its elements, and what is chosen. An event
// puts a new choice there, then shows it, then puts it into the address.
(() => {
  "use strict";

  // --- constants

  const WIDTH = 360, HEIGHT = 270, LEFT = 38, RIGHT = 10, TOP = 24, BOTTOM = 40;  // of the chart, in its own units
  const INSET = 14;  // from its sides to the first and the last rate
  const SURE = "sure", OPEN = "open", UNSURE = "";
  const SIGNS = {
    "+": ", a lead also once all budgets are asked", "-": ", a lead also once all budgets are asked",
    "1": ", a lead at this budget, but not once all are asked", "0": ", too close to call",
    "?": ", too close to call, because the one behind is at an end of its grid",
  };
  const LOOK_SAID = {
    [SURE]: ", a lead also once all rates and steps are asked",
    [UNSURE]: ", a lead, but not once all rates and steps are asked", [OPEN]: "",
  };
  const LOOK_OF_CELL = { [SURE]: ", significant", [UNSURE]: "", [OPEN]: ", too close to call" };
  const TO_BEAT = { floor: "trivial baseline", linear: "linear classifier" };  // lines of a setup, null if not known
  const FIRST_RATE = "1e-3";  // what both papers argue about
  const FIRST_ARMS = "UP,FP";
  const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };  // right, up
  const CORNERS = {  // of a mark as matplotlib draws it: square, triangles, diamonds, pentagon
    s: [[-4, -4], [4, -4], [4, 4], [-4, 4]], "^": [[-5, 4], [5, 4], [0, -5]], D: [[-5, 0], [0, -5], [5, 0], [0, 5]],
    v: [[-5, -4], [5, -4], [0, 5]], d: [[-4, 0], [0, -6], [4, 0], [0, 6]],
    p: [[0, -5], [5, -1.5], [3, 4.5], [-3, 4.5], [-5, -1.5]],
  };

  // --- the address

  /** The choice that an address asks for, or null. What it does not name, or names wrongly, is as it is at first. */
  function askedFor(hash, setups) {
    const asked = new URLSearchParams(hash.slice(1));
    const names = (part, name) => !asked.has(part) || asked.get(part) === name;
    const inStudy = setups.filter((each) => each.study === asked.get("study") && names("task", each.name));
    const setup = inStudy.find((each) => names("model", each.model)) || inStudy[0];
    if (!setup) return null;
    const first = firstChoice(setup, asked.get("arms") || FIRST_ARMS);
    return {
      ...first,
      budgetPlace: placeOr(first.budgetPlace, setup.budgets, Number(asked.get("budget"))),
      ratePlace: placeOr(first.ratePlace, setup.rates, asked.get("rate")),
    };
  }

  /** The address of a choice. `model` tells apart what a study has of one task. */
  function addressOf(choice) {
    const { study, name: task, model } = choice.setup, arms = armsOf(choice.pair);
    return `#${new URLSearchParams({ study, task, model, arms, rate: rateOf(choice), budget: budgetOf(choice) })}`;
  }

  // --- computing: what can be chosen

  const tasksOf = (setups) => [...new Set(setups.map((setup) => setup.task))];
  const setupsOf = (setups, task) => setups.filter((setup) => setup.task === task);
  const armsOf = (pair) => pair.arms.join();  // as an address names them
  const sameArms = (one, other) => one.split(",").sort().join() === other.split(",").sort().join();

  /** What is chosen in a setup at first: its last budget, and the pair of these arms, in any order, if it has one. */
  function firstChoice(setup, arms) {
    return {
      setup,
      pair: setup.pairs.find((pair) => sameArms(armsOf(pair), arms)) || setup.pairs[0],
      budgetPlace: setup.budgets.length - 1,
      ratePlace: placeOr(0, setup.rates, FIRST_RATE),
    };
  }

  function placeOr(other, list, wanted) {
    const found = list.indexOf(wanted);
    return found < 0 ? other : found;
  }

  // --- computing: what is chosen, in numbers and words

  const budgetOf = (choice) => choice.setup.budgets[choice.budgetPlace];
  const rateOf = (choice) => choice.setup.rates[choice.ratePlace];
  const compared = (pair, budget, rate) => pair.plane[budget]?.[rate];  // nothing for too few seeds
  const ahead = (pair, mean) => pair.arms[mean > 0 ? 0 : 1];

  const steps = (budget) => `${budget.toLocaleString("en-US")} steps`;
  const capital = (words) => words[0].toUpperCase() + words.slice(1);
  const namesOf = (setup, pair) => pair.arms.map((arm) => setup.arms[arm].name);
  const pairWords = (setup, pair) => namesOf(setup, pair).join(" minus ");

  function leader({ setup, pair }, [mean, , , look]) {
    return look === OPEN ? "too close to call" : `${setup.arms[ahead(pair, mean)].name} leads`;
  }

  function difference({ setup, pair }, [, text, interval, look]) {
    return `. ${capital(pairWords(setup, pair))}: ${text} points (95% interval ${interval})${LOOK_SAID[look]}.`;
  }

  function accuracies(choice) {
    const { setup, pair } = choice;
    const linear = setup.linear === null ? "" : `; a linear classifier has ${setup.linear.toFixed(1)}%`;
    const [first, second] = pair.arms.map((arm) => setup.arms[arm].points[budgetOf(choice)][rateOf(choice)][3]);
    return ` Accuracies (95% intervals): ${first} and ${second}${linear}.`;
  }

  function eachAtItsOwn([mean, interval, sign]) {
    return ` Each at its own rate: ${mean} points (${interval})${SIGNS[sign]}.`;
  }

  // --- computing: places and colours

  /** The lowest and the highest percent of the chart, and the distance of its lines: the same at every budget. */
  function rangeOf(setup) {
    const points = Object.values(setup.arms).flatMap((arm) => Object.values(arm.points).flatMap(Object.values));
    const means = [setup.floor, setup.linear, ...points.map(([mean]) => mean)].filter((mean) => mean !== null);
    const least = Math.min(...means), most = Math.max(...means);
    const tick = most - least > 50 ? 20 : 10;
    return { low: tick * Math.floor(least / tick), high: tick * Math.ceil(most / tick), tick };
  }

  /** That range, and the places of a rate (across) and of a percentage (up) in the chart. */
  function scaleOf(setup) {
    const { low, high, tick } = rangeOf(setup);
    const log = (rate) => Math.log(Number(rate)), first = log(setup.rates[0]), last = log(setup.rates.at(-1));
    const share = (rate) => (last > first ? (log(rate) - first) / (last - first) : 0.5);  // in the middle if alone
    const across = (rate) => LEFT + INSET + share(rate) * (WIDTH - LEFT - RIGHT - 2 * INSET);
    const up = (percent) => HEIGHT - BOTTOM - ((percent - low) / (high - low)) * (HEIGHT - TOP - BOTTOM);
    return { low, high, tick, across, up };
  }

  /** The colour of the arm ahead, the deeper the further: on the scale of all maps (SCALE in fpt/show/planes.py). */
  function shade({ setup, pair }, mean) {
    const points = Math.abs(mean), even = 10 / 9;  // up to a point; from there on by its logarithm, up to 100
    const share = (points < 1 ? even * points : even + Math.log10(points)) / (even + 2);
    const depth = Math.round((0.08 + 0.42 * share) * 255);
    return setup.arms[ahead(pair, mean)].colour + depth.toString(16).padStart(2, "0");
  }

  // --- elements

  function setAttributes(element, attributes) {
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  }

  /** An element, of HTML or SVG, with attributes and children. */
  function make(space, name, attributes = {}, ...children) {
    const made = setAttributes(document.createElementNS(space, name), attributes);
    made.append(...children);
    return made;
  }
  const html = (...of) => make("http://www.w3.org/1999/xhtml", ...of);
  const svg = (...of) => make("http://www.w3.org/2000/svg", ...of);

  /** A list to choose from, with its label. */
  function listControl(id, words) {
    const input = html("select", { id });
    return { input, block: html("div", { class: "control" }, html("label", { for: id }, words), input) };
  }

  /** A slider over places in a list, with its label and what is at its place. */
  function sliderControl(id, words) {
    const input = html("input", { id, type: "range", min: 0, step: 1 }), shown = html("output", { for: id });
    return { input, shown, block: html("div", { class: "control" }, html("label", { for: id }, words), input, shown) };
  }

  function fill(select, names, selected) {
    select.replaceChildren(...names.map((name, place) => html("option", { value: place }, name)));
    select.selectedIndex = selected;
  }

  function moveSlider(slider, place, words) {
    slider.input.value = place;
    slider.shown.textContent = words;
    slider.input.setAttribute("aria-valuetext", words);
  }

  /** All elements that a choice fills; ids begin alike. `cells` are the buttons of the plane, new for every pair. */
  function elements(name) {
    return {
      task: listControl(`${name}-task`, "Task"),
      model: listControl(`${name}-model`, "Model and study"),
      pair: listControl(`${name}-pair`, "Compare"),
      budget: sliderControl(`${name}-budget`, "Budget"),
      rate: sliderControl(`${name}-rate`, "Learning rate"),
      said: html("p", { class: "said", role: "status" }),
      chartHead: html("figcaption"),
      chart: svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "group" }),
      legend: html("ul", { class: "legend" }),
      planeHead: html("figcaption"),
      plane: html("table"),
      cells: [],
      about: html("p", { class: "about" }),
    };
  }

  /** Puts the elements on the page. */
  function arrange(root, view) {
    const controls = [view.task, view.model, view.pair, view.budget, view.rate];
    const map = html("figure", {}, view.planeHead, html("div", { class: "plane" }, view.plane));
    const sides = html("div", { class: "sides" }, html("figure", {}, view.chartHead, view.chart, view.legend), map);
    const blocks = html("div", { class: "controls" }, ...controls.map((each) => each.block));
    root.append(blocks, view.said, sides, view.about);
    const narrow = matchMedia("(max-width: 600px)");
    const placeMap = () => {  // on a phone it comes first, for the eye and for the keyboard
      if (narrow.matches) root.prepend(map);
      else sides.append(map);
    };
    narrow.addEventListener("change", placeMap);
    placeMap();
  }

  /** Puts those of a small explorer there: the chart, and sliders where there is something to move. */
  function arrangeSmall(root, view, setup) {
    const sliders = [view.rate, view.budget].filter((_, place) => [setup.rates, setup.budgets][place].length > 1);
    const controls = html("div", { class: "controls" }, ...sliders.map((each) => each.block));
    const head = html("p", { class: "head" }, `${setup.task}, ${setup.model}`);
    root.append(head, html("figure", {}, view.chartHead, view.chart, view.legend), controls, view.said, view.about);
  }

  // --- drawing: in words

  function drawWords(said, choice) {
    const { pair } = choice, budget = budgetOf(choice), rate = rateOf(choice);
    const cell = compared(pair, budget, rate), tuned = pair.tuned[budget];
    const words = [`At learning rate ${rate} after ${steps(budget)}: `];
    if (cell) words.push(html("strong", {}, leader(choice, cell)), difference(choice, cell), accuracies(choice));
    else words.push("nothing to compare.");
    if (tuned) words.push(eachAtItsOwn(tuned));
    said.replaceChildren(...words);
  }

  // --- drawing: the chart, test accuracy over learning rate

  function drawChart({ chart, chartHead }, choice) {
    const { setup, pair } = choice, budget = budgetOf(choice), rate = rateOf(choice), scale = scaleOf(setup);
    chartHead.textContent = `Test accuracy by learning rate after ${steps(budget)}`;
    chart.setAttribute("aria-label", `${chartHead.textContent}; arrow keys go from point to point`);
    const x = scale.across(rate);
    const here = svg("line", { class: "chosen", x1: x, x2: x, y1: scale.up(scale.low), y2: scale.up(scale.high) });
    const arms = Object.keys(setup.arms);
    arms.sort((one, other) => pair.arms.includes(one) - pair.arms.includes(other));  // the pair lies on top
    chart.replaceChildren(...axes(setup, scale), here, ...arms.map((arm) => armLine(choice, arm, scale)));
    const points = [...chart.querySelectorAll(".point")];
    for (const point of points) labelWhenReached(chart, point);
    const first = points.find((each) => each.dataset.rate === rate && each.dataset.arm === pair.arms[0]);
    (first || points[0])?.setAttribute("tabindex", 0);  // the Tab key stops once; arrow keys go on from there
  }

  function axes(setup, { low, high, tick, across, up }) {
    const parts = [];
    const level = (name, percent) => svg("line", {
      class: name, x1: LEFT, x2: WIDTH - RIGHT, y1: up(percent), y2: up(percent),
    });
    for (let percent = low; percent <= high; percent += tick) {
      parts.push(level("grid", percent));
      parts.push(svg("text", { x: LEFT - 5, y: up(percent) + 4, "text-anchor": "end" }, percent));
    }
    for (const rate of setup.rates) {
      parts.push(svg("text", { x: across(rate), y: HEIGHT - BOTTOM + 16, "text-anchor": "middle" }, rate));
    }
    for (const name of Object.keys(TO_BEAT)) if (setup[name] !== null) parts.push(level(name, setup[name]));
    parts.push(svg("text", { x: 4, y: 12 }, "test accuracy (%)"));
    parts.push(svg("text", { x: WIDTH / 2, y: HEIGHT - 6, "text-anchor": "middle" }, "learning rate"));
    return parts;
  }

  /** The means of an arm at the chosen budget, joined, in the band of their 95% intervals; a point for each. */
  function armLine(choice, arm, { low, high, across, up }) {
    const { setup, pair } = choice, { name, colour, marker, dashed, points } = setup.arms[arm];
    const atBudget = points[budgetOf(choice)] || {};
    const rates = setup.rates.filter((rate) => atBudget[rate] && atBudget[rate][0] !== null);
    const line = rates.map((rate) => [rate, ...atBudget[rate]]);
    const inside = (percent) => Math.min(high, Math.max(low, percent));
    const edge = (which) => line.map((each) => `${across(each[0])},${up(inside(each[which]))}`);  // mean, its interval
    return svg(
      "g", { class: pair.arms.includes(arm) ? "arm" : "arm other", fill: colour, stroke: colour },
      svg("polygon", { class: "band", points: [...edge(2), ...edge(3).reverse()].join(" ") }),
      svg("polyline", { class: dashed ? "mean dashed" : "mean", points: edge(1).join(" ") }),
      ...line.map(([rate, mean, , , text]) => setAttributes(mark(marker, across(rate), up(mean)), {
        class: "point", role: "img", tabindex: -1, "aria-label": `${name} at ${rate}: ${text}`,
        "data-arm": arm, "data-rate": rate,
      })),
    );
  }

  function mark(marker, x, y) {
    const corners = CORNERS[marker];
    if (!corners) return svg("circle", { cx: x, cy: y, r: 4.5 });
    return svg("polygon", { points: corners.map(([dx, dy]) => `${x + dx},${y + dy}`).join(" ") });
  }

  function labelWhenReached(chart, point) {
    for (const event of ["focus", "pointerenter"]) point.addEventListener(event, () => drawLabel(chart, point));
    for (const event of ["blur", "pointerleave"]) point.addEventListener(event, () => removeLabel(chart));
  }

  const removeLabel = (chart) => chart.querySelector(".label")?.remove();

  /** What a point is, above it and inside the chart. */
  function drawLabel(chart, point) {
    removeLabel(chart);
    const text = svg("text", { "text-anchor": "middle" }, point.getAttribute("aria-label"));
    const label = svg("g", { class: "label", "aria-hidden": "true" }, text);
    chart.append(label);  // first, as only what is on the page has a size
    const box = point.getBBox(), half = text.getBBox().width / 2 + 5;
    const x = Math.min(Math.max(box.x + box.width / 2, half), WIDTH - half), y = Math.max(box.y - 9, 14);
    setAttributes(text, { x, y });
    label.prepend(svg("rect", { x: x - half, y: y - 14, width: 2 * half, height: 19, rx: 3 }));
  }

  // --- drawing: the plane, who leads by learning rate and budget

  function drawPlane(view, choice) {
    const { setup, pair } = choice;
    const heads = setup.budgets.map((budget) => html("th", { scope: "col" }, budget.toLocaleString("en-US")));
    const body = html("tbody");
    view.cells = [];
    setup.rates.forEach((rate, ratePlace) => {
      const cells = setup.budgets.map((_, budgetPlace) => planeCell({ ...choice, budgetPlace, ratePlace }));
      view.cells.push(...cells);
      const holders = cells.map(({ button }) => button.parentElement);
      body.prepend(html("tr", {}, html("th", { scope: "row" }, rate), ...holders));  // the highest rate on top
    });
    view.planeHead.textContent = `${setup.task}, ${setup.model}: ${pairWords(setup, pair)}, points of test accuracy`;
    view.plane.replaceChildren(html("thead", {}, html("tr", {}, html("th", { scope: "col" }, "rate"), ...heads)), body);
  }

  /** The button that chooses these places, in its element of the table. */
  function planeCell(choice) {
    const { pair, budgetPlace, ratePlace } = choice, budget = budgetOf(choice), rate = rateOf(choice);
    const cell = compared(pair, budget, rate), holder = html("td");
    const button = html("button", { type: "button", tabindex: -1 });
    if (cell) {
      const [mean, text, , look] = cell;
      holder.style.backgroundColor = shade(choice, mean);
      holder.className = look;
      button.textContent = look === SURE ? `${text}*` : text;
      const words = `${button.textContent} points at ${rate} after ${steps(budget)}${LOOK_OF_CELL[look]}`;
      button.setAttribute("aria-label", words);
    } else {
      button.textContent = "–";
      button.setAttribute("aria-label", "– nothing to compare");
    }
    holder.append(button);
    return { button, budgetPlace, ratePlace };
  }

  /** The chosen cell, the only one where the Tab key stops, and its column. */
  function markPlane({ plane, cells }, choice) {
    for (const { button, budgetPlace, ratePlace } of cells) {
      const inColumn = budgetPlace === choice.budgetPlace, here = inColumn && ratePlace === choice.ratePlace;
      setAttributes(button, { "aria-pressed": here, tabindex: here ? 0 : -1 });
      button.parentElement.classList.toggle("column", inColumn);
    }
    plane.querySelectorAll("thead th").forEach((head, column) => {
      head.classList.toggle("column", column === choice.budgetPlace + 1);
    });
  }

  function drawLegend(legend, { setup, pair }) {
    const box = (...drawn) => svg("svg", { viewBox: "0 0 28 14", "aria-hidden": "true" }, ...drawn);
    const line = (attributes) => svg("line", { x1: 0, x2: 28, y1: 7, y2: 7, ...attributes });
    const arms = Object.entries(setup.arms).map(([arm, { name, colour, marker, dashed }]) => {
      const drawn = [line({ class: dashed ? "mean dashed" : "mean", stroke: colour }), mark(marker, 14, 7)];
      drawn[1].setAttribute("fill", colour);
      return html("li", { class: pair.arms.includes(arm) ? "" : "other" }, box(...drawn), name);
    });
    const lines = Object.entries(TO_BEAT).filter(([name]) => setup[name] !== null)
      .map(([name, words]) => html("li", {}, box(line({ class: name })), words));
    legend.replaceChildren(...arms, ...lines);
  }

  // --- showing a choice: each of these shows one part of it, then all that depends on this part.
  // What does not depend on it stays, and keeps the focus.

  function showTask(explorer) {
    const { setups, view, choice: { setup } } = explorer, found = setupsOf(setups, setup.task);
    view.task.input.selectedIndex = tasksOf(setups).indexOf(setup.task);
    fill(view.model.input, found.map((each) => each.model), found.indexOf(setup));
    showSetup(explorer);
  }

  function showSetup(explorer) {
    const { view, choice: { setup, pair } } = explorer;
    fill(view.pair.input, setup.pairs.map((each) => pairWords(setup, each)), setup.pairs.indexOf(pair));
    view.budget.input.max = setup.budgets.length - 1;
    view.rate.input.max = setup.rates.length - 1;
    view.about.textContent = setup.about;
    showPair(explorer);
  }

  function showPair(explorer) {
    drawPlane(explorer.view, explorer.choice);
    drawLegend(explorer.view.legend, explorer.choice);
    showPlace(explorer);
  }

  function showPlace({ view, choice }) {
    moveSlider(view.budget, choice.budgetPlace, steps(budgetOf(choice)));
    moveSlider(view.rate, choice.ratePlace, rateOf(choice));
    drawChart(view, choice);
    markPlane(view, choice);
    drawWords(view.said, choice);
  }

  // --- events

  function choose(explorer, choice, show) {
    explorer.choice = choice;
    show(explorer);
    if (explorer.small) return;
    history.replaceState(null, "", addressOf(choice));  // not a step for the browser's way back, nor a hashchange
  }

  function chooseSetup(explorer, setup, show) {
    choose(explorer, firstChoice(setup, armsOf(explorer.choice.pair)), show);
  }

  function choosePlace(explorer, budgetPlace, ratePlace) {
    choose(explorer, { ...explorer.choice, budgetPlace, ratePlace }, showPlace);
  }

  function listenToControls(explorer) {
    const { setups, view: { task, model, pair, budget, rate } } = explorer;
    const found = () => setupsOf(setups, tasksOf(setups)[task.input.selectedIndex]);
    task.input.addEventListener("change", () => chooseSetup(explorer, found()[0], showTask));
    model.input.addEventListener("change", () => {
      chooseSetup(explorer, found()[model.input.selectedIndex], showSetup);
    });
    pair.input.addEventListener("change", () => {
      const { choice } = explorer;
      choose(explorer, { ...choice, pair: choice.setup.pairs[pair.input.selectedIndex] }, showPair);
    });
    for (const { input } of [budget, rate]) {
      input.addEventListener("input", () => {
        choosePlace(explorer, Number(budget.input.value), Number(rate.input.value));
      });
    }
  }

  /** An arrow key alone: with another key it is the browser's, as Alt and Left for the page before. */
  const isArrow = (event) => event.key in ARROWS && !event.altKey && !event.ctrlKey && !event.metaKey;

  /** Arrow keys go from point to point: along an arm, or from arm to arm at a rate. */
  function listenToChart(chart) {
    chart.addEventListener("keydown", (event) => {
      const points = [...chart.querySelectorAll(".point")], here = document.activeElement;
      if (!points.includes(here) || !isArrow(event)) return;
      event.preventDefault();  // or the page would scroll
      const [right, up] = ARROWS[event.key];
      const row = points.filter((each) => each.dataset.arm === here.dataset.arm);
      const column = points.filter((each) => each.dataset.rate === here.dataset.rate)
        .sort((one, other) => one.getBBox().y - other.getBBox().y);
      const next = right ? row[row.indexOf(here) + right] : column[column.indexOf(here) - up];
      if (!next) return;
      here.setAttribute("tabindex", -1);
      next.setAttribute("tabindex", 0);
      next.focus();
    });
  }

  /** A click chooses a cell, and so does an arrow key that goes to it. */
  function listenToPlane(explorer) {
    const { view } = explorer, cellOf = (button) => view.cells.find((cell) => cell.button === button);
    view.plane.addEventListener("click", ({ target }) => {
      const cell = cellOf(target.closest("button"));  // a translator of pages puts elements into it
      if (cell) choosePlace(explorer, cell.budgetPlace, cell.ratePlace);
    });
    view.plane.addEventListener("keydown", (event) => {
      const cell = cellOf(event.target);
      if (!cell || !isArrow(event)) return;
      event.preventDefault();  // or the page would scroll
      const [right, up] = ARROWS[event.key], budgetPlace = cell.budgetPlace + right, ratePlace = cell.ratePlace + up;
      const next = view.cells.find((each) => each.budgetPlace === budgetPlace && each.ratePlace === ratePlace);
      next?.button.click();
      next?.button.focus();
    });
  }

  /** Shows what the address asks for, if the page has it. */
  function follow(root, explorer) {
    const asked = askedFor(location.hash, explorer.setups);
    if (!asked) return;
    explorer.choice = asked;
    showTask(explorer);
    root.scrollIntoView();
  }

  // --- start

  function start(root, setups) {
    const small = root.classList.contains("small"), view = elements(small ? `explorer-${setups[0].study}` : "explorer");
    const explorer = { setups, view, choice: firstChoice(setups[0], FIRST_ARMS), small };
    if (small) arrangeSmall(root, view, setups[0]);
    else arrange(root, view);
    fill(explorer.view.task.input, tasksOf(setups), 0);
    listenToControls(explorer);
    listenToChart(explorer.view.chart);
    listenToPlane(explorer);
    showTask(explorer);
    if (small) return;
    follow(root, explorer);
    addEventListener("hashchange", () => follow(root, explorer));
  }

  function begin() {
    for (const root of document.querySelectorAll(".fpt-explorer")) {
      start(root, JSON.parse(root.querySelector("script").textContent));
      root.closest(".fpt-picture")?.classList.add("moves");  // in the place of what stands still
    }
  }
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
  else begin();
})();
