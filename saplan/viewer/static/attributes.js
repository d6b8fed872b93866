// The attributes, each drawn according to its algebra: the present value, the goal, and a control that sets the goal.

import { html, number, svg } from "./drawing.js";

const MOST_BEADS = 14;
const FEWEST_BEADS = 4;
const MOST_STOPS = 24; // a dial with more positions has no stops drawn
const MEANINGS = {
  count: "a count, from 0 up", dial: "positions in a cycle: after the last comes the first", ring: "an angle or a phase",
  real: "an amount with decimals", whole: "a whole number", label: "one of several names", tile: "a piece that can be turned and mirrored",
};
const CONDITION = /^([\w-]+?)(>=|<=|≥|≤|=)(.+)$/;

// The conditions of a goal by attribute, such as red → ["red=2"].
export function conditions(text) {
  const tight = text.replace(/\s*(>=|<=|≥|≤|=|±|\+-)\s*/g, "$1").replaceAll(",", " ");
  const found = new Map();
  for (const word of tight.split(/\s+/).filter(Boolean)) {
    const name = CONDITION.exec(word)?.[1] ?? word;
    found.set(name, [...(found.get(name) ?? []), word]);
  }
  return found;
}

// The goal with the conditions on one attribute replaced by a value; null removes them.
export function withValue(text, name, value) {
  const found = conditions(text);
  if (value === null) found.delete(name);
  else found.set(name, [`${name}=${value}`]);
  return [...found.values()].flat().join(" ");
}

// Bounds of a goal on one attribute, for goals that the server has not read yet or has refused. Only "=" is understood.
export function boundsOf(text, attribute) {
  const words = conditions(text).get(attribute.name) ?? [];
  const exact = words.map((word) => CONDITION.exec(word)).find((match) => match?.[2] === "=");
  if (!exact) return [null, null];
  const value = attribute.labels?.includes(exact[3]) ? attribute.labels.indexOf(exact[3]) : Number.parseFloat(exact[3]);
  return Number.isFinite(value) ? [value - attribute.tolerance, value + attribute.tolerance] : [null, null];
}

export class AttributesView {
  constructor(root, onGoal) {
    this.root = root;
    this.onGoal = onGoal;
    this.rows = [];
  }

  // Draw the attributes of a new map. The control that had the focus keeps it, so that keys go on to change its goal.
  reset(attributes, rho) {
    const focused = document.activeElement?.closest(".row")?.dataset.name;
    this.rows = attributes.map((attribute, k) => new ROWS[attribute.kind](attribute, rho[k], this.onGoal));
    this.root.replaceChildren(...this.rows.map((row) => row.element));
    this.rows.find(({ attribute }) => attribute.name === focused)?.control.focus({ preventScroll: true });
  }

  // Set the least and the greatest value that arithmetic allows each attribute. The server sends them after the map.
  setSpans(spans) {
    this.rows.forEach((row, k) => row.setSpan(spans[k]));
  }

  show(rho) {
    this.rows.forEach((row, k) => row.show(rho[k]));
  }

  setGoal(low, high) {
    this.rows.forEach((row, k) => row.setGoal(low[k], high[k]));
  }
}

// The common part of all rows: a name, a control for pointer and keys, and the value and the goal as text.
class Row {
  constructor(attribute, value, onGoal) {
    Object.assign(this, { attribute, onGoal, value, low: null, high: null, pending: undefined });
    this.words = html("span", { class: "value" });
    this.control = this.build();
    this.control.classList.add("control", `kind-${attribute.colour}`);
    this.control.setAttribute("tabindex", "0");
    this.control.setAttribute("role", "slider");
    this.control.setAttribute("aria-label", `goal for ${attribute.name}`);
    const kind = html("small", { title: `${attribute.symbol}: ${MEANINGS[attribute.kind]}` }, this.kindWords());
    const name = html("span", { class: "name" }, html("span", { title: attribute.name }, attribute.name), kind);
    this.element = html("div", { class: "row", "data-name": attribute.name, "data-kind": attribute.kind }, name, this.control, this.words);
    this.listen();
    this.refresh();
  }

