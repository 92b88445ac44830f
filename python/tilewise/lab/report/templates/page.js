// What a report does beyond showing: figures say their values and can be enlarged, tables can be sorted.
"use strict";
(() => {
  document.documentElement.classList.add("scripted");
  const tip = document.createElement("div");
  tip.id = "tip";
  tip.hidden = true;
  document.body.append(tip);

  const say = (words, event) => {
    const [first, ...rest] = words.split("; ");
    const head = document.createElement("b");
    head.textContent = first;
    tip.replaceChildren(head, ...rest.map((part) => {
      const line = document.createElement("div");
      line.textContent = part;
      return line;
    }));
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const left = Math.min(event.clientX + 14, innerWidth - box.width - 8);
    const above = event.clientY - box.height - 12;
    tip.style.left = Math.max(4, left) + "px";
    tip.style.top = (above > 4 ? above : event.clientY + 18) + "px";
  };
  for (const title of document.querySelectorAll(".spots title")) {
    title.parentNode.dataset.says = title.textContent;
    title.parentNode.setAttribute("aria-label", title.textContent);
    title.remove();
  }
  for (const cell of document.querySelectorAll("td[title]")) {
    cell.dataset.says = cell.title;
    cell.removeAttribute("title");
  }
  const over = (event) => {
    const spot = event.target.closest ? event.target.closest("[data-says]") : null;
    if (spot) say(spot.dataset.says, event);
    else tip.hidden = true;
  };
  document.addEventListener("pointermove", over);
  document.addEventListener("pointerdown", over);
  document.addEventListener("scroll", () => { tip.hidden = true; }, true);

  // A rectangle drawn with the mouse fills the figure; a double click shows all of it again.
  for (const plot of document.querySelectorAll("svg.plot")) {
    const whole = plot.getAttribute("viewBox");
    let start = null, frame = null;
    const place = (event) => {
      const found = new DOMPoint(event.clientX, event.clientY).matrixTransform(plot.getScreenCTM().inverse());
      return [found.x, found.y];
    };
    const box = (a, b) => [Math.min(a[0], b[0]), Math.min(a[1], b[1]), Math.abs(a[0] - b[0]), Math.abs(a[1] - b[1])];
    plot.addEventListener("pointerdown", (event) => {
      if (event.pointerType !== "mouse" || event.button !== 0) return;
      start = place(event);
      frame = document.createElementNS("http" + "://www.w3.org/2000/svg", "rect");
      frame.setAttribute("class", "frame");
      frame.setAttribute("fill", "currentColor");
      frame.setAttribute("fill-opacity", ".1");
      frame.setAttribute("pointer-events", "none");
      plot.append(frame);
      plot.setPointerCapture(event.pointerId);
      event.preventDefault();
    });
    plot.addEventListener("pointermove", (event) => {
      if (!start) return;
      box(start, place(event)).forEach((value, at) => frame.setAttribute(["x", "y", "width", "height"][at], value));
    });
    const end = (event) => {
      if (!start) return;
      const found = box(start, place(event));
      if (event.type === "pointerup" && found[2] > 15 && found[3] > 15) plot.setAttribute("viewBox", found.join(" "));
      frame.remove();
      start = frame = null;
    };
    plot.addEventListener("pointerup", end);
    plot.addEventListener("pointercancel", end);
    plot.addEventListener("dblclick", () => plot.setAttribute("viewBox", whole));
  }

  for (const head of document.querySelectorAll("table.sortable thead th")) {
    head.classList.add("sorts");
    head.tabIndex = 0;
    const sort = () => {
      const body = head.closest("table").tBodies[0], at = head.cellIndex;
      const up = head.getAttribute("aria-sort") !== "ascending";
      const value = (row) => {
        const cell = row.cells[at];
        return cell.dataset.v === undefined ? NaN : Number(cell.dataset.v);
      };
      const order = (a, b) => {
        const [x, y] = [value(a), value(b)];
        if (!isNaN(x) && !isNaN(y)) return x - y;
        if (isNaN(x) !== isNaN(y)) return isNaN(x) ? 1 : -1;
        return a.cells[at].textContent.localeCompare(b.cells[at].textContent, undefined, { numeric: true });
      };
      const rows = [...body.rows].sort((a, b) => (up ? order(a, b) : order(b, a)));
      for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      body.append(...rows);
    };
    head.addEventListener("click", sort);
    head.addEventListener("keydown", (event) => { if (event.key === "Enter") sort(); });
  }
  // A table that is wider than its place says so: phones show no bar to scroll it with.
  const measure = () => {
    for (const one of document.querySelectorAll(".scroll")) one.classList.toggle("wider", one.scrollWidth > one.clientWidth + 1);
  };
  measure();
  addEventListener("resize", measure);
  document.addEventListener("toggle", measure, true);
  addEventListener("beforeprint", () => {
    for (const fold of document.querySelectorAll("details:not(.part)")) fold.open = true;
  });
})();
