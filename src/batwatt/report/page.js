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

  /** Put the less important columns of a table behind a button, and say how many columns are right of the edge. */
  function columns(box) {
    const table = box.querySelector("table");
    const bar = document.createElement("p");
    const [button, hint] = ["button", "span"].map((name) => bar.appendChild(document.createElement(name)));
    bar.className = "columns";
    button.type = "button";
    const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
    const more = heads.filter((head) => head.matches(".always, .narrow"));
    table.classList.toggle("brief", more.length > 0);
    const update = () => {
      const hidden = more.filter((head) => getComputedStyle(head).display === "none").length;
      const brief = table.classList.contains("brief");
      button.hidden = brief ? !hidden : !more.length;
      button.textContent = brief ? `${hidden} more columns` : "fewer columns";
      button.setAttribute("aria-expanded", String(!brief));
      const edge = box.getBoundingClientRect().right + 1;
      const right = heads.filter((head) => head.getBoundingClientRect().right > edge).length;
      hint.textContent = right ? `${right} more column${right > 1 ? "s" : ""} →` : "";
      box.classList.toggle("cut", right > 0);
      bar.hidden = button.hidden && box.scrollWidth <= box.clientWidth;
    };
    button.addEventListener("click", () => {
      table.classList.toggle("brief");
      update();
    });
    box.addEventListener("scroll", update, { passive: true });
    new ResizeObserver(update).observe(box);
    box.before(bar);
    update();
  }
  for (const box of document.querySelectorAll(".wide:has(thead)")) columns(box);

  /** Open the part of the page that a link leads to. */
  function unfold() {
    const node = document.getElementById(location.hash.slice(1));
    const part = node && node.querySelector("details");
    if (part && node.matches("section")) part.open = true;
  }
  addEventListener("hashchange", unfold);
  unfold();

  document.documentElement.dataset.ready = "yes";
})();
