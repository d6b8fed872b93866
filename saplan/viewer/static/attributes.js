// The attributes, each drawn as its algebra is: what it is now, what is wished, and a hand to wish with.

import { html, number, svg } from "./drawing.js";

const MOST_BEADS = 14;
const FEWEST_BEADS = 4;
const MOST_TICKS = 24;
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

// The goal with one attribute wished anew; null frees it.
export function wished(text, name, value) {
  const found = conditions(text);
  if (value === null) found.delete(name);
  else found.set(name, [`${name}=${value}`]);
  return [...found.values()].flat().join(" ");
}

// What a goal asks of an attribute as far as the page can tell, for goals that the server refused.
export function guess(text, attribute) {
  const words = conditions(text).get(attribute.name) ?? [];
  const exact = words.map((word) => CONDITION.exec(word)).find((match) => match?.[2] === "=");
  if (!exact) return [null, null];
  const value = attribute.labels?.includes(exact[3]) ? attribute.labels.indexOf(exact[3]) : Number.parseFloat(exact[3]);
  return Number.isFinite(value) ? [value - attribute.tolerance, value + attribute.tolerance] : [null, null];
}

export class Attributes {
  constructor(root, wish) {
    this.root = root;
    this.wish = wish;
    this.rows = [];
  }

  begin(attributes, rho) {
    this.rows = attributes.map((attribute, k) => new ROWS[attribute.kind](attribute, rho[k], this.wish));
    this.root.replaceChildren(...this.rows.map((row) => row.element));
  }

  // What attributes can become by arithmetic, which is known a moment after the map.
  reach(spans) {
    this.rows.forEach((row, k) => row.reach(spans[k]));
  }

  show(rho) {
    this.rows.forEach((row, k) => row.show(rho[k]));
  }

  aim(low, high) {
    this.rows.forEach((row, k) => row.aim(low[k], high[k]));
  }
}

// What all rows share: a name, a hand that one drags or moves by keys, and the two values in words.
class Row {
  constructor(attribute, value, wish) {
    Object.assign(this, { attribute, wish, value, low: null, high: null, pending: undefined });
    this.words = html("span", { class: "value" });
    this.hand = this.build();
    this.hand.classList.add("hand", `kind-${attribute.colour}`);
    this.hand.setAttribute("tabindex", "0");
    this.hand.setAttribute("role", "slider");
    this.hand.setAttribute("aria-label", `goal for ${attribute.name}`);
    const name = html("span", { class: "name" }, attribute.name, html("small", {}, attribute.symbol));
    this.element = html("div", { class: "row", "data-name": attribute.name, "data-kind": attribute.kind }, name, this.hand, this.words);
    this.listen();
    this.refresh();
  }

  listen() {
    this.hand.addEventListener("pointerdown", (event) => this.grab(event));
    this.hand.addEventListener("pointermove", (event) => this.drag(event));
    this.hand.addEventListener("pointerup", () => this.release());
    this.hand.addEventListener("pointercancel", () => this.cancel());
    this.hand.addEventListener("keydown", (event) => this.press(event));
  }

  get goal() {
    if (this.low === null && this.high === null) return null;
    if (this.low === null || this.high === null) return this.low ?? this.high;
    return (this.low + this.high) / 2;
  }

  grab(event) {
    if (event.button !== 0) return;
    const value = this.at(event);
    if (value === null) return;
    event.preventDefault();
    this.hand.focus();
    this.hand.setPointerCapture(event.pointerId);
    // A click on what is wished already frees it; a drag moves it.
    this.again = this.exactly(value);
    this.first = value;
    this.pending = value;
    this.preview(value);
  }

  drag(event) {
    if (this.pending === undefined) return;
    const value = this.at(event);
    if (value === null || value === this.pending) return;
    this.pending = value;
    this.again = false;
    this.preview(value);
  }

  release() {
    if (this.pending === undefined) return;
    const value = this.again ? null : this.pending;
    this.pending = undefined;
    this.send(value);
  }

  cancel() {
    this.pending = undefined;
    this.refresh();
  }