  // The kind of attribute in a word or two.
  kindWords() {
    const { kind, positions } = this.attribute;
    return { count: "count", dial: `cycle of ${positions}`, ring: "angle", real: "amount", whole: "integer", label: "label", tile: "piece" }[kind];
  }

  listen() {
    this.control.addEventListener("pointerdown", (event) => this.grab(event));
    this.control.addEventListener("pointermove", (event) => this.drag(event));
    this.control.addEventListener("pointerup", () => this.release());
    this.control.addEventListener("pointercancel", () => this.cancel());
    this.control.addEventListener("keydown", (event) => this.onKey(event));
  }

  get goal() {
    if (this.low === null && this.high === null) return null;
    if (this.low === null || this.high === null) return this.low ?? this.high;
    return (this.low + this.high) / 2;
  }

  grab(event) {
    if (event.button !== 0) return;
    const value = this.valueAt(event);
    if (value === null) return;
    event.preventDefault();
    this.control.focus();
    this.control.setPointerCapture(event.pointerId);
    // A click on the present goal clears it; a drag moves it.
    this.clears = this.isGoal(value);
    this.pending = value;
    this.preview(value);
  }

  drag(event) {
    if (this.pending === undefined) return;
    const value = this.valueAt(event);
    if (value === null || value === this.pending) return;
    this.pending = value;
    this.clears = false;
    this.preview(value);
  }

  release() {
    if (this.pending === undefined) return;
    const value = this.clears ? null : this.pending;
    this.pending = undefined;
    this.send(value);
  }

  cancel() {
    this.pending = undefined;
    this.refresh();
  }

  // Whether the goal is exactly this value.
  isGoal(value) {
    return this.low !== null && this.high !== null && Math.abs(this.goal - value) < this.increment / 2
      && this.high - this.low < 2 * this.attribute.tolerance + this.increment;
  }

  preview(value) {
    this.setGoal(value - this.attribute.tolerance, value + this.attribute.tolerance);
  }

  send(value) {
    this.onGoal(this.attribute.name, value === null ? null : this.format(value));
  }

  onKey(event) {
    const moves = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 };
    if (event.key in moves) this.send(this.shifted(moves[event.key]));
    else if (event.key === "Backspace" || event.key === "Delete") this.send(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  shifted(by) {
    const [least, most] = this.limits;
    return Math.min(Math.max((this.goal ?? this.value) + by * this.increment, least), most);
  }

  show(value) {
    if (value !== this.value) this.blink();
    this.value = value;
    this.refresh();
  }

  setSpan() {}

  blink() {
    this.element.classList.remove("changed");
    requestAnimationFrame(() => this.element.classList.add("changed"));
  }

  setGoal(low, high) {
    this.low = low;
    this.high = high;
    this.refresh();
  }

  get met() {
    return (this.low ?? -Infinity) <= this.value && this.value <= (this.high ?? Infinity);
  }

  refresh() {
    const asked = this.goal !== null;
    this.element.classList.toggle("asked", asked);
    this.element.classList.toggle("met", asked && this.met);
    const [now, goal] = [this.format(this.value), asked ? this.goalWords() : ""];
    this.words.replaceChildren(html("b", {}, now), asked ? ` → ${goal}` : "");
    const [least, most] = this.limits;
    this.control.setAttribute("aria-valuemin", least);
    this.control.setAttribute("aria-valuemax", most);
    this.control.setAttribute("aria-valuenow", this.goal ?? this.value);
    this.control.setAttribute("aria-valuetext", `now ${now}, ${asked ? `goal ${goal}` : "no goal"}`);
    this.draw();
  }

  goalWords() {
    const { low, high } = this;
    if (low === null) return `≤ ${this.format(high)}`;
    if (high === null) return `≥ ${this.format(low)}`;
    if (high - low > 2 * this.attribute.tolerance + this.increment / 2) return `${this.format(low)} to ${this.format(high)}`;
    return this.format((low + high) / 2) + (this.attribute.tolerance ? ` ± ${number(this.attribute.tolerance)}` : "");
  }

  format(value) {
    return number(value);
  }
}

// ℕ: beads. Beads that arithmetic puts out of reach are dashed.
class Count extends Row {
  get increment() {
    return 1;
  }

