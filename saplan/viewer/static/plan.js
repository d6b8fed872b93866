// The plan as one line through time: attempts that ended, the present one, those to come; and what else was weighed.

import { html, number } from "./drawing.js";

export class PlanView {
  constructor(path, words, options, optionsWords) {
    Object.assign(this, { path, words, options, optionsWords });
    this.begin();
  }

  begin() {
    this.past = [];
    this.decision = null;
    this.replans = 0;
    this.path.replaceChildren();
    this.options.replaceChildren();
    this.words.textContent = "";
    this.optionsWords.textContent = "what could come first";
  }

  waiting(words) {
    this.words.textContent = words;
  }

  // A task as far as it has come; its earlier plans are not known any more.
  open(task) {
    this.begin();
    this.past = task.tried.map((tried) => ({ tried }));
    this.decision = task.decision;
    this.draw(task);
  }

  // A step: the attempts that ended, and the decision that followed.
  show(moment) {
    this.past.push(...moment.tried.map((tried) => ({ tried })));
    if (moment.decision) {
      if (this.differs(moment.decision, moment.tried)) {
        this.replans += 1;
        this.past.push({ replan: `new plan: ${moment.decision.path.length} transitions` });
      }
      this.decision = moment.decision;
    }
    if (moment.decision || moment.tried.length || moment.ended) this.draw(moment);
  }

  // Whether a plan is another than the rest of the one before.
  differs(decision, tried) {
    const before = this.decision?.path ?? [];
    if (!before.length && !decision.path.length) return false;
    const done = tried.some((one) => one.success && one.name === before[0]?.name) ? 1 : 0;
    const names = (path) => path.map((leg) => leg.name).join("|");
    return names(before.slice(done)) !== names(decision.path);
  }

  draw(moment) {
    const legs = moment.reached ? [] : (this.decision?.path ?? []);
    const rows = this.past.map((entry) => (entry.replan ? this.replanRow(entry.replan) : this.pastRow(entry.tried)));
    legs.forEach((leg, k) => rows.push(this.legRow(leg, k === 0 && !moment.ended)));
    if (moment.reached) rows.push(html("li", { class: "end good" }, html("span", { class: "what" }, "goal reached")));
    else if (moment.ended) rows.push(html("li", { class: "end bad" }, html("span", { class: "what" }, "not reached")));
    this.path.replaceChildren(...rows);
    this.words.textContent = this.summary(moment, legs);
    this.drawOptions(moment);
    this.keepInSight();
  }

  summary(moment, legs) {
    if (moment.reached) return `carried out, ${this.replans} replans`;
    if (!legs.length) return this.decision?.words ?? "";
    const chances = legs.map((leg) => leg.chance).filter((chance) => chance !== null);
    const whole = chances.length ? `, p = ${chances.reduce((a, b) => a * b, 1).toFixed(2)} in all` : "";
    return `${legs.length} to go${whole}${this.replans ? `, ${this.replans} replans` : ""}`;
  }

  pastRow(tried) {
    const state = tried.success === null ? "seen" : tried.success ? "good" : "bad";
    const sign = { seen: "·", good: "✓", bad: "✗" }[state];
    const words = tried.success === false ? `failed after ${tried.steps} steps` : `step ${tried.step}`;
    const expected = tried.chance === null ? "" : `expected p = ${tried.chance.toFixed(2)}`;
    return html(
      "li", { class: `past ${state}`, title: `${tried.change} ${expected}` },
      html("span", { class: "sign", "aria-label": state }, sign), html("span", { class: "what" }, tried.name),
      html("span", { class: "figures" }, words),
    );
  }

  replanRow(words) {
    return html("li", { class: "replan" }, html("span", { class: "sign" }, "↻"), html("span", { class: "what" }, words));
  }

  legRow(leg, present) {
    const item = html("li", { class: present ? "leg present" : "leg", title: leg.change });
    if (present) item.setAttribute("aria-current", "step");
    item.append(html("span", { class: "sign" }, present ? "▸" : ""), html("span", { class: "what" }, leg.name));
    item.append(chanceBar(leg.chance), html("span", { class: "figures" }, figures(leg)));
    return item;
  }

  drawOptions(moment) {
    const { options = [], unit = "" } = this.decision ?? {};
    const costs = options.map((option) => option.cost).filter((cost) => cost !== null);
    const most = Math.max(...costs, 1e-9);
    const shown = moment.ended ? [] : options;
    this.options.replaceChildren(...shown.map((option) => optionRow(option, most)));
    const unsaid = shown.length ? `cost of the whole way in ${unit}, by what comes first` : "nothing to weigh";
    this.optionsWords.textContent = unsaid;
  }

  keepInSight() {
    const present = this.path.querySelector(".present, .end");
    if (present) this.path.scrollTop = present.offsetTop - this.path.clientHeight / 3;
  }
}

function figures({ chance, steps }) {
  const words = [];
  if (chance !== null) words.push(`p ${chance.toFixed(3)}`);
  if (steps !== null) words.push(`~${number(Math.round(steps))} steps`);
  return words.join(", ");
}

function chanceBar(chance) {
  const bar = html("span", { class: "chance", "aria-hidden": "true" }, html("i"));
  bar.firstChild.style.width = `${100 * (chance ?? 0)}%`;
  if (chance === null) bar.classList.add("unknown");
  return bar;
}

function optionRow(option, most) {
  const item = html("li", { class: option.chosen ? "option chosen" : "option", title: option.change });
  const bar = html("span", { class: "cost", "aria-hidden": "true" }, html("i"));
  bar.firstChild.style.width = `${option.cost === null ? 0 : Math.max(2, (100 * option.cost) / most)}%`;
  const cost = option.cost === null ? option.note : option.cost.toFixed(2);
  item.append(
    html("span", { class: "sign", "aria-label": option.chosen ? "chosen" : "" }, option.chosen ? "▸" : ""),
    html("span", { class: "what" }, option.name), bar, html("span", { class: "price" }, cost),
    html("span", { class: "figures" }, figures(option)),
  );
  return item;
}
