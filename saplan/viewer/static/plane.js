// The plane of mining: the set S, the learnt probabilities on it, and the path from the start towards the goal.

import { html, svg } from "./drawing.js";

const RAMP = ["#440154", "#46327e", "#365c8d", "#277f8e", "#1fa187", "#4ac16d", "#a0da39", "#fde725"];
const FOLLOW = ""; // value of the choice that follows the next transition
const INCREMENT = 0.1; // of a goal set by pointer

export class PlaneView {
  constructor(card, root, canvas, lines, layer, ramp, onGoal) {
    Object.assign(this, { card, root, canvas, lines, layer, onGoal, plane: null });
    ramp.style.background = `linear-gradient(90deg, ${RAMP.join(", ")})`;
    layer.addEventListener("change", () => this.drawHeatmap());
    root.addEventListener("pointerdown", (event) => this.grab(event));
    root.addEventListener("pointermove", (event) => this.drag(event));
    root.addEventListener("pointerup", () => this.release());
  }

  hide() {
    this.plane = null;
    this.card.hidden = true;
  }

  // Draw the plane of a new map.
  reset(plane, rho) {
    this.plane = plane;
    this.card.hidden = false;
    this.layer.closest(".legend").hidden = plane.layers === null;
    this.listLayers();
    const [width, height] = plane.size;
    this.root.style.aspectRatio = `${width + 1} / ${height + 1}`;
    this.lines.setAttribute("viewBox", `-0.7 ${-height - 0.3} ${width + 1} ${height + 1}`);
    this.drawBorder();
    this.next = null;
    this.history = [rho];
    this.goal = null;
    this.ahead = [];
    this.drawHeatmap();
    this.draw();
  }

  listLayers() {
    const chosen = this.layer.value;
    this.follow = html("option", { value: FOLLOW });
    this.layer.replaceChildren(this.follow, ...this.plane.names.map((name) => html("option", { value: name }, name)));
    this.layer.value = this.plane.names.includes(chosen) ? chosen : FOLLOW;
  }

  // Draw the static parts: the border of S and the axes.
  drawBorder() {
    const { size: [width, height], centre: [cx, cy], inner, outer } = this.plane;
    const clip = svg("clipPath", { id: "quadrant" });
    clip.append(svg("rect", { x: 0, y: -height, width, height }));
    const circles = [outer, inner].map((r) => svg("circle", { cx, cy: -cy, r }));
    this.lines.classList.toggle("plain", this.plane.layers === null);
    const border = svg("g", { class: "border", "clip-path": "url(#quadrant)" });
    border.append(...circles);
    const axes = svg("path", { class: "axes", d: `M0 ${-height}V0H${width}` });
    const ticks = svg("g", { class: "ticks" });
    for (let k = 0; k < width - 1; k += 2) ticks.append(label(k, 0.42, k));
    for (let k = 2; k <= height; k += 2) ticks.append(label(-0.3, -k + 0.14, k));
    ticks.append(label(width + 0.05, 0.42, "m1"), label(0.45, -height + 0.1, "m2"));
    this.dynamic = svg("g");
    this.lines.replaceChildren(clip, border, axes, ticks, this.dynamic);
    this.dot = null;
  }

  // Draw the learnt probability with one pixel per place; the browser interpolates.
  drawHeatmap() {
    const { columns, rows, layers, names, size: [width, height] } = this.plane;
    const name = this.layer.value || this.next || names[0];
    this.follow.textContent = this.next ? `the next transition (${this.next})` : `${names[0]} (no plan yet)`;
    this.canvas.hidden = layers === null || !names.includes(name);
    if (this.canvas.hidden) return;
    const bytes = Uint8Array.from(atob(layers[names.indexOf(name)]), (c) => c.charCodeAt(0));
    const image = new ImageData(columns, rows);
    for (let row = 0; row < rows; row += 1) {
      for (let column = 0; column < columns; column += 1) {
        const byte = bytes[(rows - 1 - row) * columns + column];
        if (byte) image.data.set([...colourAt((byte - 1) / 254), 255], 4 * (row * columns + column));
      }
    }
    [this.canvas.width, this.canvas.height] = [columns, rows];
    this.canvas.getContext("2d").putImageData(image, 0, 0);
    this.canvas.title = `learnt probability that “${name}” succeeds`;
    const [across, down] = [width + 1, height + 1];
    Object.assign(this.canvas.style, {
      left: `${(100 * 0.7) / across}%`, top: `${(100 * 0.3) / down}%`,
      width: `${(100 * width) / across}%`, height: `${(100 * height) / down}%`,
    });
  }