  exactly(value) {
    return this.low !== null && this.high !== null && Math.abs(this.goal - value) < this.grain / 2
      && this.high - this.low < 2 * this.attribute.tolerance + this.grain;
  }

  preview(value) {
    this.aim(value - this.attribute.tolerance, value + this.attribute.tolerance);
  }

  send(value) {
    this.wish(this.attribute.name, value === null ? null : this.written(value));
  }

  press(event) {
    const moves = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 };
    if (event.key in moves) this.send(this.moved(moves[event.key]));
    else if (event.key === "Backspace" || event.key === "Delete") this.send(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  moved(by) {
    const [least, most] = this.ends;
    return Math.min(Math.max((this.goal ?? this.value) + by * this.grain, least), most);
  }

  show(value) {
    if (value !== this.value) this.blink();
    this.value = value;
    this.refresh();
  }

  reach() {}

  blink() {
    this.element.classList.remove("changed");
    requestAnimationFrame(() => this.element.classList.add("changed"));
  }

  aim(low, high) {
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
    const wish = asked ? this.wishWords() : "free";
    this.words.replaceChildren(html("b", {}, this.written(this.value)), asked ? ` → ${wish}` : "");
    const [least, most] = this.ends;
    this.hand.setAttribute("aria-valuemin", least);
    this.hand.setAttribute("aria-valuemax", most);
    this.hand.setAttribute("aria-valuenow", this.goal ?? this.value);
    this.hand.setAttribute("aria-valuetext", `now ${this.written(this.value)}, goal ${wish}`);
    this.draw();
  }

  wishWords() {
    const { low, high } = this;
    if (low === null) return `≤ ${this.written(high)}`;
    if (high === null) return `≥ ${this.written(low)}`;
    if (high - low > 2 * this.attribute.tolerance + this.grain / 2) return `${this.written(low)} to ${this.written(high)}`;
    return this.written((low + high) / 2) + (this.attribute.tolerance ? ` ± ${number(this.attribute.tolerance)}` : "");
  }

  written(value) {
    return number(value);
  }
}

// ℕ: beads. Those that arithmetic puts out of reach are dashed.
class Count extends Row {
  get grain() {
    return 1;
  }

  get ends() {
    return [0, Math.max(this.slots, this.value)];
  }

  build() {
    this.most = Infinity;
    const root = html("div", { class: "beads" });
    this.string(root, Math.max(this.value, FEWEST_BEADS));
    return root;
  }

  // Threads so many beads, and a place for none.
  string(root, count) {
    this.slots = Math.min(count, MOST_BEADS);
    this.beads = Array.from({ length: this.slots + 1 }, (_, k) =>
      html("i", { class: k ? "bead" : "bead none", "data-value": k, title: `${this.attribute.name}=${k}` }),
    );
    root.replaceChildren(...this.beads);
  }

  reach([, most]) {
    this.most = most ?? Infinity;
    this.string(this.hand, Math.max((most ?? this.value + 2) + 1, this.value, FEWEST_BEADS));
    this.refresh();
  }

  at(event) {
    const bead = document.elementFromPoint(event.clientX, event.clientY)?.closest("[data-value]");
    if (bead && this.hand.contains(bead)) return Number(bead.dataset.value);
    return this.pending ?? null;
  }

  draw() {
    this.beads.forEach((bead, k) => {
      bead.classList.toggle("full", k > 0 && k <= this.value);
      bead.classList.toggle("beyond", k > this.most);
      bead.classList.toggle("wished", this.goal !== null && (this.low ?? 0) <= k && k <= (this.high ?? Infinity));
    });
  }
}

// ℤ/q: a dial.
class Dial extends Row {
  get grain() {
    return 1;
  }

  get ends() {
    return [0, this.attribute.positions - 1];
  }