  get limits() {
    return [0, Math.max(this.beadCount, this.value)];
  }

  build() {
    this.most = Infinity;
    const root = html("div", { class: "beads" });
    this.fillBeads(root, Math.max(this.value, FEWEST_BEADS));
    return root;
  }

  // Create a mark for zero and this many beads.
  fillBeads(root, count) {
    this.beadCount = Math.min(count, MOST_BEADS);
    this.beads = Array.from({ length: this.beadCount + 1 }, (_, k) =>
      html("i", { class: k ? "bead" : "bead zero", "data-value": k, title: `${this.attribute.name}=${k}` }),
    );
    root.style.setProperty("--beads", Math.max(this.beadCount, 1));
    root.replaceChildren(...this.beads);
  }

  setSpan([, most]) {
    this.most = most ?? Infinity;
    this.fillBeads(this.control, Math.max((most ?? this.value + 2) + 1, this.value, FEWEST_BEADS));
    this.refresh();
  }

  valueAt(event) {
    const bead = document.elementFromPoint(event.clientX, event.clientY)?.closest("[data-value]");
    if (bead && this.control.contains(bead)) return Number(bead.dataset.value);
    return this.pending ?? null;
  }

  draw() {
    this.beads.forEach((bead, k) => {
      bead.classList.toggle("filled", k > 0 && k <= this.value);
      bead.classList.toggle("unreachable", k > this.most);
      bead.classList.toggle("goal", this.goal !== null && (this.low ?? 0) <= k && k <= (this.high ?? Infinity));
    });
  }
}

// ℤ/q: a dial.
class Dial extends Row {
  get increment() {
    return 1;
  }

  get limits() {
    return [0, this.attribute.positions - 1];
  }

  build() {
    const q = this.attribute.positions;
    this.dial = svg("svg", { viewBox: "-1.3 -1.3 2.6 2.6", class: "dial-face" });
    this.dial.append(svg("circle", { class: "dial-rim", r: 1 }));
    this.stops = Array.from({ length: q <= MOST_STOPS ? q : 0 }, (_, k) => {
      const [x, y] = this.point(k, 0.72);
      const colour = this.attribute.colours?.[k] ?? "grey";
      return svg("circle", { class: `stop kind-${colour}`, cx: x, cy: y, r: 0.2 });
    });
    this.needle = svg("g", { class: "needle" });
    this.needle.append(svg("path", { d: "M-0.1 0L0 -0.5L0.1 0Z" }), svg("circle", { r: 0.14 }));
    this.ring = svg("circle", { class: "goal-ring", r: 0.3 });
    this.dial.append(...this.stops, this.needle, this.ring);
    this.unwrapped = 0; // position of the needle, counted without wrapping at q
    return html("div", { class: "dial" }, this.dial);
  }

  point(position, radius) {
    const angle = (2 * Math.PI * position) / this.attribute.positions - Math.PI / 2;
    return [radius * Math.cos(angle), radius * Math.sin(angle)];
  }

  valueAt(event) {
    const box = this.dial.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left - box.width / 2, event.clientY - box.top - box.height / 2];
    const q = this.attribute.positions;
    return (Math.round(((Math.atan2(y, x) + Math.PI / 2) / (2 * Math.PI)) * q) + q) % q;
  }

  shifted(by) {
    const q = this.attribute.positions;
    return ((((this.goal ?? this.value) + by) % q) + q) % q;
  }

