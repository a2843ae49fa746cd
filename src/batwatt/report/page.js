(() => {
  "use strict";
  const plots = JSON.parse(document.getElementById("plots").textContent);
  const boxes = [...document.querySelectorAll('input[name="label"]')];
  const figures = [...document.querySelectorAll("figure")];
  const bubble = document.getElementById("tip");
  const NAMED = 16;

  /** Show a text near a point, or hide it. */
  function tip(text, x = 0, y = 0) {
    bubble.hidden = !text;
    if (!text) return;
    bubble.textContent = text;
    const { width, height } = bubble.getBoundingClientRect();
    bubble.style.left = `${Math.max(4, Math.min(x + 12, innerWidth - width - 4))}px`;
    bubble.style.top = `${y + 16 + height > innerHeight ? Math.max(4, y - height - 12) : y + 16}px`;
  }

  const marked = (event) => event.target.closest && event.target.closest("[data-tip]");
  const below = (node) => {
    const { left, bottom } = node.getBoundingClientRect();
    tip(node.dataset.tip, left - 12, bottom - 10);
  };
  document.addEventListener("pointerover", (event) => {
    const node = marked(event);
    if (node) tip(node.dataset.tip, event.clientX, event.clientY);
  });
  document.addEventListener("pointerout", (event) => {
    // a finger that leaves the screen is no pointer that goes away
    if (event.pointerType === "mouse" && marked(event)) tip("");
  });
  document.addEventListener("click", (event) => {
    const node = marked(event);
    if (node) tip(node.dataset.tip, event.clientX, event.clientY);
    else if (!event.target.closest(".pane")) tip("");
  });
  document.addEventListener("focusin", (event) => {
    const node = marked(event);
    if (!node) return;
    node.setAttribute("aria-describedby", "tip");
    if (node.matches(":focus-visible")) below(node);
    else bubble.textContent = node.dataset.tip;
  });
  document.addEventListener("focusout", (event) => {
    const node = marked(event);
    if (!node) return;
    node.removeAttribute("aria-describedby");
    tip("");
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") tip("");
  });
  document.addEventListener("scroll", () => tip(""), { passive: true });

  const chosen = () => new Set(boxes.filter((box) => box.checked).map((box) => box.value));
  /** Names of the series that the reader has switched off, by figure. */
  const off = new Map(figures.map((figure) => [figure, new Set()]));

  /** The legend of a figure: a button for each series that is not named on an axis. */
  function legend(figure, series) {
    const list = figure.querySelector(".legend");
    if (!list) return;
    const entries = new Map(series.filter((one) => one.draw !== "area").map((one) => [one.name, one]).reverse());
    const shown = entries.size > NAMED ? [] : [...entries.values()].reverse();
    list.replaceChildren(...shown.map((one) => {
      const entry = document.createElement("li");
      const button = document.createElement("button");
      button.type = "button";
      button.dataset.name = one.name;
      button.setAttribute("aria-pressed", String(!off.get(figure).has(one.name)));
      button.append(Plots.sample(one), one.name);
      button.addEventListener("click", () => {
        const names = off.get(figure);
        if (!names.delete(one.name)) names.add(one.name);
        drawFigure(figure, chosen());
        figure.querySelector(`.legend [data-name="${CSS.escape(one.name)}"]`).focus();
      });
      entry.append(button);
      return entry;
    }));
  }

  function drawPlot(div, plot, series) {
    div.querySelector(".nothing")?.remove();
    if (series.length) {
      Plots.draw(div, plot, series, tip);
      return;
    }
    div.querySelector("svg")?.remove();
    const text = document.createElement("p");
    text.className = "nothing";
    text.textContent = `No ${document.getElementById("chooser").dataset.kind} of this figure is chosen.`;
    div.append(text);
  }

  function drawFigure(figure, labels) {
    const named = [];
    for (const div of figure.querySelectorAll(".plot")) {
      const plot = plots[div.id];
      // a plot of one case at a time shows it whatever else is chosen
      const shown = plot.choices ? new Set([div.dataset.choice ?? plot.choices[0]]) : labels;
      const there = plot.series.filter((one) => one.label === null || shown.has(one.label));
      if (!plot.rows) named.push(...there);
      drawPlot(div, plot, there.filter((one) => plot.rows || !off.get(figure).has(one.name)));
    }
    legend(figure, named);
  }

  function draw() {
    const labels = chosen();
    document.getElementById("count").textContent = labels.size;
    for (const row of document.querySelectorAll("[data-label]:not(.series)")) row.hidden = !labels.has(row.dataset.label);
    for (const figure of figures) drawFigure(figure, labels);
  }

  let waiting = 0;
  function later() {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(draw);
  }

  let width = innerWidth;
  addEventListener("resize", () => {
    // a phone's bars come and go: that is no other width
    if (innerWidth !== width) later();
    width = innerWidth;
  });
  addEventListener("beforeprint", draw);
  for (const select of document.querySelectorAll("[data-plot]")) {
    select.addEventListener("click", () => {
      const div = document.getElementById(select.dataset.plot);
      const kind = "range" in select.dataset ? "range" : "choice";
      div.dataset[kind] = select.dataset[kind];
      for (const other of select.parentElement.children) other.setAttribute("aria-pressed", String(other === select));
      drawFigure(div.closest("figure"), chosen());
    });
  }
  for (const box of boxes) box.addEventListener("change", later);
  const choices = { first: (box) => "first" in box.dataset, all: () => true, none: () => false };
  for (const button of document.querySelectorAll("[data-choose]")) {
    button.addEventListener("click", () => {
      // only what the search leaves visible is changed
      for (const box of boxes) {
        if (!box.parentElement.hidden) box.checked = choices[button.dataset.choose](box);
      }
      later();
    });
  }
  document.getElementById("find").addEventListener("input", (event) => {
    const words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const box of boxes) {
      const text = box.value.toLowerCase();
      box.parentElement.hidden = !words.every((word) => text.includes(word));
    }
  });

  /** Sort the rows by a column: numbers by size, texts by letters, what is missing last. */
  function sort(header) {
    const table = header.closest("table");
    const column = [...header.parentElement.children].indexOf(header);
    const down = header.getAttribute("aria-sort") === "ascending";
    const numeric = header.classList.contains("number");
    const key = (row) => {
      const cell = row.children[column];
      return cell.dataset.key === undefined ? cell.textContent : cell.dataset.key;
    };
    const order = (a, b) => {
      const [x, y] = [key(a), key(b)];
      if (numeric && (x === "" || y === "")) return (x === "") - (y === "");
      const difference = numeric ? Number(x) - Number(y) : x.localeCompare(y);
      return down ? -difference : difference;
    };
    for (const other of table.querySelectorAll("th[aria-sort]")) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", down ? "descending" : "ascending");
    table.tBodies[0].append(...[...table.tBodies[0].rows].sort(order));
  }
  for (const button of document.querySelectorAll(".sortable thead button")) {
    button.addEventListener("click", () => sort(button.closest("th")));
  }

  draw();
  document.documentElement.dataset.ready = "yes";
})();
