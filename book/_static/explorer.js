// The explorer (book/map.md): choose task, model, two arms, budget and learning rate; see who leads.
// Every number and interval was computed by fpt.results and lies in the page as JSON; here it is only placed.
// An address chooses too: #study=plane-digits&task=digits&arms=FP,UR&rate=3e-3&budget=750, of which only study is needed.
(() => {
  "use strict";
  const WIDTH = 360, HEIGHT = 270, LEFT = 38, RIGHT = 10, TOP = 24, BOTTOM = 40;  // of the chart, in its own units
  const SURE = "sure", OPEN = "open";
  const SIGNS = {
    "+": ", significant for all budgets together", "-": ", significant for all budgets together",
    "1": ", significant for this budget, but not for all budgets together", "0": ", undecided",
    "?": ", undecided, as the one behind is at an end of its grid",
  };
  const FIRST_RATE = "1e-3";  // what both papers argue about

  const steps = (budget) => `${budget.toLocaleString("en-US")} steps`;
  const capital = (words) => words[0].toUpperCase() + words.slice(1);

  /** An element, of HTML or SVG, with attributes and children. */
  function make(space, name, attributes = {}, ...children) {
    const made = document.createElementNS(space, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }
  const html = (...of) => make("http://www.w3.org/1999/xhtml", ...of);
  const svg = (...of) => make("http://www.w3.org/2000/svg", ...of);

  /** A control with its label; `kind` is "select" or "range". */
  function control(kind, id, words) {
    const input = kind === "select" ? html("select", { id }) : html("input", { id, type: "range", min: 0, step: 1 });
    const shown = kind === "select" ? "" : html("output", { for: id });
    return { input, shown, block: html("div", { class: "control" }, html("label", { for: id }, words), input, shown) };
  }

  function fill(select, names) {
    select.replaceChildren(...names.map((name, place) => html("option", { value: place }, name)));
    select.selectedIndex = 0;
  }

  function start(root, setups) {
    const tasks = [...new Set(setups.map((setup) => setup.task))];
    const task = control("select", "explorer-task", "Task");
    const model = control("select", "explorer-model", "Model and study");
    const pair = control("select", "explorer-pair", "Compare");
    const budget = control("range", "explorer-budget", "Budget");
    const rate = control("range", "explorer-rate", "Learning rate");
    const said = html("p", { class: "said", role: "status" });
    const about = html("p", { class: "about" });
    const chart = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "group" });
    const legend = html("ul", { class: "legend" });
    const plane = html("table");
    const planeBox = html("div", { class: "plane" }, plane);
    const heads = [html("figcaption"), html("figcaption")];
    let setup, chosen, cells, place;  // the setup, its pair, the plane's buttons, and [place of the budget, of the rate]
    let low, high, tick;  // the range of the chart and its lines, in percent, the same at every budget

    const atPlace = () => [setup.budgets[place[0]], setup.rates[place[1]]];
    const named = (arm) => setup.arms[arm].name;
    const pairWords = (arms) => `${named(arms[0])} minus ${named(arms[1])}`;

    // --- what is chosen

    function chooseTask() {
      const found = setups.filter((each) => each.task === tasks[task.input.selectedIndex]);
      fill(model.input, found.map((each) => each.model));
      chooseModel();
    }

    function chooseModel() {
      const found = setups.filter((each) => each.task === tasks[task.input.selectedIndex]);
      const before = setup && chosen.arms.join();
      setup = found[model.input.selectedIndex];
      fill(pair.input, setup.pairs.map((each) => pairWords(each.arms)));
      pair.input.selectedIndex = Math.max(0, setup.pairs.findIndex((each) => each.arms.join() === before));
      const first = Math.max(0, setup.rates.indexOf(FIRST_RATE));
      place = [setup.budgets.length - 1, first];
      budget.input.max = setup.budgets.length - 1;
      rate.input.max = setup.rates.length - 1;
      about.textContent = setup.about;
      const shown = Object.values(setup.arms).flatMap(({ points }) => Object.values(points).flatMap(Object.values));
      const all = [setup.floor, ...shown.map(([mean]) => mean)].filter((mean) => mean !== null);
      [low, high] = [Math.min(...all), Math.max(...all)];
      tick = high - low > 50 ? 20 : 10;
      [low, high] = [tick * Math.floor(low / tick), tick * Math.ceil(high / tick)];
      choosePair();
    }

    function choosePair() {
      chosen = setup.pairs[pair.input.selectedIndex];
      drawPlane();
      choosePlace(...place);
    }

    function choosePlace(ofBudget, ofRate) {
      place = [ofBudget, ofRate];
      const [steps_, rate_] = atPlace();
      budget.input.value = ofBudget;
      rate.input.value = ofRate;
      budget.shown.textContent = steps(steps_);
      rate.shown.textContent = rate_;
      budget.input.setAttribute("aria-valuetext", steps(steps_));
      rate.input.setAttribute("aria-valuetext", rate_);
      drawChart();
      markPlane();
      said.replaceChildren(...words());
    }

    // --- in words

    function words() {
      const [one, other] = chosen.arms.map(named), [steps_, rate_] = atPlace();
      const cell = (chosen.plane[steps_] || {})[rate_], tuned = chosen.tuned[steps_];
      const lines = [`At learning rate ${rate_} after ${steps(steps_)}: `];
      lines.push(...(cell ? winner(one, other, cell) : ["nothing to compare."]));
      if (cell) {
        const [first, second] = chosen.arms.map((arm) => setup.arms[arm].points[steps_][rate_][2]);
        lines.push(` Accuracies (± standard error): ${first}% and ${second}%.`);
      }
      if (tuned) {
        const [mean, interval, sign] = tuned;
        lines.push(` Each at its own rate: ${mean} points (${interval})${SIGNS[sign]}.`);
      }
      return lines;
    }

    function winner(one, other, [mean, text, interval, look]) {
      const leads = look === OPEN ? "no clear winner" : `${mean > 0 ? one : other} leads`;
      const sure = look === OPEN ? "" : `, ${look === SURE ? "" : "not "}significant for the whole plane`;
      const difference = `. ${capital(one)} minus ${other}: ${text} points (95% interval ${interval})${sure}.`;
      return [html("strong", {}, leads), difference];
    }

    // --- the chart: test accuracy over learning rate

    const across = (rate_) => {
      const [first, last] = [setup.rates[0], setup.rates.at(-1)].map((each) => Math.log(Number(each)));
      const share = last > first ? (Math.log(Number(rate_)) - first) / (last - first) : 0.5;
      return LEFT + 14 + share * (WIDTH - LEFT - RIGHT - 28);
    };
    const up = (percent) => HEIGHT - BOTTOM - ((percent - low) / (high - low)) * (HEIGHT - TOP - BOTTOM);

    function drawChart() {
      const [steps_, rate_] = atPlace();
      heads[0].textContent = `Test accuracy by learning rate after ${steps(steps_)}`;
      chart.setAttribute("aria-label", `${heads[0].textContent}; arrow keys go from point to point`);
      const parts = [...axes(), svg("line", {
        class: "chosen", x1: across(rate_), x2: across(rate_), y1: up(low), y2: up(high),
      })];
      const arms = Object.keys(setup.arms).sort((one) => (chosen.arms.includes(one) ? 1 : -1));
      for (const arm of arms) parts.push(armLine(arm, setup.arms[arm], steps_));
      chart.replaceChildren(...parts);
      const points = [...chart.querySelectorAll(".point")];
      const first = points.find((each) => each.dataset.rate === rate_ && each.dataset.arm === chosen.arms[0]);
      (first || points[0])?.setAttribute("tabindex", 0);
    }

    function axes() {
      const parts = [];
      for (let percent = low; percent <= high; percent += tick) {
        parts.push(svg("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: up(percent), y2: up(percent) }));
        parts.push(svg("text", { x: LEFT - 5, y: up(percent) + 4, "text-anchor": "end" }, percent));
      }
      for (const each of setup.rates) {
        parts.push(svg("text", { x: across(each), y: HEIGHT - BOTTOM + 16, "text-anchor": "middle" }, each));
      }
      if (setup.floor !== null) {
        const floor = up(setup.floor);
        parts.push(svg("line", { class: "floor", x1: LEFT, x2: WIDTH - RIGHT, y1: floor, y2: floor }));
      }
      parts.push(svg("text", { x: 4, y: 12 }, "test accuracy (%)"));
      parts.push(svg("text", { x: WIDTH / 2, y: HEIGHT - 6, "text-anchor": "middle" }, "learning rate"));
      return parts;
    }

    function armLine(arm, { name, colour, marker, points }, steps_) {
      const line = setup.rates.filter((each) => (points[steps_] || {})[each]?.[0] != null)
        .map((each) => [each, ...points[steps_][each]]);
      const edge = (sign) => line.map(([each, mean, error]) => `${across(each)},${up(mean + sign * error)}`);
      const group = svg("g", { class: chosen.arms.includes(arm) ? "arm" : "arm other", fill: colour, stroke: colour });
      group.append(
        svg("polygon", { class: "band", points: [...edge(1), ...edge(-1).reverse()].join(" ") }),
        svg("polyline", { class: "mean", points: edge(0).join(" ") }),
      );
      for (const [each, mean, , text] of line) {
        const point = shape(marker, across(each), up(mean));
        const label = `${name} at ${each}: ${text}%`;
        for (const [key, value] of Object.entries({ class: "point", role: "img", tabindex: -1, "aria-label": label })) {
          point.setAttribute(key, value);
        }
        Object.assign(point.dataset, { arm, rate: each });
        for (const event of ["focus", "pointerenter"]) point.addEventListener(event, () => labelled(point, label));
        for (const event of ["blur", "pointerleave"]) point.addEventListener(event, () => labelled(null));
        group.append(point);
      }
      return group;
    }

    /** A mark as matplotlib draws it: o circle, s square, ^ triangle, D diamond. */
    function shape(marker, x, y) {
      const corners = { s: [[-4, -4], [4, -4], [4, 4], [-4, 4]], "^": [[-5, 4], [5, 4], [0, -5]],
        D: [[-5, 0], [0, -5], [5, 0], [0, 5]] }[marker];
      if (!corners) return svg("circle", { cx: x, cy: y, r: 4.5 });
      return svg("polygon", { points: corners.map(([dx, dy]) => `${x + dx},${y + dy}`).join(" ") });
    }

    /** What a point is, above it and inside the chart. */
    function labelled(point, words) {
      chart.querySelector(".label")?.remove();
      if (!point) return;
      const box = point.getBBox(), text = svg("text", { "text-anchor": "middle" }, words);
      const label = svg("g", { class: "label", "aria-hidden": "true" }, text);
      chart.append(label);
      const half = text.getBBox().width / 2 + 5;
      const x = Math.min(Math.max(box.x + box.width / 2, half), WIDTH - half), y = Math.max(box.y - 9, 14);
      text.setAttribute("x", x);
      text.setAttribute("y", y);
      label.prepend(svg("rect", { x: x - half, y: y - 14, width: 2 * half, height: 19, rx: 3 }));
    }

    chart.addEventListener("keydown", (event) => {
      const points = [...chart.querySelectorAll(".point")], here = points.indexOf(document.activeElement);
      if (here < 0) return;
      const { arm, rate: rate_ } = points[here].dataset;
      const column = points.filter((each) => each.dataset.rate === rate_)
        .sort((one, other) => one.getBBox().y - other.getBBox().y);
      const row = points.filter((each) => each.dataset.arm === arm);
      const [along, by] = { ArrowLeft: [row, -1], ArrowRight: [row, 1], ArrowUp: [column, -1], ArrowDown: [column, 1] }[
        event.key] || [];
      const next = along?.[along.indexOf(points[here]) + by];
      if (!along) return;
      event.preventDefault();
      if (!next) return;
      points[here].setAttribute("tabindex", -1);
      next.setAttribute("tabindex", 0);
      next.focus();
    });

    // --- the plane: who leads, by learning rate and budget

    function drawPlane() {
      const most = Math.max(1, ...Object.values(chosen.plane).flatMap(Object.values).map(([mean]) => Math.abs(mean)));
      heads[1].textContent = `${setup.task}, ${setup.model}: ${pairWords(chosen.arms)}, points of test accuracy`;
      const head = html("tr", {}, html("th", { scope: "col" }, "rate"));
      for (const each of setup.budgets) head.append(html("th", { scope: "col" }, each.toLocaleString("en-US")));
      cells = new Map();
      const body = html("tbody");
      for (let ofRate = setup.rates.length - 1; ofRate >= 0; ofRate--) {
        const line = html("tr", {}, html("th", { scope: "row" }, setup.rates[ofRate]));
        setup.budgets.forEach((_, ofBudget) => line.append(planeCell(ofBudget, ofRate, most)));
        body.append(line);
      }
      plane.replaceChildren(html("thead", {}, head), body);
      legend.replaceChildren(...Object.entries(setup.arms).map(([arm, { name, colour, marker }]) => {
        const mark = svg("svg", { viewBox: "0 0 14 14", "aria-hidden": "true", fill: colour }, shape(marker, 7, 7));
        return html("li", { class: chosen.arms.includes(arm) ? "" : "other" }, mark, name);
      }));
    }

    function planeCell(ofBudget, ofRate, most) {
      const cell = (chosen.plane[setup.budgets[ofBudget]] || {})[setup.rates[ofRate]], holder = html("td");
      const button = html("button", { type: "button", tabindex: -1 });
      if (cell) {
        const [mean, text, , look] = cell;
        const colour = setup.arms[chosen.arms[mean > 0 ? 0 : 1]].colour;
        const depth = Math.round((0.08 + 0.42 * Math.abs(mean) / most) * 255).toString(16).padStart(2, "0");
        holder.style.backgroundColor = colour + depth;
        holder.className = look;
        button.textContent = text + (look === SURE ? "*" : "");
        const place_ = `at ${setup.rates[ofRate]} after ${steps(setup.budgets[ofBudget])}`;
        const sure = { [SURE]: ", significant", [OPEN]: ", undecided" }[look] || "";
        button.setAttribute("aria-label", `${button.textContent} points ${place_}${sure}`);
      } else {
        button.textContent = "–";
        button.setAttribute("aria-label", "– nothing to compare");
      }
      button.addEventListener("click", () => choosePlace(ofBudget, ofRate));
      button.addEventListener("keydown", (event) => {
        const [more, higher] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[
          event.key] || [];
        const next = cells.get(`${ofBudget + more} ${ofRate + higher}`);
        if (more === undefined) return;
        event.preventDefault();
        next?.click();
        next?.focus();
      });
      holder.append(button);
      cells.set(`${ofBudget} ${ofRate}`, button);
      return holder;
    }

    function markPlane() {
      for (const [key, button] of cells) {
        const here = key === place.join(" ");
        button.setAttribute("aria-pressed", here);
        button.setAttribute("tabindex", here ? 0 : -1);
        button.parentElement.classList.toggle("column", key.startsWith(`${place[0]} `));
      }
      plane.querySelectorAll("thead th").forEach((head, column) => {
        head.classList.toggle("column", column === place[0] + 1);
      });
    }

    // --- from the address

    /** What the address asks for; what it does not name, or names wrongly, stays as it is at first. */
    function follow() {
      const asked = new URLSearchParams(location.hash.slice(1));
      const named_ = (each) => each.study === asked.get("study") && [each.name, null].includes(asked.get("task"));
      const wanted = setups.find(named_);
      if (!wanted) return;
      task.input.selectedIndex = tasks.indexOf(wanted.task);
      chooseTask();
      model.input.selectedIndex = setups.filter((each) => each.task === wanted.task).indexOf(wanted);
      chooseModel();
      const either = (found, other) => (found < 0 ? other : found);
      const arms = asked.get("arms") || "FP,UP";
      pair.input.selectedIndex = either(wanted.pairs.findIndex((each) => each.arms.join() === arms), 0);
      place = [
        either(wanted.budgets.indexOf(Number(asked.get("budget"))), place[0]),
        either(wanted.rates.indexOf(asked.get("rate")), place[1]),
      ];
      choosePair();
      root.scrollIntoView();
    }

    // --- together

    const controls = [task, model, pair, budget, rate];
    const map = html("figure", {}, heads[1], planeBox), narrow = matchMedia("(max-width: 600px)");
    const sides = html("div", { class: "sides" }, html("figure", {}, heads[0], chart, legend), map);
    root.append(html("div", { class: "controls" }, ...controls.map((each) => each.block)), said, sides, about);

    /** On a phone the map comes first, for the eye and for the keyboard. */
    function arrange() {
      if (narrow.matches) root.prepend(map);
      else sides.append(map);
    }
    narrow.addEventListener("change", arrange);
    arrange();
    fill(task.input, tasks);
    task.input.addEventListener("change", chooseTask);
    model.input.addEventListener("change", chooseModel);
    pair.input.addEventListener("change", choosePair);
    for (const slider of [budget, rate]) {
      slider.input.addEventListener("input", () => choosePlace(Number(budget.input.value), Number(rate.input.value)));
    }
    chooseTask();
    follow();
    addEventListener("hashchange", follow);
  }

  function begin() {
    for (const root of document.querySelectorAll(".fpt-explorer")) {
      start(root, JSON.parse(root.querySelector("script").textContent));
    }
  }
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
  else begin();
})();
