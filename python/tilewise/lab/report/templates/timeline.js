// Timelines to move about in: drawn on a canvas in place of the still picture, from the data beside it.
"use strict";
(() => {
  const HEAD = 30, AXIS = 44, LEFT = 64, RIGHT = 12, STRIP = 0.2, MOST_LINES = 6000;
  const short = (value) => (value === 0 ? "0" : Number(value.toPrecision(3)).toString());
  const time = (s) => (s >= 1 ? short(s) + " s" : s >= 1e-3 ? short(s * 1e3) + " ms" : short(s * 1e6) + " µs");
  const size = (n) => (n >= 1e9 ? short(n / 1e9) + " GB" : n >= 1e6 ? short(n / 1e6) + " MB" : n >= 1e3 ? short(n / 1e3) + " kB" : n + " B");

  const spansOf = (flat) => {
    const count = flat.length / 4, start = new Float64Array(count), end = new Float64Array(count);
    const name = new Uint32Array(count), kind = new Uint8Array(count);
    for (let i = 0, at = 0; i < count; ++i) {
      start[i] = at += flat[4 * i];
      end[i] = at + flat[4 * i + 1];
      name[i] = flat[4 * i + 2];
      kind[i] = flat[4 * i + 3];
    }
    return { count, start, end, name, kind };
  };
  const linesOf = (flat) => {
    const found = [];
    for (let i = 0, at = 0; i < flat.length; i += 6) {
      at += flat[i + 2];
      found.push({ from: flat[i], to: flat[i + 1], start: at, end: at + flat[i + 3], bytes: flat[i + 4], tag: flat[i + 5] });
    }
    return found;
  };

  for (const place of document.querySelectorAll(".timeline")) {
    const data = JSON.parse(place.querySelector(".timeline-data").textContent);
    const runs = data.runs.map((run) => ({
      ...run,
      ranks: run.ranks.map(([label, flat]) => ({ label, ...spansOf(flat) })),
      lines: linesOf(run.lines),
    }));
    const rows = runs.reduce((sum, run) => sum + run.ranks.length, 0);
    const row = Math.max(7, Math.min(26, 620 / Math.max(rows, 1)));
    const height = HEAD * runs.length + row * rows + AXIS + 4;
    const used = new Set(runs.flatMap((run) => run.ranks.flatMap((rank) => [...new Set(rank.kind)])));
    const mpi = data.kinds.length - 1;

    const legend = document.createElement("div");
    legend.style.cssText = "display:flex;flex-wrap:wrap;gap:.2rem 1.1rem;font-size:.8rem;align-items:center;padding:0 .25rem .4rem";
    const entry = (words, style) => {
      const item = document.createElement("span"), mark = document.createElement("span");
      mark.style.cssText = "display:inline-block;width:1.1em;margin-right:.4em;vertical-align:middle;" + style;
      item.append(mark, words);
      legend.append(item);
    };
    data.kinds.forEach(([name, colour], kind) => {
      if (used.has(kind) && kind !== mpi) entry(name, `height:.8em;border-radius:.15em;background:var(--${colour})`);
    });
    entry("other", "height:.8em;border-radius:.15em;background:var(--grid)");
    if (used.has(mpi)) entry("in an MPI call", "height:.25em;background:var(--ink)");
    if (runs.some((run) => run.lines.length)) entry("message", "height:0;border-top:1.5px solid var(--muted)");
    const hint = document.createElement("span");
    hint.style.cssText = "margin-left:auto;color:var(--muted)";
    hint.textContent = "drag: enlarge · double click: all · ctrl + wheel, + −, ← →: zoom and move";
    if (innerWidth > 900 && matchMedia("(hover: hover)").matches) legend.append(hint);

    const canvas = document.createElement("canvas");
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", "Timeline: " + runs.map((run) => run.title).join(", "));
    canvas.style.cssText = `display:block;width:100%;height:${height}px;touch-action:pan-y;cursor:crosshair`;
    place.querySelector(".still").hidden = true;
    place.append(legend, canvas);
    const pen = canvas.getContext("2d");
    let low = 0, high = data.seconds, width = 0, scale = 1, queued = false, choice = null, dragged = null;

    const x = (t) => LEFT + ((t - low) / (high - low)) * (width - LEFT - RIGHT);
    const t = (px) => low + ((px - LEFT) / (width - LEFT - RIGHT)) * (high - low);
    const top = [];
    runs.reduce((at, run) => { top.push(at + HEAD); return at + HEAD + run.ranks.length * row; }, 0);
    const bar = row >= 12 ? row * 0.8 : row - 1.5;

    const view = (a, b) => {
      const span = Math.min(Math.max(b - a, 20), data.seconds);
      low = Math.max(0, Math.min((a + b - span) / 2, data.seconds - span));
      high = low + span;
      queue();
    };
    const queue = () => {
      if (!queued) requestAnimationFrame(() => { queued = false; draw(); });
      queued = true;
    };

    const axis = (ink, muted, grid) => {
      const wanted = ((high - low) * data.unit) / Math.max(2, width / 140);
      const power = 10 ** Math.floor(Math.log10(wanted));
      const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= wanted);
      const bottom = height - AXIS;
      const [scale, unit] = high * data.unit >= 1 ? [1, " s"] : high * data.unit >= 1e-3 ? [1e3, " ms"] : [1e6, " µs"];
      const digits = Math.max(0, -Math.floor(Math.log10(step * scale) + 1e-9));
      pen.textAlign = "center";
      for (let k = Math.ceil((low * data.unit) / step - 1e-9); k * step <= high * data.unit * (1 + 1e-9); ++k) {
        const at = x((k * step) / data.unit);
        pen.fillStyle = grid;
        pen.fillRect(at - 0.5, HEAD - 8, 1, bottom - HEAD + 12);
        pen.fillStyle = ink;
        pen.fillText((k * step * scale).toFixed(digits) + unit, Math.min(at, width - 22), bottom + 17);
      }
      pen.fillStyle = muted;
      pen.fillText("time", (LEFT + width - RIGHT) / 2, height - 8);
    };

    const bars = (rank, y, colours) => {
      const painted = new Float64Array(2).fill(-1), shown = [-1, -1];
      for (let i = 0; i < rank.count; ++i) {
        if (rank.start[i] > high) break;
        if (rank.end[i] < low) continue;
        const a = Math.max(LEFT, x(rank.start[i])), b = Math.min(width - RIGHT, x(rank.end[i]));
        const kind = rank.kind[i], strip = kind === mpi ? 1 : 0, pixel = Math.floor(a);
        if (b - a < 0.5 && painted[strip] === pixel && shown[strip] === kind) continue;  // nothing new to see
        if (b - a < 0.5) [painted[strip], shown[strip]] = [pixel, kind];
        pen.fillStyle = colours[kind];
        if (b - a >= 1) {  // on whole pixels, so that spans that touch have no seam
          const from = Math.floor(a * scale) / scale, to = Math.ceil(b * scale) / scale;
          pen.fillRect(from, strip ? y + bar * (1 - STRIP) : y, to - from, strip ? bar * STRIP : bar);
        } else if (strip) pen.fillRect(a, y + bar * (1 - STRIP), Math.max(b - a, 0.35), bar * STRIP);
        else pen.fillRect(a, y, Math.max(b - a, 0.5), bar);
      }
    };

    const messages = (run, first, ink) => {
      const seen = run.lines.filter((line) => line.end >= low && line.start <= high);
      const every = Math.ceil(seen.length / MOST_LINES);
      pen.strokeStyle = pen.fillStyle = ink;
      pen.lineWidth = seen.length > 300 ? 0.6 : 1;
      pen.globalAlpha = seen.length > 1500 ? 0.3 : seen.length > 300 ? 0.5 : 0.85;
      pen.beginPath();
      seen.forEach((line, i) => {
        if (i % every) return;
        pen.moveTo(x(line.start), first + line.from * row + bar / 2);
        pen.lineTo(x(line.end), first + line.to * row + bar / 2);
      });
      pen.stroke();
      if (seen.length <= 600) for (const line of seen) {
        pen.beginPath();
        pen.arc(x(line.end), first + line.to * row + bar / 2, Math.min(2.4, bar / 5), 0, 7);
        pen.fill();
      }
      pen.globalAlpha = 1;
    };

    const draw = () => {
      scale = devicePixelRatio || 1;
      const style = getComputedStyle(place);
      const colour = (name) => style.getPropertyValue("--" + name).trim();
      width = canvas.clientWidth;
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
      pen.setTransform(scale, 0, 0, scale, 0, 0);
      const face = style.fontFamily, ink = colour("ink"), muted = colour("muted"), grid = colour("grid");
      const colours = data.kinds.map(([, name]) => colour(name));
      pen.font = "12px " + face;
      axis(ink, muted, grid);
      runs.forEach((run, r) => {
        pen.textAlign = "left";
        pen.font = "600 13px " + face;
        pen.fillStyle = ink;
        pen.fillText(`${run.title}   ${time(run.seconds * data.unit)}`, LEFT, top[r] - 8, width - LEFT - RIGHT);
        pen.font = "12px " + face;
        const sparse = Math.ceil(14 / row);
        pen.textAlign = "right";
        run.ranks.forEach((rank, k) => {
          const y = top[r] + k * row;
          if (k % sparse === 0) {
            pen.fillStyle = ink;
            pen.fillText(rank.label, LEFT - 8, y + bar / 2 + 4);
          }
          pen.fillStyle = grid;
          const a = Math.max(LEFT, x(0)), b = Math.min(width - RIGHT, x(run.seconds));
          if (b > a) pen.fillRect(a, y, b - a, bar);
          bars(rank, y, colours);
        });
        pen.save();
        pen.beginPath();
        pen.rect(LEFT, 0, width - LEFT - RIGHT, height);
        pen.clip();
        messages(run, top[r], ink);
        pen.restore();
      });
      if (choice) {
        pen.globalAlpha = 0.12;
        pen.fillStyle = ink;
        pen.fillRect(Math.min(...choice), 0, Math.abs(choice[1] - choice[0]), height - AXIS);
        pen.globalAlpha = 1;
      }
    };

    // What lies under the pointer: a message's end or line, a call, else the innermost span.
    const near = (run, first, px, py) => {
      let best = null, least = 5;
      for (const line of run.lines) {
        if (line.end < low || line.start > high) continue;
        const ax = x(line.start), bx = x(line.end), ay = first + line.from * row + bar / 2, by = first + line.to * row + bar / 2;
        const long = (bx - ax) ** 2 + (by - ay) ** 2 || 1;
        const part = Math.max(0, Math.min(1, ((px - ax) * (bx - ax) + (py - ay) * (by - ay)) / long));
        const far = Math.hypot(px - ax - part * (bx - ax), py - ay - part * (by - ay));
        if (far < least) [best, least] = [line, far];
      }
      return best;
    };
    const words = (px, py) => {
      const r = runs.findIndex((run, i) => py >= top[i] && py < top[i] + run.ranks.length * row);
      if (r < 0 || px < LEFT) return "";
      const run = runs[r], k = Math.floor((py - top[r]) / row), rank = run.ranks[k];
      const line = near(run, top[r], px, py);
      if (line) {
        const kind = line.tag >= 0 ? "tag " + line.tag : "one-sided";
        return `${run.ranks[line.from].label} → ${run.ranks[line.to].label}; ${size(line.bytes)}, ${kind}; ${time((line.end - line.start) * data.unit)} on its way`;
      }
      const at = t(px), slack = (high - low) / width, low_part = py - top[r] - k * row > bar * (1 - STRIP);
      let found = -1;
      for (let i = 0; i < rank.count && rank.start[i] <= at + slack; ++i) {
        if (rank.end[i] >= at - slack && (rank.kind[i] === mpi) === low_part) found = i;
      }
      if (found < 0) return "";
      const name = run.names[rank.name[found]].replaceAll("; ", ", "), kind = rank.kind[found];
      return `${rank.label}: ${name}; ${kind === mpi ? "MPI call" : data.kinds[kind][0]}; ${time((rank.end[found] - rank.start[found]) * data.unit)}, from ${(rank.start[found] * data.unit).toPrecision(6)} s on`;
    };

    const local = (event) => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    canvas.addEventListener("pointerdown", (event) => {
      const [px] = local(event);
      if (event.pointerType === "mouse" && event.button === 0) choice = [px, px];
      else dragged = [px, low, high];
      canvas.setPointerCapture(event.pointerId);
      canvas.focus({ preventScroll: true });
    });
    canvas.addEventListener("pointermove", (event) => {
      const [px, py] = local(event), said = choice || dragged ? "" : words(px, py);
      if (said) canvas.dataset.says = said;
      else delete canvas.dataset.says;
      if (choice) {
        choice[1] = px;
        queue();
      } else if (dragged) {
        const by = ((dragged[0] - px) / (width - LEFT - RIGHT)) * (dragged[2] - dragged[1]);
        view(dragged[1] + by, dragged[2] + by);
      }
    });
    const end = (event) => {
      if (choice && event.type === "pointerup" && Math.abs(choice[1] - choice[0]) > 6) view(t(Math.min(...choice)), t(Math.max(...choice)));
      choice = dragged = null;
      queue();
    };
    canvas.addEventListener("pointerup", end);
    canvas.addEventListener("pointercancel", end);
    canvas.addEventListener("dblclick", () => view(0, data.seconds));
    canvas.addEventListener("wheel", (event) => {
      const wide = high - low;
      if (event.ctrlKey) {
        const at = t(local(event)[0]), by = Math.exp(event.deltaY * 0.004);
        view(at - (at - low) * by, at + (high - at) * by);
      } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY) && wide < data.seconds) {
        view(low + (event.deltaX / width) * wide, high + (event.deltaX / width) * wide);
      } else return;
      event.preventDefault();
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => {
      const wide = high - low, moves = { "+": [0.25, -0.25], "-": [-0.5, 0.5], ArrowLeft: [-0.2, -0.2], ArrowRight: [0.2, 0.2] };
      const move = moves[event.key];
      if (event.key === "0" || event.key === "Home") view(0, data.seconds);
      else if (move) view(low + move[0] * wide, high + move[1] * wide);
      else return;
      event.preventDefault();
    });
    draw();
    new ResizeObserver(queue).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", queue);
    addEventListener("beforeprint", () => { place.querySelector(".still").hidden = false; canvas.hidden = legend.hidden = true; });
    addEventListener("afterprint", () => { place.querySelector(".still").hidden = true; canvas.hidden = legend.hidden = false; });
  }
})();