  open(task, continues) {
    if (!this.plane) return;
    this.history = continues ? [...this.history, ...task.history.slice(1)] : task.history;
    this.setGoal(task.goal.low, task.goal.high);
    this.setPlan(task.decision);
    this.draw();
  }

  show(moment) {
    if (!this.plane) return;
    const last = this.history.at(-1);
    if (moment.rho.some((value, k) => value !== last[k])) this.history.push(moment.rho);
    if (moment.decision) this.setPlan(moment.decision);
    this.draw();
  }

  setPlan(decision) {
    this.ahead = decision?.path.map((planned) => planned.rho) ?? [];
    const next = decision?.options.find((option) => option.chosen)?.name;
    if (next && next !== this.next) {
      this.next = next;
      this.drawHeatmap();
    }
  }

  setGoal(low, high) {
    this.goal = [0, 1].some((k) => low[k] !== null || high[k] !== null) ? { low, high } : null;
    if (this.plane) this.draw();
  }

  draw() {
    const position = this.history.at(-1);
    const parts = [];
    if (this.goal) parts.push(this.goalBox());
    parts.push(line("planned", [position, ...this.ahead]), line("history", this.history));
    for (const [x, y] of this.history.slice(1, -1)) parts.push(svg("circle", { class: "visited", cx: x, cy: -y, r: 0.08 }));
    parts.push(svg("circle", { class: "start", cx: this.history[0][0], cy: -this.history[0][1], r: 0.16 }));
    this.dynamic.replaceChildren(...parts);
    this.dot ??= this.lines.appendChild(svg("circle", { class: "position", r: 0.22 }));
    this.dot.style.transform = `translate(${position[0]}px, ${-position[1]}px)`;
  }

  goalBox() {
    const { low, high } = this.goal;
    const [width, height] = this.plane.size;
    const [left, right] = [Math.max(low[0] ?? 0, 0), Math.min(high[0] ?? width, width)];
    const [bottom, top] = [Math.max(low[1] ?? 0, 0), Math.min(high[1] ?? height, height)];
    return svg("rect", { class: "goal", x: left, y: -top, width: Math.max(right - left, 0), height: Math.max(top - bottom, 0), rx: 0.12 });
  }

  // Amounts at a pointer.
  amountsAt(event) {
    const box = this.root.getBoundingClientRect();
    const [width, height] = this.plane.size;
    const x = ((event.clientX - box.left) / box.width) * (width + 1) - 0.7;
    const y = height + 0.3 - ((event.clientY - box.top) / box.height) * (height + 1);
    const rounded = (value, most) => Math.round(Math.min(Math.max(value, 0), most) / INCREMENT) * INCREMENT;
    return [rounded(x, width), rounded(y, height)];
  }

  grab(event) {
    if (event.button !== 0) return;
    event.preventDefault();
    this.root.setPointerCapture(event.pointerId);
    this.pending = this.amountsAt(event);
    this.preview();
  }

  drag(event) {
    if (!this.pending) return;
    this.pending = this.amountsAt(event);
    this.preview();
  }

  preview() {
    const [x, y] = this.pending;
    this.setGoal([x - 0.5, y - 0.5], [x + 0.5, y + 0.5]);
  }

  release() {
    if (!this.pending) return;
    const [x, y] = this.pending.map((value) => value.toFixed(1));
    this.pending = null;
    this.onGoal(x, y);
  }
}

function line(name, points) {
  return svg("polyline", { class: name, points: points.map(([x, y]) => `${x},${-y}`).join(" ") });
}

function label(x, y, words) {
  const text = svg("text", { x, y });
  text.textContent = words;
  return text;
}

const COLOURS = RAMP.map((code) => [1, 3, 5].map((at) => Number.parseInt(code.slice(at, at + 2), 16)));

// Colour of a probability.
function colourAt(p) {
  const place = p * (COLOURS.length - 1);
  const low = Math.min(Math.floor(place), COLOURS.length - 2);
  return COLOURS[low].map((value, k) => value + (place - low) * (COLOURS[low + 1][k] - value));
}
