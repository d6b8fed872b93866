// The plan as one list in the order of time: past attempts, the current one, planned ones. Below it, the alternatives.

import { chanceWords, counted, html } from "./drawing.js";

export class PlanView {
  constructor(path, summary, options, optionsSummary, heads) {
    Object.assign(this, { path, summary, options, optionsSummary, heads });
    this.reset();
  }

  reset() {
    this.past = [];
    this.decision = null;
    this.replans = 0;
    this.path.replaceChildren();
    this.options.replaceChildren();
    this.summary.textContent = "";
    this.optionsSummary.textContent = "what it could try first";
    this.options.closest(".card").hidden = false;
    for (const head of this.heads) head.hidden = true;
  }

  setSummary(words) {
    this.summary.textContent = words;
  }

  // Show a task up to its present step. Its earlier plans are unknown, and so is the number of replans. A goal that was
  // changed on the way keeps the attempts before it.
  open(task, continues) {
    const earlier = continues ? [...this.past, { note: ["⚑", `new goal: ${task.goal.text}`] }] : [];
    this.reset();
    this.past = [...earlier, ...task.tried.map((tried) => ({ tried }))];
    this.decision = task.decision;
    if (task.step) this.replans = NaN;
    this.draw(task);
  }

  // Show one step: the attempts that it ended, and the decision that followed.
  show(moment) {
    this.past.push(...moment.tried.map((tried) => ({ tried })));
    if (moment.decision) {
      if (this.differs(moment.decision, moment.tried)) {
        const { path, words } = moment.decision;
        this.replans += 1;
        this.past.push({ note: ["↻", path.length ? `new plan: ${counted(path.length, "transition")}` : words] });
      }
      this.decision = moment.decision;
    }
    if (moment.decision || moment.tried.length || moment.ended) this.draw(moment);
  }

  // Whether a plan differs from the rest of the plan before it.
  differs(decision, tried) {
    const before = this.decision?.path ?? [];
    if (!before.length && !decision.path.length) return false;
    const done = tried.some((one) => one.success && one.name === before[0]?.name) ? 1 : 0;
    const names = (path) => path.map((planned) => planned.name).join("|");
    return names(before.slice(done)) !== names(decision.path);
  }

  draw(moment) {
    const ahead = moment.reached ? [] : (this.decision?.path ?? []);
    const rows = this.past.map((entry) => (entry.note ? this.noteRow(...entry.note) : this.pastRow(entry.tried)));
    if (!moment.ended && this.decision?.beyond?.length) rows.push(this.beyondRow(this.decision.beyond));
    ahead.forEach((planned, k) => rows.push(this.plannedRow(planned, k === 0 && !moment.ended)));
    if (moment.reached) rows.push(html("li", { class: "end good" }, html("span", { class: "text" }, "goal reached")));
    else if (moment.ended) rows.push(html("li", { class: "end bad" }, html("span", { class: "text" }, "goal not reached")));
    this.path.replaceChildren(...rows);
    this.setSummary(this.summaryWords(moment, ahead));
    this.drawOptions(moment);
    this.scrollToCurrent();
  }

  summaryWords(moment, ahead) {
    const replans = this.replans ? `, ${counted(this.replans, "replan")}` : "";
    if (moment.ended) return `${moment.reached ? "reached" : "not reached"} in ${counted(moment.step, "step")}${replans}`;
    if (!ahead.length) return this.decision?.words ?? "";
    const known = ahead.every(({ chance }) => chance !== null);
    const all = ahead.reduce((product, { chance }) => product * chance, 1);
    const chance = known ? `; ${chanceWords(all)} that none of them fails` : "";
    return `${counted(ahead.length, "transition")} to go${chance}${replans}`;
  }

  pastRow(tried) {
    const state = tried.success === null ? "changed" : tried.success ? "good" : "bad";
    const [sign, meaning] = { changed: ["·", "changed"], good: ["✓", "succeeded"], bad: ["✗", "failed"] }[state];
    const words = tried.success === false ? `failed after ${counted(tried.steps, "step")}` : `step ${tried.step}`;
    const estimate = tried.chance === null ? "" : `; the agent expected it to succeed with ${chanceWords(tried.chance)}`;
    return html(
      "li", { class: `past ${state}`, title: `${tried.change}${estimate}` },
      html("span", { class: "sign", role: "img", "aria-label": meaning }, sign), html("span", { class: "text" }, tried.name),
      html("span", { class: "figures" }, words),
    );
  }

