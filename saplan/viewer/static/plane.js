// The plane of mining: the set S, what the agent has learnt of it, where it started, is, and wants to go.

import { html, svg } from "./drawing.js";

const RAMP = ["#440154", "#46327e", "#365c8d", "#277f8e", "#1fa187", "#4ac16d", "#a0da39", "#fde725"];
const FOLLOW = "";
const GRAIN = 0.1;

export class PlaneView {
  constructor(card, root, canvas, lines, layer, ramp, wish) {
    Object.assign(this, { card, root, canvas, lines, layer, wish, plane: null });
    ramp.style.background = `linear-gradient(90deg, ${RAMP.join(", ")})`;
    layer.addEventListener("change", () => this.heat());
    root.addEventListener("pointerdown", (event) => this.grab(event));
    root.addEventListener("pointermove", (event) => this.drag(event));
    root.addEventListener("pointerup", () => this.release());
  }

  hide() {
    this.plane = null;
    this.card.hidden = true;
  }

  begin(plane, rho) {
    this.plane = plane;
    this.card.hidden = false;
    this.layer.closest(".legend").hidden = plane.layers === null;
    this.fillChoices();
    const [width, height] = plane.size;
    this.root.style.aspectRatio = `${width + 1} / ${height + 1}`;
    this.lines.setAttribute("viewBox", `-0.7 ${-height - 0.3} ${width + 1} ${height + 1}`);
    this.outline();
    this.next = plane.names[0];
    this.trail = [rho];
    this.goal = null;
    this.ahead = [];
    this.heat();
    this.draw();
  }

  fillChoices() {
    const chosen = this.layer.value;
    const follow = html("option", { value: FOLLOW }, "the next transition");
    this.layer.replaceChildren(follow, ...this.plane.names.map((name) => html("option", { value: name }, name)));
    this.layer.value = this.plane.names.includes(chosen) ? chosen : FOLLOW;
  }

  // The still parts: the border of S, and the axes.
  outline() {
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
    this.moving = svg("g");
    this.lines.replaceChildren(clip, border, axes, ticks, this.moving);
    this.dot = null;
  }

  // The learnt probability, one pixel a place; the browser smooths it.
  heat() {
    const { columns, rows, layers, names, size: [width, height] } = this.plane;
    this.canvas.hidden = layers === null;
    if (layers === null) return;
    const name = this.layer.value || this.next;
    const bytes = Uint8Array.from(atob(layers[Math.max(0, names.indexOf(name))]), (c) => c.charCodeAt(0));
    const image = new ImageData(columns, rows);
    for (let row = 0; row < rows; row += 1) {
      for (let column = 0; column < columns; column += 1) {
        const byte = bytes[(rows - 1 - row) * columns + column];
        if (byte) image.data.set([...tint((byte - 1) / 254), 255], 4 * (row * columns + column));
      }
    }
    [this.canvas.width, this.canvas.height] = [columns, rows];
    this.canvas.getContext("2d").putImageData(image, 0, 0);
    this.canvas.title = `learnt probability of: ${name}`;
    const [across, down] = [width + 1, height + 1];
    Object.assign(this.canvas.style, {
      left: `${(100 * 0.7) / across}%`, top: `${(100 * 0.3) / down}%`,
      width: `${(100 * width) / across}%`, height: `${(100 * height) / down}%`,
    });
  }

  open(task) {
    if (!this.plane) return;
    this.trail = task.trail;
    this.aim(task.goal.low, task.goal.high);
    this.think(task.decision);
    this.draw();
  }

  show(moment) {
    if (!this.plane) return;
    const last = this.trail.at(-1);
    if (moment.rho.some((value, k) => value !== last[k])) this.trail.push(moment.rho);
    if (moment.decision) this.think(moment.decision);
    this.draw();
  }

  think(decision) {
    this.ahead = decision?.path.map((leg) => leg.rho) ?? [];
    const next = decision?.options.find((option) => option.chosen)?.name;
    if (next && next !== this.next) {
      this.next = next;
      if (!this.layer.value) this.heat();
    }
  }

  aim(low, high) {
    this.goal = [0, 1].some((k) => low[k] !== null || high[k] !== null) ? { low, high } : null;
    if (this.plane) this.draw();
  }

  draw() {
    const here = this.trail.at(-1);
    const parts = [];
    if (this.goal) parts.push(this.goalBox());
    parts.push(line("planned", [here, ...this.ahead]), line("walked", this.trail));
    for (const place of this.trail.slice(1, -1)) parts.push(svg("circle", { class: "passed", cx: place[0], cy: -place[1], r: 0.08 }));
    parts.push(svg("circle", { class: "start", cx: this.trail[0][0], cy: -this.trail[0][1], r: 0.16 }));
    this.moving.replaceChildren(...parts);
    this.dot ??= this.lines.appendChild(svg("circle", { class: "here", r: 0.22 }));
    this.dot.style.transform = `translate(${here[0]}px, ${-here[1]}px)`;
  }

  goalBox() {
    const { low, high } = this.goal;
    const [width, height] = this.plane.size;
    const [left, right] = [Math.max(low[0] ?? 0, 0), Math.min(high[0] ?? width, width)];
    const [bottom, top] = [Math.max(low[1] ?? 0, 0), Math.min(high[1] ?? height, height)];
    return svg("rect", { class: "goal", x: left, y: -top, width: Math.max(right - left, 0), height: Math.max(top - bottom, 0), rx: 0.12 });
  }

  place(event) {
    const box = this.root.getBoundingClientRect();
    const [width, height] = this.plane.size;
    const x = ((event.clientX - box.left) / box.width) * (width + 1) - 0.7;
    const y = height + 0.3 - ((event.clientY - box.top) / box.height) * (height + 1);
    const within = (value, most) => Math.round(Math.min(Math.max(value, 0), most) / GRAIN) * GRAIN;
    return [within(x, width), within(y, height)];
  }

  grab(event) {
    if (event.button !== 0) return;
    event.preventDefault();
    this.root.setPointerCapture(event.pointerId);
    this.pending = this.place(event);
    this.preview();
  }

  drag(event) {
    if (!this.pending) return;
    this.pending = this.place(event);
    this.preview();
  }

  preview() {
    const [x, y] = this.pending;
    this.aim([x - 0.5, y - 0.5], [x + 0.5, y + 0.5]);
  }

  release() {
    if (!this.pending) return;
    const [x, y] = this.pending.map((value) => value.toFixed(1));
    this.pending = null;
    this.wish(x, y);
  }
}

function line(kind, places) {
  return svg("polyline", { class: kind, points: places.map(([x, y]) => `${x},${-y}`).join(" ") });
}

function label(x, y, words) {
  const text = svg("text", { x, y });
  text.textContent = words;
  return text;
}

const COLOURS = RAMP.map((code) => [1, 3, 5].map((at) => Number.parseInt(code.slice(at, at + 2), 16)));

// A colour for a share from 0 to 1.
function tint(share) {
  const place = share * (COLOURS.length - 1);
  const [low, rest] = [Math.min(Math.floor(place), COLOURS.length - 2), place % 1];
  const part = place >= COLOURS.length - 1 ? 1 : rest;
  return COLOURS[low].map((value, k) => value + part * (COLOURS[low + 1][k] - value));
}
