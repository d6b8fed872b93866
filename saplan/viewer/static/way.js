// The way to the goal: the value of every attribute that the goal names, after each change so far and each planned one.

import { html, svg } from "./drawing.js";

const [WIDTH, HEIGHT, MARGIN] = [100, 16, 1.5];

export class WayView {
  constructor(card, root) {
    Object.assign(this, { card, root });
    this.reset([]);
  }

  reset(attributes) {
    Object.assign(this, { attributes, past: [], ahead: [], goal: null });
    this.draw();
  }

  // A task up to its present step; a goal that was changed on the way keeps the values before it.
  open(task, continues) {
    this.past = continues ? [...this.past, ...task.history.slice(1)] : [...task.history];
    this.goal = task.goal;
    this.setPlan(task);
  }

  show(moment) {
    const last = this.past.at(-1);
    if (moment.rho.some((value, k) => value !== last[k])) this.past.push(moment.rho);
    this.setPlan(moment);
  }

  setPlan(moment) {
    if (moment.decision) this.ahead = moment.decision.path.map((planned) => planned.rho);
    else if (this.past.length !== this.drawn) this.ahead = this.ahead.slice(1);
    if (moment.ended) this.ahead = [];
    this.draw();
  }

  draw() {
    this.drawn = this.past.length;
    const named = this.attributes.map((attribute, k) => [attribute, k]).filter(([, k]) => this.asks(k));
    this.card.hidden = !named.length || !this.past.length;
    this.root.replaceChildren(...named.map(([attribute, k]) => this.row(attribute, k)));
  }

  asks(k) {
    return this.goal !== null && (this.goal.low[k] !== null || this.goal.high[k] !== null);
  }

  row(attribute, k) {
    const [unrolled, low, high] = interval(attribute, this.goal.low[k], this.goal.high[k]);
    const [past, ahead] = [this.past, this.ahead].map((path) => path.map((rho) => unrolled(rho[k])));
    const all = [...past, ...ahead, ...[low, high].filter((bound) => bound !== null)];
    const [least, most] = [Math.min(...all), Math.max(...all, Math.min(...all) + 1)];
    const count = past.length + ahead.length; // the last value has its own width
    const x = (place) => (WIDTH * place) / count;
    const y = (value) => MARGIN + (HEIGHT - 2 * MARGIN) * (1 - (value - least) / (most - least));
    const chart = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" });
    const [top, bottom] = [y(high ?? most), y(low ?? least)];
    chart.append(svg("rect", { class: "goal-band", x: 0, y: Math.min(top, bottom) - 0.5, width: WIDTH, height: Math.abs(bottom - top) + 1 }));
    const planned = [past.at(-1), ...ahead].map((value, n) => [past.length - 1 + n, value]);
    chart.append(line("planned", ahead.length ? held(planned) : [], x, y), line("past", held([...past.entries()]), x, y));
    const words = `${attribute.name}: ${past.length - 1} changes so far, ${ahead.length} planned`;
    return html("li", { title: words }, html("span", { class: `name kind-${attribute.colour}` }, attribute.name), chart);
  }
}

// A goal's interval and how values are drawn against it: an angle by its shortest way from the middle of the goal.
function interval(attribute, low, high) {
  if (attribute.kind !== "ring" || low === null || high === null) return [(value) => value, low, high];
  const { period } = attribute;
  const wrapped = (value) => ((value % period) + period) % period;
  const width = wrapped(high - low);
  const unrolled = (value) => wrapped(value - low - width / 2 + period / 2) - period / 2;
  return [unrolled, -width / 2, width / 2];
}

// The same points, with the last value held for one change more, so that it can be seen.
function held(points) {
  const [place, value] = points.at(-1);
  return [...points, [place + 1, value]];
}

// A staircase: a value holds until the next change.
function line(name, points, x, y) {
  const path = points.map(([place, value], k) => (k ? `H${x(place)}V${y(value)}` : `M${x(place)} ${y(value)}`)).join("");
  return svg("path", { class: name, d: path, "vector-effect": "non-scaling-stroke" });
}