  build() {
    const q = this.attribute.positions;
    this.dial = svg("svg", { viewBox: "-1.3 -1.3 2.6 2.6", class: "dial-face" });
    this.dial.append(svg("circle", { class: "dial-rim", r: 1 }));
    this.stops = Array.from({ length: q <= MOST_TICKS ? q : 0 }, (_, k) => {
      const [x, y] = this.point(k, 0.72);
      const colour = this.attribute.colours?.[k] ?? "grey";
      return svg("circle", { class: `stop kind-${colour}`, cx: x, cy: y, r: 0.2 });
    });
    this.needle = svg("g", { class: "needle" });
    this.needle.append(svg("path", { d: "M-0.1 0L0 -0.5L0.1 0Z" }), svg("circle", { r: 0.14 }));
    this.ring = svg("circle", { class: "wish-ring", r: 0.3 });
    this.dial.append(...this.stops, this.needle, this.ring);
    this.turned = 0;
    return html("div", { class: "dial" }, this.dial);
  }

  point(position, radius) {
    const angle = (2 * Math.PI * position) / this.attribute.positions - Math.PI / 2;
    return [radius * Math.cos(angle), radius * Math.sin(angle)];
  }

  at(event) {
    const box = this.dial.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left - box.width / 2, event.clientY - box.top - box.height / 2];
    const q = this.attribute.positions;
    return (Math.round(((Math.atan2(y, x) + Math.PI / 2) / (2 * Math.PI)) * q) + q) % q;
  }

  moved(by) {
    const q = this.attribute.positions;
    return ((((this.goal ?? this.value) + by) % q) + q) % q;
  }

  draw() {
    const q = this.attribute.positions;
    // The needle turns on, never back: that is what the dial does.
    this.turned += (((this.value - this.turned) % q) + q) % q;
    this.needle.style.transform = `rotate(${(360 * this.turned) / q}deg)`;
    const [x, y] = this.point(this.goal ?? 0, 0.72);
    this.ring.setAttribute("cx", x);
    this.ring.setAttribute("cy", y);
    this.ring.classList.toggle("hidden", this.goal === null);
  }
}

// ℝ: a slider, the goal with its tolerance.
class Track extends Row {
  get grain() {
    return this.attribute.tolerance ? this.attribute.tolerance / 5 : 1;
  }

  get ends() {
    const [least, most] = this.attribute.range ?? [null, null];
    return [least ?? Math.min(-8, this.value - 4), most ?? Math.max(8, this.value + 4)];
  }

  build() {
    this.band = html("i", { class: "band" });
    this.now = html("i", { class: "now" });
    this.target = html("i", { class: "target" });
    return html("div", { class: "track" }, this.band, this.target, this.now);
  }

  at(event) {
    const box = this.hand.getBoundingClientRect();
    const share = Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1);
    const [least, most] = this.ends;
    return Math.round((least + share * (most - least)) / this.grain) * this.grain;
  }

  share(value) {
    const [least, most] = this.ends;
    return Math.min(Math.max((value - least) / (most - least), 0), 1);
  }

  draw() {
    const [least, most] = this.ends;
    const [left, right] = [this.share(this.low ?? least), this.share(this.high ?? most)];
    const hidden = this.goal === null;
    this.band.classList.toggle("hidden", hidden);
    this.target.classList.toggle("hidden", hidden);
    this.now.style.left = `${100 * this.share(this.value)}%`;
    this.band.style.left = `${100 * left}%`;
    this.band.style.width = `${100 * (right - left)}%`;
    this.target.style.left = `${100 * this.share(this.goal ?? least)}%`;
  }
}

// Labels without an order: one of a few words.
class Label extends Row {
  get grain() {
    return 1;
  }

  get ends() {
    return [0, this.attribute.labels.length - 1];
  }

  build() {
    this.chips = this.attribute.labels.map((label, k) => html("i", { class: "chip", "data-value": k }, label));
    return html("div", { class: "chips" }, ...this.chips);
  }

  at(event) {
    const chip = document.elementFromPoint(event.clientX, event.clientY)?.closest("[data-value]");
    return chip && this.hand.contains(chip) ? Number(chip.dataset.value) : (this.pending ?? null);
  }

  draw() {
    this.chips.forEach((chip, k) => {
      chip.classList.toggle("full", k === this.value);
      chip.classList.toggle("wished", this.goal === k);
    });
  }

  written(value) {
    return this.attribute.labels[Math.round(value)] ?? "nowhere";
  }
}

const ROWS = { count: Count, dial: Dial, real: Track, whole: Track, label: Label };