  draw() {
    const q = this.attribute.positions;
    // The needle only turns forwards, as a switch does.
    this.unwrapped += (((this.value - this.unwrapped) % q) + q) % q;
    this.needle.style.transform = `rotate(${(360 * this.unwrapped) / q}deg)`;
    const [x, y] = this.point(this.goal ?? 0, 0.72);
    this.ring.setAttribute("cx", x);
    this.ring.setAttribute("cy", y);
    this.ring.classList.toggle("hidden", this.goal === null);
  }
}

// S¹: a ring with a hand. An arc shows the values that meet the goal; it may go round through zero.
class Ring extends Row {
  get increment() {
    return this.attribute.tolerance / 3;
  }

  get limits() {
    return [0, this.attribute.period];
  }

  wrapped(value) {
    const { period } = this.attribute;
    return ((value % period) + period) % period;
  }

  setGoal(low, high) {
    super.setGoal(low === null ? null : this.wrapped(low), high === null ? null : this.wrapped(high));
  }

  get width() {
    return this.low === null || this.high === null ? this.attribute.period : this.wrapped(this.high - this.low);
  }

  get goal() {
    return this.low === null || this.high === null ? null : this.wrapped(this.low + this.width / 2);
  }

  get met() {
    return this.low === null || this.wrapped(this.value - this.low) <= this.width;
  }

  isGoal(value) {
    const apart = this.goal === null ? Infinity : this.wrapped(value - this.goal);
    return Math.min(apart, this.attribute.period - apart) < this.increment / 2 && this.width < 2 * this.attribute.tolerance + this.increment;
  }

  shifted(by) {
    return this.wrapped((this.goal ?? this.value) + by * this.increment);
  }

  goalWords() {
    return `${this.format(this.goal)} ± ${number(this.width / 2)}`;
  }

  format(value) {
    return number((Math.round(value * 100) / 100) % this.attribute.period);
  }

  build() {
    this.dial = svg("svg", { viewBox: "-1.3 -1.3 2.6 2.6", class: "dial-face" });
    this.arc = svg("path", { class: "goal-arc" });
    this.needle = svg("g", { class: "needle" });
    this.needle.append(svg("path", { d: "M-0.1 0L0 -0.8L0.1 0Z" }), svg("circle", { r: 0.14 }));
    this.dial.append(svg("circle", { class: "dial-rim", r: 1 }), this.arc, this.needle);
    this.unwrapped = 0; // angle of the hand, counted without wrapping, so that it takes the shortest way round
    return html("div", { class: "dial" }, this.dial);
  }

  point(value) {
    const angle = (2 * Math.PI * value) / this.attribute.period - Math.PI / 2;
    return `${Math.cos(angle)} ${Math.sin(angle)}`;
  }

  valueAt(event) {
    const box = this.dial.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left - box.width / 2, event.clientY - box.top - box.height / 2];
    const value = ((Math.atan2(y, x) + Math.PI / 2) / (2 * Math.PI)) * this.attribute.period;
    return this.wrapped(Math.round(value / this.increment) * this.increment);
  }

  draw() {
    const { period } = this.attribute;
    const turn = this.wrapped(this.value - this.unwrapped);
    this.unwrapped += turn > period / 2 ? turn - period : turn;
    this.needle.style.transform = `rotate(${(360 * this.unwrapped) / period}deg)`;
    this.arc.classList.toggle("hidden", this.goal === null);
    if (this.goal === null) return;
    const large = this.width > period / 2 ? 1 : 0;
    this.arc.setAttribute("d", `M${this.point(this.low)}A1 1 0 ${large} 1 ${this.point(this.low + this.width)}`);
  }
}

// ℝ and ℤ: a slider. The band shows the values that meet the goal.
class Slider extends Row {
  get increment() {
    return this.attribute.tolerance ? this.attribute.tolerance / 5 : 1;
  }

  get limits() {
    const [least, most] = this.attribute.range ?? [null, null];
    return [least ?? Math.min(-8, this.value - 4), most ?? Math.max(8, this.value + 4)];
  }

  build() {
    this.band = html("i", { class: "band" });
    this.now = html("i", { class: "now" });
    this.target = html("i", { class: "target" });
    return html("div", { class: "track" }, this.band, this.target, this.now);
  }

