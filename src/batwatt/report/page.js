(() => {
  "use strict";
  const bubble = document.getElementById("tip");

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
  document.addEventListener("pointerup", (event) => {
    const node = marked(event);
    // a finger cannot hover over a mark of a chart, and so never sees its <title>
    const mark = event.target.closest(".mark");
    tip(node ? node.dataset.tip : mark ? mark.querySelector("title").textContent : "", event.clientX, event.clientY);
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

  document.documentElement.dataset.ready = "yes";
})();
