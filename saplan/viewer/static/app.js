// The page: the chosen task, the playback, and the views that show each message of the server.

import { ArmView } from "./arm.js";
import { AttributesView, boundsOf, withValue } from "./attributes.js";
import { Connection } from "./connection.js";
import { counted, html } from "./drawing.js";
import { MapView } from "./map.js";
import { PlanView } from "./plan.js";
import { PlaneView } from "./plane.js";
import { RulesView } from "./rules.js";
import { WayView } from "./way.js";

const find = (name) => document.getElementById(name);
const STORAGE_KEY = "saplan";

const map = new MapView(find("map"), find("inventory"), find("picture"), find("no-picture"));
const attributes = new AttributesView(find("attributes"), (name, value) => setGoal(withValue(chosen.goal, name, value)));
const plan = new PlanView(
  find("path"), find("plan-summary"), find("options"), find("options-summary"), [find("plan-head"), find("options-head")],
);
const rules = new RulesView(find("rules"), find("symbols"), find("changes"), find("changes-name"), find("changes-summary"));
const way = new WayView(find("way-card"), find("way"));
const arm = new ArmView(find("arm-card"), find("arm"));
const plane = new PlaneView(
  find("plane-card"), find("plane"), find("heatmap"), find("plane-lines"), find("layer"), find("ramp"), setAmounts,
);

const chosen = { world: "", method: "", seed: 0, goal: "" };
let worlds = [];
let budget = 150;
let shown = { attributes: [], step: 0, ended: false, ready: false };
let playing = false;
let awaiting = false; // whether a step has been requested and not answered yet
let shownAt = 0; // time of the last step
let legs = []; // the goals of this task in order, with the steps taken towards each; the last is the present one
let upcoming = []; // legs of a saved task that are still to be repeated after a reload
const scores = new Map(); // task → method → last moment

const connection = new Connection(receive, showProblem);

// --- messages of the server ---

function receive(message) {
  const handlers = {
    hello, map: showMap, spans: ({ spans }) => attributes.setSpans(spans), plane: showPlane, task: showTask, step: showStep,
    changes: (known) => rules.setChanges(known), impossible: showImpossible, error: showError,
  };
  handlers[message.type]?.(message);
}

function hello(message) {
  worlds = message.worlds;
  budget = message.budget;
  find("world").replaceChildren(...worlds.map(({ name, game }) => html("option", { value: name }, name === game ? name : `${name} (${game})`)));
  const first = shown.ready || chosen.world ? chosen : fromAddress(message.begin);
  choose(first.world, first.method, first.seed, first.goal);
  const saved = savedProgress();
  playing = saved.playing;
  open(saved.legs);
}

function showMap(message) {
  shown = { attributes: message.attributes, step: 0, ended: false, ready: false, rho: message.rho };
  legs = [];
  map.reset(message.scene);
  attributes.reset(message.attributes, message.rho);
  rules.reset(message.rules, message.scene, worlds.find(({ name }) => name === message.world)?.game);
  arm.reset(message.arm, message.attributes, message.rho);
  way.reset(message.attributes);
  plan.reset();
  plane.hide();
  showFailure([]);
  markGoal();
  find("goal-problem").textContent = "";
  setStatus(chosen.goal ? "planning …" : "Set a goal: click a bead, a dial or a slider, or type.");
  showControls();
}

function showPlane(message) {
  plane.reset(message, shown.rho);
  markGoal();
}

function showTask(message) {
  const continues = legs.length > 0;
  if (continues) legs.at(-1).step = message.before;
  legs.push({ goal: message.goal.text, step: message.step });
  Object.assign(shown, { step: message.step, ended: message.ended, ready: true });
  if (!upcoming.length) chosen.goal = message.goal.text;
  if (document.activeElement !== find("goal")) find("goal").value = chosen.goal;
  attributes.setGoal(message.goal.low, message.goal.high);
  attributes.show(message.rho);
  arm.setGoal(message.goal.low, message.goal.high);
  arm.show(message.rho);
  if (continues) map.show(message.scene);
  else if (message.step) map.reset(message.scene);
  for (const view of [plan, plane, way]) view.open(message, continues);
  awaiting = false;
  if (upcoming.length) {
    const { goal, step } = upcoming.shift();
    connection.retarget(goal, step);
    return;
  }
  toAddress();
  saveProgress();
  showProgress(message);
  showControls();
  scheduleStep();
}

function showStep(message) {
  awaiting = false;
  shownAt = performance.now();
  Object.assign(shown, { step: message.step, ended: message.ended });
  legs.at(-1).step = message.step;
  map.show(message.scene);
  attributes.show(message.rho);
  arm.show(message.rho);
  for (const tried of message.tried) if (tried.success !== null) map.ring(message.scene, tried.success);
  for (const view of [plan, plane, way]) view.show(message);
  showProgress(message);
  saveProgress();
  showControls();
  scheduleStep();
}

