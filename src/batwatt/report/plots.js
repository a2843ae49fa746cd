/** Draws the figures as SVG, for the width there is; see interactive.py for what a plot is. */
const Plots = (() => {
  "use strict";
  const NS = "http://www.w3.org/2000/svg";
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = "12px system-ui, sans-serif";
  const widthOf = (text) => pen.measureText(text).width;
  const textsWidth = (ticks) => Math.max(0, ...ticks.map(([, text]) => widthOf(text)));
  const px = (value) => Math.round(value * 10) / 10;

  function add(parent, name, attributes = {}, text = "") {
    const node = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) {
      if (value !== undefined && value !== "") node.setAttribute(key, value);
    }
    if (text) node.textContent = text;
    return parent.appendChild(node);
  }

  /** A text that fits, and the whole of it as its tip. */
  function label(parent, text, room, attributes) {
    let shown = text;
    while (shown.length > 3 && widthOf(shown) > room) shown = `${shown.slice(0, -2)}…`;
    return add(parent, "text", shown === text ? attributes : { ...attributes, "data-tip": text }, shown);
  }

  /** Round numbers between two ends, about so many. */
  function roundTicks(low, high, most) {
    const rough = (high - low) / Math.max(2, most);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find((digit) => digit * power >= rough * 0.999);
    const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    const ticks = [];
    for (let n = Math.ceil(low / step - 1e-9); n * step <= high + 1e-9 * step; n += 1) {
      ticks.push([n * step, (n * step).toFixed(digits)]);
    }
    return ticks;
  }

  /** All values of a series, with their errors. */
  function valuesOf({ draw, y, error = [] }) {
    const found = draw === "bars" ? [0] : [];
    y.forEach((value, n) => {
      if (value === null) return;
      found.push(value - (error[n] || 0), value + (error[n] || 0));
    });
    return found;
  }

  /** The ends of an axis; a little more than the values, but for an end at 0. */
  function endsOf(axis, values) {
    if (axis.range) return axis.range;
    let low = values.reduce((a, b) => Math.min(a, b), axis.zero ? 0 : Infinity);
    let high = values.reduce((a, b) => Math.max(a, b), axis.zero ? 0 : -Infinity);
    if (low > high) return [0, 1];
    if (axis.log) return [low / 1.15, high * 1.15];
    if (low === high) [low, high] = axis.zero ? [0, 1] : [low - 0.5, high + 0.5];
    const more = 0.05 * (high - low);
    return [axis.zero && low === 0 ? 0 : low - more, axis.zero && high === 0 ? 0 : high + more];
  }

  /** Value -> pixel. */
  function scale(axis, [low, high], from, to) {
    const at = axis.log ? Math.log10 : (value) => value;
    const [a, b] = [at(low), at(high)];
    const found = (value) => from + ((at(value) - a) / (b - a)) * (to - from);
    found.inverse = (pixel) => a + ((pixel - from) / (to - from)) * (b - a);
    return found;
  }

  const path = (points, end = "") => `M${points.map(([x, y]) => `${px(x)} ${px(y)}`).join("L")}${end}`;

  function hatched(svg, d) {
    const known = [...svg.querySelectorAll("pattern")];
    let pattern = known.find((one) => one.dataset.d === d);
    if (!pattern) {
      const size = { width: 7, height: 7, patternUnits: "userSpaceOnUse" };
      pattern = add(svg, "pattern", { id: `${svg.parentNode.id}-h${known.length}`, "data-d": d, ...size });
      add(pattern, "path", { d, class: "hatch" });
    }
    return `url(#${pattern.id})`;
  }

  /** How each kind of series is drawn: `at(n, offset, value)` is the pixel of its n-th place. */
  const DRAW = {
    line(g, one, at) {
      let d = "";
      let next = "M";
      one.y.forEach((value, n) => {
        if (value === null) {
          next = "M";
          return;
        }
        for (const end of one.step ? [n, n + 1] : [n]) {
          const [x, y] = at(end, 0, value);
          d += `${next}${px(x)} ${px(y)}`;
          next = "L";
        }
      });
      add(g, "path", { d, class: "line", "stroke-dasharray": one.dash });
      if (one.marker) DRAW.dots(g, one, at);
    },
    area(g, one, at) {
      let d = "";
      one.y.forEach((value, n) => {
        d += value === null ? "Z" : `${d === "" || d.endsWith("Z") ? "M" : "L"}${at(n, 0, value).map(px).join(" ")}`;
      });
      add(g, "path", { d, class: one.pale ? "area pale" : "area" });
    },
    errors(g, one, at, cap) {
      one.y.forEach((value, n) => {
        if (value === null || !(one.error && one.error[n])) return;
        const [low, high] = [value - one.error[n], value + one.error[n]];
        const bars = [[[0, low], [0, high]], [[-cap, low], [cap, low]], [[-cap, high], [cap, high]]];
        add(g, "path", { d: bars.map((ends) => path(ends.map((end) => at(n, ...end)))).join(""), class: "error" });
      });
    },
    dots(g, one, at) {
      DRAW.errors(g, one, at, 0);
      one.y.forEach((value, n) => {
        if (value === null) return;
        const [x, y] = at(n, 0, value);
        const size = one.small ? 3 : 4.5;
        const place = `translate(${px(x)} ${px(y)}) scale(${size})`;
        add(g, "path", { d: one.marker, class: one.faint ? "dot faint" : "dot", transform: place });
        if (one.ring) add(g, "circle", { cx: px(x), cy: px(y), r: one.ring, class: "ring" });
        add(g, "circle", { cx: px(x), cy: px(y), r: one.small ? 5 : 10, class: "near", "data-tip": tipOf(one, n) });
      });
    },
    bars(g, one, at, half) {
      one.y.forEach((value, n) => {
        if (value === null) return;
        const d = path([at(n, -half, 0), at(n, half, 0), at(n, half, value), at(n, -half, value)], "Z");
        add(g, "path", { d, class: "bar" });
        if (one.hatch) add(g, "path", { d, fill: hatched(g.ownerSVGElement, one.hatch) });
        add(g, "path", { d, class: "near", "data-tip": tipOf(one, n) });
      });
      DRAW.errors(g, one, at, half / 3);
    },
  };
  const tipOf = (one, n) => `${one.name}\n${(one.tips && one.tips[n]) || ""}`.trim();

  /** What the series are at a value of x. */
  function reading(plot, series, x) {
    const [decimals, unit, clock = "h"] = plot.reading;
    const lines = series.filter((one) => one.step).map((one) => {
      const after = one.x.findIndex((start) => start > x);
      const value = after > 0 ? one.y[after - 1] : null;
      return value === null || value === undefined ? "" : `${one.name}: ${value.toFixed(decimals)} ${unit}`;
    });
    return [`${x.toFixed(2)} ${clock}`, ...lines.filter(Boolean)].join("\n");
  }

  function read(svg, plot, series, u, [left, top, right, bottom], tip) {
    const rule = add(svg, "line", { y1: top, y2: bottom, class: "rule", visibility: "hidden" });
    const pane = add(svg, "rect", { x: left, y: top, width: right - left, height: bottom - top, class: "pane" });
    const show = (event) => {
      const x = event.clientX - svg.getBoundingClientRect().left;
      rule.setAttribute("x1", x);
      rule.setAttribute("x2", x);
      rule.setAttribute("visibility", "visible");
      tip(reading(plot, series, u.inverse(x)), event.clientX, event.clientY);
    };
    pane.addEventListener("pointermove", show);
    pane.addEventListener("click", show);
    pane.addEventListener("pointerleave", () => tip(""));
  }

  /** The texts along x: all, aslant if they are places without room, else as many as fit. */
  function alongX(svg, ticks, u, top, bottom, slot) {
    const aslant = slot > 0;
    let free = -Infinity;
    for (const [value, text] of ticks) {
      const x = px(u(value));
      const half = widthOf(text) / 2;
      if (aslant) {
        const place = { transform: `translate(${x + 4} ${bottom + 12}) rotate(-35)`, "text-anchor": "end" };
        label(svg, text, Math.min(150, (x + 4) / 0.82), { ...place, class: "tick" });
      } else if (x - half >= free) {
        add(svg, "text", { x, y: bottom + 16, "text-anchor": "middle", class: "tick" }, text);
        free = x + half + 6;
      }
    }
  }

  /** Names next to the points, each where it hides no point and no other name; those without room are left out. */
  function nameDots(g, series, u, v, [left, top, right, bottom]) {
    const dots = series.filter((one) => one.draw === "dots");
    const taken = dots.flatMap((one) => one.x.map((x, n) => {
      const [half, at, up] = [one.ring || 6, u(x), v(one.y[n])];
      return [at - half, up - half, at + half, up + half];
    }));
    const free = ([a, b, c, d]) => a >= left && c <= right && b >= top && d <= bottom
      && !taken.some(([e, f, h, i]) => a < h && e < c && b < i && f < d);
    for (const one of dots) {
      const [gap, x, y, w] = [(one.ring || 6) + 3, u(one.x[0]), v(one.y[0]), widthOf(one.name)];
      const places = [[x + gap, y + 4], [x - gap - w, y + 4], [x - w / 2, y - gap - 2], [x - w / 2, y + gap + 10],
        [x + gap / 2, y - gap], [x - gap / 2 - w, y - gap], [x + gap / 2, y + gap + 8], [x - gap / 2 - w, y + gap + 8]];
      const box = ([at, base]) => [at, base - 11, at + w, base + 3];
      const place = places.find((where) => free(box(where)));
      if (!place) continue;
      taken.push(box(place));
      add(g, "text", { x: px(place[0]), y: px(place[1]), class: "name" }, one.name);
    }
  }

  /** Draw the visible series of a plot into an element; `tip(text, x, y)` shows a text there. */
  function draw(div, plot, series, tip) {
    div.querySelector("svg")?.remove();
    const width = Math.max(200, Math.floor(div.clientWidth));
    const rows = [...new Set(series.map((one) => one.name))];
    const above = plot.rows && width < 500 && plot.rows > 30;
    const each = (plot.rows || 0) + (above ? 14 : 0);
    const values = series.flatMap(valuesOf);
    const ends = endsOf(plot.y, values);
    const top = plot.rows || !plot.y.title ? 8 : 26;
    const places = plot.x.ticks || [];
    let vTicks = plot.y.ticks || roundTicks(...ends, plot.rows ? width / 90 : 6);
    let left = 6 + textsWidth(vTicks);
    if (plot.rows) left = above ? 4 : Math.min(0.4 * width, 10 + Math.max(...rows.map(widthOf)));
    const right = width - (plot.rows ? 14 : 10);
    const slot = plot.dividers ? (right - left) / places.length : 0;
    const aslant = slot > 0 && textsWidth(places) > slot - 4;
    // the first of them begins left of its place
    if (aslant) left = Math.max(left, 0.82 * Math.min(150, widthOf(places[0][1])) - slot / 2);
    const below = 22 + (aslant ? Math.min(92, 0.6 * Math.min(150, textsWidth(places))) : 0)
      + (plot.rows ? (plot.y.title ? 18 : 0) : plot.x.title ? 18 : 0);
    const height = plot.rows ? top + each * rows.length + below : plot.height;
    const bottom = height - below;
    const svg = add(div, "svg", { width, height, viewBox: `0 0 ${width} ${height}` });
    const xs = series.flatMap((one) => one.x || []).filter((value) => value !== null);
    const span = plot.ranges && plot.ranges[div.dataset.range ?? plot.range][1];
    const least = xs.reduce((a, b) => Math.min(a, b), Infinity);
    const uEnds = span || plot.x.range || (plot.reading ? [least, xs.reduce((a, b) => Math.max(a, b), least)]
      : endsOf(plot.x, xs));
    const u = scale(plot.x, uEnds, left, right);
    const v = plot.rows ? scale(plot.y, ends, left, right) : scale(plot.y, ends, bottom, top);
    const grid = add(svg, "g", { class: "grid" });
    for (const [value, text] of vTicks) {
      const at = px(v(value));
      if (plot.rows) add(grid, "path", { d: `M${at} ${top}V${bottom}` });
      else {
        add(grid, "path", { d: `M${left} ${at}H${right}` });
        add(svg, "text", { x: left - 6, y: at + 4, "text-anchor": "end", class: "tick" }, text);
      }
    }
    for (let n = 1; n < (plot.dividers || 0); n += 1) add(grid, "path", { d: `M${px(u(n - 0.5))} ${top}V${bottom}` });
    const xTicks = plot.rows ? vTicks : plot.x.ticks || roundTicks(...uEnds, (right - left) / 70);
    alongX(svg, xTicks, plot.rows ? v : u, top, bottom, aslant ? slot : 0);
    const [along, up] = plot.rows ? [plot.y, null] : [plot.x, plot.y];
    const term = (axis) => (axis.meaning ? { class: "title term", "data-tip": axis.meaning } : { class: "title" });
    if (along.title) {
      add(svg, "text", { x: (left + right) / 2, y: height - 6, "text-anchor": "middle", ...term(along) }, along.title);
    }
    if (up && up.title) add(svg, "text", { x: 0, y: 12, ...term(up) }, up.title);
    rows.forEach((name, n) => {
      if (!plot.rows) return;
      const y = top + each * n;
      if (above) label(svg, name, right - left, { x: left, y: y + 13, class: "row" });
      else label(svg, name, left - 10, { x: left - 8, y: y + each / 2 + 4, "text-anchor": "end", class: "row" });
    });
    const marks = add(svg, "g");
    if (plot.reading) {
      const clip = add(svg, "clipPath", { id: `${div.id}-clip` });
      add(clip, "rect", { x: left, y: 0, width: right - left, height });
      marks.setAttribute("clip-path", `url(#${clip.id})`);
    }
    const wide = [...new Set(series.filter((one) => one.draw === "bars").map((one) => one.name))];
    const [room, share] = plot.rows ? [0, 0.62] : plot.room || [0, 0.62];
    const thick = 0.5 * (room ? (share * room) / wide.length : share);
    for (const one of series) {
      const g = add(marks, "g", { class: "series", "data-name": one.name, "data-label": one.label ?? undefined,
        style: `--c:${one.colour}` });
      const row = top + each * (rows.indexOf(one.name) + 0.5) + (above ? 7 : 0);
      const rank = wide.indexOf(one.name);
      const place = room && rank >= 0 ? (rank - (wide.length - 1) / 2) * (room / wide.length) : 0;
      const at = plot.rows
        ? (n, offset, value) => [v(value), row + ((one.x ? one.x[n] : 0) + offset) * (each - (above ? 14 : 0))]
        : (n, offset, value) => [u(one.x[n] + place + offset), v(value)];
      DRAW[one.draw](g, one, at, thick);
    }
    if (plot.named) nameDots(add(svg, "g"), series, u, v, [left, top, right, bottom]);
    if (plot.reading) read(svg, plot, series, u, [left, top, right, bottom], tip);
  }

  /** The sample of a series in a legend. */
  function sample(one) {
    const svg = document.createElementNS(NS, "svg");
    for (const [key, value] of Object.entries({ width: 24, height: 12, class: "series", "aria-hidden": "true" })) {
      svg.setAttribute(key, value);
    }
    svg.setAttribute("style", `--c:${one.colour}`);
    if (one.draw === "line") add(svg, "path", { d: "M0 6H24", class: "line", "stroke-dasharray": one.dash });
    else if (one.draw !== "dots") add(svg, "rect", { x: 3, y: 0, width: 18, height: 12, class: "bar" });
    if (one.marker) add(svg, "path", { d: one.marker, class: "dot", transform: "translate(12 6) scale(4.5)" });
    if (one.hatch) add(svg, "path", { d: one.hatch, class: "hatch", transform: "translate(8.5 2.5)" });
    return svg;
  }

  return { draw, sample };
})();