  noteRow(sign, words, kind = "replan") {
    return html("li", { class: kind }, html("span", { class: "sign" }, sign), html("span", { class: "text" }, words));
  }

  // Values that training never met: their names at once, the evidence on demand.
  beyondRow(sentences) {
    const values = sentences.map((sentence) => sentence.split(" ")[0]).join(", ");
    const details = html(
      "details", { class: "text" }, html("summary", {}, `beyond training: ${values}`),
      ...sentences.map((sentence) => html("p", {}, sentence)),
    );
    details.open = this.beyondOpen ?? false;
    details.addEventListener("toggle", () => { this.beyondOpen = details.open; });
    return html("li", { class: "beyond" }, html("span", { class: "sign" }, "⚠"), details);
  }

  plannedRow(planned, current) {
    const item = html("li", { class: current ? "planned current" : "planned", title: planned.change });
    if (current) item.setAttribute("aria-current", "step");
    item.append(html("span", { class: "sign" }, current ? "▸" : ""), html("span", { class: "text" }, planned.name));
    item.append(chanceBar(planned.chance), ...figures(planned));
    return item;
  }

  drawOptions(moment) {
    const { options = [], unit = "", step_price: price = 0 } = this.decision ?? {};
    const costs = options.map((option) => option.cost).filter((cost) => cost !== null);
    const most = Math.max(...costs, 1e-9);
    const shown = moment.ended ? [] : options;
    this.options.replaceChildren(...shown.map((option) => optionRow(option, most, unit, price)));
    this.optionsSummary.textContent = shown.length ? costWords(unit, price) + choiceWords(options) : "none";
    this.options.closest(".card").hidden = moment.ended;
    const [planHead, optionsHead] = this.heads;
    planHead.hidden = moment.ended || !this.decision?.path.length;
    optionsHead.hidden = !shown.length;
  }

  scrollToCurrent() {
    const row = this.path.querySelector(".current, .end");
    if (row) this.path.scrollTop = row.offsetTop - this.path.clientHeight / 3;
  }
}

// Probability of success and expected steps, as far as the method estimates them, each under its heading.
function figures({ chance, steps }) {
  return [
    html("span", { class: "figures percent" }, chance === null ? "" : chanceWords(chance)),
    html("span", { class: "figures steps" }, steps === null ? "" : `~${counted(Math.round(steps), "step")}`),
  ];
}

// What the costs of the alternatives mean.
function costWords(unit, price) {
  if (unit === "steps") return "cost of the whole way: the expected steps to the goal";
  if (!price) return "cost of the whole way: −log of the chance that nothing fails; lower is better";
  const half = Math.round(Math.LN2 / price);
  return `cost of the whole way in steps: those that the agent expects, and more where it may fail (a chance of ½ counts like ${half})`;
}

// Why the chosen alternative is not the cheapest, if it is not.
function choiceWords(options) {
  const chosen = options.find((option) => option.chosen);
  const cheaper = options.some(({ cost }) => cost !== null && chosen && chosen.cost !== null && cost < chosen.cost);
  return cheaper ? ". A cheaper one is left out if it leads no nearer to the goal, or is worse on average over maps" : "";
}

function chanceBar(chance) {
  const bar = html("span", { class: "chance", "aria-hidden": "true" }, html("i"));
  bar.firstChild.style.width = `${100 * (chance ?? 0)}%`;
  if (chance === null) bar.classList.add("unknown");
  return bar;
}

function optionRow(option, most, unit, price) {
  const item = html("li", { class: option.chosen ? "option chosen" : "option", title: option.change });
  const bar = html("span", { class: "cost-bar", "aria-hidden": "true" }, html("i"));
  bar.firstChild.style.width = `${option.cost === null ? 0 : Math.max(2, (100 * option.cost) / most)}%`;
  const worth = price ? `≈ ${counted(Math.round(option.cost / price), "step")}` : option.cost?.toFixed(2);
  const cost = option.cost === null ? option.note : worth;
  const exact = option.cost === null ? "" : `${option.cost.toFixed(2)} ${unit}`;
  const sign = html("span", { class: "sign" }, option.chosen ? "▸" : "");
  if (option.chosen) item.setAttribute("aria-current", "true");
  item.append(
    sign, html("span", { class: "text" }, option.name), bar, html("span", { class: "cost", title: exact }, cost),
    ...figures(option),
  );
  return item;
}