function showImpossible(message) {
  find("goal-problem").textContent = message.reason;
  plan.setSummary("none");
  setStatus("There is no plan for this goal. The reason is below the goal.");
  pause();
  saveProgress();
}

function showError(message) {
  awaiting = false;
  pause();
  showProblem(message.reason);
}

function showProblem(words) {
  find("connection").textContent = words;
  find("connection").hidden = !words;
}

// --- choices ---

function choose(world, method, seed, goal) {
  const known = worlds.find(({ name }) => name === world) ?? worlds[0];
  chosen.world = known.name;
  chosen.method = known.methods.includes(method) ? method : known.methods[0];
  Object.assign(chosen, { seed, goal });
  find("world").value = chosen.world;
  find("method").replaceChildren(
    ...known.methods.map((name, k) => html("option", { value: name }, methodLabel(name, known.trained[k]))),
  );
  find("method").value = chosen.method;
  find("seed").value = seed;
  find("goal").value = goal;
  find("goal").placeholder = known.example || "name=2";
}

function methodLabel(name, steps) {
  if (steps === null) return name;
  const words = steps < 0.95e6 ? `${Math.round(steps / 1e3)} k` : `${Number((steps / 1e6).toPrecision(2))} M`;
  return `${name} (${words} steps)`;
}

// Begin on a fresh map; the legs of a saved task are repeated one after the other.
function open([first, ...rest] = [{ goal: chosen.goal, step: 0 }]) {
  shown.ready = false;
  awaiting = false;
  plan.reset();
  showControls();
  const { world, method, seed } = chosen;
  toAddress();
  showScores();
  upcoming = rest;
  connection.open(world, method, seed, first.goal, first.step);
}

// Once the agent has taken a step, a new goal continues from where it is, and playing goes on.
function setGoal(goal) {
  choose(chosen.world, chosen.method, chosen.seed, goal);
  find("goal-problem").textContent = "";
  if (!legs.some(({ step }) => step > 0)) {
    pause();
    open();
    return;
  }
  shown.ready = false;
  awaiting = false;
  toAddress();
  showFailure([]);
  markGoal();
  if (goal) {
    setStatus("planning …");
    connection.retarget(goal, 0);
  } else {
    setStatus("Set a goal: the agent goes on from where it is.");
    pause();
  }
  showControls();
}

// Set the goal to two amounts on the plane.
function setAmounts(first, second) {
  const [{ name: firstName }, { name: secondName }] = shown.attributes;
  setGoal(withValue(withValue(chosen.goal, firstName, first), secondName, second));
}

function setWorld(name) {
  const example = worlds.find((world) => world.name === name)?.example ?? "";
  choose(name, chosen.method, chosen.seed, example);
  pause();
  open();
}

function setMethod(method) {
  choose(chosen.world, method, chosen.seed, chosen.goal);
  open();
}

function setSeed(seed) {
  if (!Number.isInteger(seed) || seed < 0 || seed > 2147483647) {
    find("seed").value = chosen.seed;
    return;
  }
  choose(chosen.world, chosen.method, seed, chosen.goal);
  pause();
  open();
}

// --- playback ---

const stepTime = () => 1000 / Number(find("speed").value);

function stepOnce() {
  if (!shown.ready || shown.ended || awaiting) return;
  awaiting = true;
  connection.step();
}

// Request the next step when it is due; the browser animates in between.
function scheduleStep() {
  if (!playing || shown.ended || !shown.ready) return;
  const opened = connection.number;
  setTimeout(() => {
    if (playing && opened === connection.number) stepOnce();
  }, Math.max(0, shownAt + stepTime() - performance.now()));
}

function play() {
  if (shown.ended) open();
  playing = true;
  showControls();
  saveProgress();
  scheduleStep();
}

function pause() {
  playing = false;
  showControls();
  saveProgress();
}

function setSpeed(value) {
  const speed = find("speed");
  speed.value = value;
  find("speed-shown").textContent = `${speed.value}/s`;
  document.body.style.setProperty("--step-time", `${Math.min(stepTime(), 400)}ms`);
}

// --- status and results ---

function setStatus(words) {
  find("status").textContent = words;
}

function showProgress(moment) {
  const steps = counted(moment.step, "step");
  if (moment.reached) setStatus(`Goal reached in ${steps}.`);
  else if (!moment.ended) setStatus(`step ${moment.step} of ${budget}${legs.length > 1 ? " for this goal" : ""}${moment.step || playing ? "" : ": press play"}`);
  else if (moment.step < budget) setStatus(`Goal not reached: after ${steps} no change is possible.`);
  else setStatus(`Goal not reached within ${steps}.`);
  showFailure(moment.failure);
  if (moment.ended) {
    playing = false;
    if (legs.length === 1) score(moment); // only tasks from the start of the map compare methods
  }
}