  valueAt(event) {
    const box = this.control.getBoundingClientRect();
    const fraction = Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1);
    const [least, most] = this.limits;
    return Math.round((least + fraction * (most - least)) / this.increment) * this.increment;
  }

  fraction(value) {
    const [least, most] = this.limits;
    return Math.min(Math.max((value - least) / (most - least), 0), 1);
  }

  draw() {
    const [least, most] = this.limits;
    const [left, right] = [this.fraction(this.low ?? least), this.fraction(this.high ?? most)];
    const hidden = this.goal === null;
    this.band.classList.toggle("hidden", hidden);
    this.target.classList.toggle("hidden", hidden);
    this.now.style.left = `${100 * this.fraction(this.value)}%`;
    this.band.style.left = `${100 * left}%`;
    this.band.style.width = `${100 * (right - left)}%`;
    this.target.style.left = `${100 * this.fraction(this.goal ?? least)}%`;
  }
}

// Labels: one chip each.
class Label extends Row {
  get increment() {
    return 1;
  }

  get limits() {
    return [0, this.attribute.labels.length - 1];
  }

  build() {
    this.chips = this.attribute.labels.map((label, k) => html("i", { class: "chip", "data-value": k }, label));
    return html("div", { class: "chips" }, ...this.chips);
  }

  valueAt(event) {
    const chip = document.elementFromPoint(event.clientX, event.clientY)?.closest("[data-value]");
    return chip && this.control.contains(chip) ? Number(chip.dataset.value) : (this.pending ?? null);
  }

  draw() {
    this.chips.forEach((chip, k) => {
      chip.classList.toggle("filled", k === this.value);
      chip.classList.toggle("goal", this.goal === k);
    });
  }

  format(value) {
    return this.attribute.labels[Math.round(value)] ?? "nowhere";
  }
}

// D_n: a tile that turns and flips, and a chip for each of its orientations.
class Tile extends Label {
  build() {
    this.tile = this.picture();
    const now = svg("svg", { viewBox: "-1.2 -1.2 2.4 2.4", class: "tile-now" });
    now.append(this.tile);
    this.turns = 0; // turns of the tile, counted without wrapping, so that it turns the shortest way
    this.chips = this.attribute.labels.map((label, k) => {
      const icon = svg("svg", { viewBox: "-1.2 -1.2 2.4 2.4", class: "tile-icon" });
      const picture = this.picture();
      picture.style.transform = this.transform(k % this.attribute.corners, k >= this.attribute.corners);
      icon.append(picture);
      return html("i", { class: "chip", "data-value": k, title: label }, icon);
    });
    return html("div", { class: "chips" }, now, ...this.chips);
  }

  // A polygon with a flag in it, which looks different in every orientation.
  picture() {
    const n = Math.max(this.attribute.corners, 3);
    const corners = Array.from({ length: n }, (_, k) => {
      const angle = (2 * Math.PI * (k + 0.5)) / n - Math.PI / 2;
      return `${Math.cos(angle)},${Math.sin(angle)}`;
    });
    const group = svg("g", { class: "tile" });
    group.append(svg("polygon", { points: corners.join(" ") }), svg("path", { d: "M-0.2 0.45V-0.45H0.4L0.25 -0.2L0.4 0.05H0V0.45Z" }));
    return group;
  }

  transform(turns, mirrored) {
    return `rotate(${(360 * turns) / this.attribute.corners}deg) scaleX(${mirrored ? -1 : 1})`;
  }

  draw() {
    super.draw();
    const n = this.attribute.corners;
    const turn = ((((this.value % n) - this.turns) % n) + n) % n;
    this.turns += turn > n / 2 ? turn - n : turn;
    this.tile.style.transform = this.transform(this.turns, this.value >= n);
  }
}

const ROWS = { count: Count, dial: Dial, ring: Ring, real: Slider, whole: Slider, label: Label, tile: Tile };
