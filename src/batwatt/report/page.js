(() => {
  "use strict";
  const plots = JSON.parse(document.getElementById("plots").textContent);
  const boxes = [...document.querySelectorAll('input[name="label"]')];
  const config = {
    responsive: true,
    displaylogo: false,
    // on a phone they would lie over the legend
    displayModeBar: matchMedia("(max-width: 40rem)").matches ? false : "hover",
    toImageButtonOptions: { format: "svg" },
  };

  const chosen = () => new Set(boxes.filter((box) => box.checked).map((box) => box.value));

  /** The heat map with the rows of the chosen algorithms only. */
  function rowsOf(trace, labels) {
    const kept = trace.meta.rows.map((label, row) => (labels.has(label) ? row : -1)).filter((row) => row >= 0);
    const of = (values) => kept.map((row) => values[row]);
    return { ...trace, y: of(trace.y), z: of(trace.z), text: of(trace.text) };
  }

  /** The traces of the chosen algorithms, and how many rows they take. */
  function reduced(data, labels) {
    const [first] = data;
    if (first && first.meta && first.meta.rows) {
      const trace = rowsOf(first, labels);
      return { traces: trace.y.length ? [trace] : [], rows: trace.y.length };
    }
    const traces = data.filter(({ meta }) => !meta || labels.has(meta.label));
    return { traces, rows: traces.length };
  }

  function drawPlot(div, { data, layout }, labels) {
    const { traces, rows } = reduced(data, labels);
    if (!traces.length) {
      Plotly.purge(div);
      div.textContent = "No algorithm of this figure is chosen.";
      return;
    }
    if (!div.data) div.textContent = "";
    const { row_px: each, fixed_px: fixed } = layout.meta;
    const height = each === undefined ? layout.height : fixed + each * rows;
    const modeBarButtons = [layout.dragmode === "zoom" ? ["toImage", "zoom2d", "pan2d", "resetScale2d"] : ["toImage"]];
    // more names than can be told apart are told by hovering
    const named = new Set(traces.map((trace) => trace.name)).size <= 16;
    const showlegend = named && layout.showlegend !== false;
    Plotly.react(div, traces, { ...layout, height, showlegend }, { ...config, modeBarButtons });
  }

  function draw() {
    const labels = chosen();
    document.getElementById("count").textContent = labels.size;
    for (const row of document.querySelectorAll("[data-label]")) row.hidden = !labels.has(row.dataset.label);
    for (const [id, plot] of Object.entries(plots)) drawPlot(document.getElementById(id), plot, labels);
  }

  let waiting = 0;
  function later() {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(draw);
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