function showFailure(sentences) {
  find("failure").replaceChildren(...sentences.map((sentence) => html("li", {}, sentence)));
  find("failure").hidden = !sentences.length;
}

function taskKey() {
  return [chosen.world, chosen.seed, chosen.goal].join("|");
}

function score(moment) {
  const results = scores.get(taskKey()) ?? new Map();
  results.set(chosen.method, moment);
  scores.set(taskKey(), results);
  showScores();
}

function showScores() {
  const results = [...(scores.get(taskKey()) ?? new Map())];
  find("scores").replaceChildren(
    ...results.map(([method, moment]) => {
      const steps = counted(moment.step, "step");
      const words = moment.reached ? steps : `failed after ${steps}`;
      return html("li", { class: moment.reached ? "good" : "bad" }, html("b", {}, method), ` ${words}`);
    }),
  );
}

function showControls() {
  const idle = !shown.ready || (shown.ended && !playing);
  find("play").textContent = playing ? "pause" : shown.ended ? "again" : "play";
  find("play").setAttribute("aria-pressed", playing);
  find("play").disabled = !shown.ready && !playing;
  find("step").disabled = idle || playing;
  find("restart").disabled = !legs.some(({ step }) => step > 0);
}

function markGoal() {
  const bounds = shown.attributes.map((attribute) => boundsOf(chosen.goal, attribute));
  const [low, high] = [0, 1].map((end) => bounds.map((pair) => pair[end]));
  attributes.setGoal(low, high);
  plane.setGoal(low, high);
  arm.setGoal(low, high);
}

// --- address and storage ---

function fromAddress(begin) {
  const given = new URLSearchParams(location.hash.slice(1));
  const known = worlds.find(({ name }) => name === given.get("game")) ?? worlds[0];
  const seed = Number(given.get("seed") ?? begin.seed);
  return {
    world: known.name,
    method: given.get("method") ?? begin.method,
    seed: Number.isInteger(seed) && seed >= 0 && seed <= 2147483647 ? seed : 0,
    goal: given.get("goal") ?? (begin.goal || known.example),
  };
}

function toAddress() {
  const { world: game, method, seed, goal } = chosen;
  const address = `#${new URLSearchParams({ game, method, seed, goal })}`;
  if (address !== location.hash) history.replaceState(null, "", address);
}

// Save the step of this tab, so that a reload continues from there.
function saveProgress() {
  sessionStorage.setItem(STORAGE_KEY, JSON.stringify({ task: `${taskKey()}|${chosen.method}`, legs, playing }));
}

function savedProgress() {
  const start = { legs: undefined, playing: false };
  try {
    const saved = JSON.parse(sessionStorage.getItem(STORAGE_KEY));
    return saved?.task === `${taskKey()}|${chosen.method}` && saved.legs.length ? saved : start;
  } catch {
    return start;
  }
}

// --- controls and keys ---

find("world").addEventListener("change", (event) => setWorld(event.target.value));
find("method").addEventListener("change", (event) => setMethod(event.target.value));
find("seed").addEventListener("change", (event) => setSeed(event.target.valueAsNumber));
find("new-map").addEventListener("click", newMap);
find("play").addEventListener("click", () => (playing ? pause() : play()));
find("step").addEventListener("click", stepOnce);
find("restart").addEventListener("click", () => open());
find("speed").addEventListener("input", (event) => setSpeed(event.target.value));
find("clear").addEventListener("click", () => setGoal(""));
find("help").addEventListener("click", () => find("help-text").showModal());
find("goal-form").addEventListener("submit", (event) => {
  event.preventDefault();
  setGoal(find("goal").value.trim());
});
addEventListener("hashchange", () => {
  const { world, method, seed, goal } = fromAddress(chosen);
  choose(world, method, seed, goal);
  pause();
  open();
});
addEventListener("keydown", onKey);

function newMap() {
  setSeed((chosen.seed + 1) % 2147483648);
}

function onKey(event) {
  // A dialog that was just closed may briefly keep the focus.
  const focus = event.target.closest("dialog:not([open])") ? document.body : event.target;
  const typing = focus.closest("input:not([type=range]), select, dialog, textarea, summary");
  const sliding = focus.closest("input") && event.key.startsWith("Arrow"); // the slider of the speed has other keys
  if (event.ctrlKey || event.metaKey || event.altKey || typing || sliding) return;
  const keys = {
    " ": () => find("play").click(), ArrowRight: stepOnce, ".": stepOnce, n: newMap, r: () => find("restart").click(),
    g: () => find("goal").select(), "?": () => find("help").click(),
    "-": () => setSpeed(Number(find("speed").value) - 1), "+": () => setSpeed(Number(find("speed").value) + 1),
  };
  const action = keys[event.key];
  if (!action || (event.key === " " && focus.closest("button"))) return;
  event.preventDefault();
  action();
}

setSpeed(find("speed").value);
