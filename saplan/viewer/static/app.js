// The page: what is chosen, what is playing, and who has to show what.

import { Attributes, guess, wished } from "./attributes.js";
import { html } from "./drawing.js";
import { GroundMap } from "./map.js";
import { PlanView } from "./plan.js";
import { PlaneView } from "./plane.js";
import { Wire } from "./wire.js";

const find = (name) => document.getElementById(name);
const KEPT = "saplan";

const ground = new GroundMap(find("map"), find("held"));
const attributes = new Attributes(find("attributes"), (name, value) => setGoal(wished(chosen.goal, name, value)));
const plan = new PlanView(find("path"), find("plan-words"), find("options"), find("options-words"));
const plane = new PlaneView(
  find("plane-card"), find("plane"), find("heat"), find("plane-lines"), find("layer"), find("ramp"), aimAt,
);

const chosen = { world: "", method: "", seed: 0, goal: "" };
let worlds = [];
let budget = 150;
let shown = { attributes: [], step: 0, ended: false, ready: false, result: null };
let playing = false;
let asked = false; // a step that has not been answered yet
let shownAt = 0;
const scores = new Map(); // task → method → what came of it

const wire = new Wire(hear, complain);

// --- what the server says ---

function hear(message) {
  ({ hello, map: showMap, spans: ({ spans }) => attributes.reach(spans), plane: showPlane, task: showTask, step: showStep, impossible, error: refused })[message.type]?.(message);
}

function hello(message) {
  worlds = message.worlds;
  budget = message.budget;
  find("world").replaceChildren(...worlds.map(({ name, game }) => html("option", { value: name }, name === game ? name : `${name} (${game})`)));
  const first = shown.ready || chosen.world ? chosen : fromAddress(message.begin);
  choose(first.world, first.method, first.seed, first.goal);
  const kept = remembered();
  playing = kept.playing;
  open(kept.step);
}

function showMap(message) {
  shown = { attributes: message.attributes, step: 0, ended: false, ready: false, result: null, rho: message.rho };
  ground.begin(message.scene);
  attributes.begin(message.attributes, message.rho);
  plan.begin();
  plane.hide();
  markGoal();
  find("goal-problem").textContent = "";
  if (chosen.goal) plan.waiting("searching …");
  say(chosen.goal ? "thinking …" : "Set a goal: click a bead, a dial or a slider, or type.");
  showControls();
}

function showPlane(message) {
  plane.begin(message, shown.rho);
  markGoal();
}

function showTask(message) {
  Object.assign(shown, { step: message.step, ended: message.ended, ready: true });
  chosen.goal = message.goal.text;
  if (document.activeElement !== find("goal")) find("goal").value = chosen.goal;
  attributes.aim(message.goal.low, message.goal.high);
  attributes.show(message.rho);
  if (message.step) ground.begin(message.scene);
  plan.open(message);
  plane.open(message);
  asked = false;
  remember();
  tellWhere(message);
  showControls();
  goOn();
}

function showStep(message) {
  asked = false;
  shownAt = performance.now();
  Object.assign(shown, { step: message.step, ended: message.ended });
  ground.show(message.scene);
  attributes.show(message.rho);
  for (const tried of message.tried) if (tried.success !== null) ground.ring(message.scene, tried.success);
  plan.show(message);
  plane.show(message);
  tellWhere(message);
  remember();
  showControls();
  goOn();
}

function impossible(message) {
  find("goal-problem").textContent = message.reason;
  plan.waiting("there is none");
  say("No plan: the goal is not to be had.");
  pause();
  remember();
}

function refused(message) {
  asked = false;
  pause();
  complain(message.reason);
}

function complain(words) {
  find("connection").textContent = words;
  find("connection").hidden = !words;
}

// --- what a person does ---

function choose(world, method, seed, goal) {
  const known = worlds.find(({ name }) => name === world) ?? worlds[0];
  chosen.world = known.name;
  chosen.method = known.methods.includes(method) ? method : known.methods[0];
  Object.assign(chosen, { seed, goal });
  find("world").value = chosen.world;
  find("method").replaceChildren(
    ...known.methods.map((name, k) => html("option", { value: name }, methodWords(name, known.trained[k]))),
  );
  find("method").value = chosen.method;
  find("seed").value = seed;
  find("goal").value = goal;
  find("goal").placeholder = known.example || "name=2";
}

function methodWords(name, steps) {
  return steps === null ? name : `${name}, ${(steps / 1e6).toPrecision(2)} M steps`;
}

function open(step = 0) {
  shown.ready = false;
  asked = false;
  plan.begin();
  showControls();
  const { world, method, seed, goal } = chosen;
  toAddress();
  showScores();
  wire.open(world, method, seed, goal, step);
}

function setGoal(goal) {
  choose(chosen.world, chosen.method, chosen.seed, goal);
  pause();
  open();
}

function aimAt(first, second) {
  setGoal(wished(wished(chosen.goal, shown.attributes[0].name, first), shown.attributes[1].name, second));
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

// --- playing ---

const beat = () => 1000 / Number(find("speed").value);

function stepOnce() {
  if (!shown.ready || shown.ended || asked) return;
  asked = true;
  wire.step();
}

// The next step when its time has come: the browser animates in between.
function goOn() {
  if (!playing || shown.ended || !shown.ready) return;
  const opened = wire.number;
  setTimeout(() => {
    if (playing && opened === wire.number) stepOnce();
  }, Math.max(0, shownAt + beat() - performance.now()));
}

function play() {
  if (shown.ended) open();
  playing = true;
  showControls();
  remember();
  goOn();
}

function pause() {
  playing = false;
  showControls();
  remember();
}

function setSpeed(value) {
  const speed = find("speed");
  speed.value = value;
  find("speed-shown").textContent = `${speed.value}/s`;
  document.body.style.setProperty("--beat", `${Math.min(beat(), 400)}ms`);
}

// --- what is said and kept ---

function say(words) {
  find("status").textContent = words;
}

function tellWhere(moment) {
  if (moment.reached) say(`Goal reached in ${moment.step} steps.`);
  else if (moment.ended) say(`Goal not reached within ${moment.step} steps.`);
  else say(`step ${moment.step} of ${budget}`);
  if (moment.ended) {
    playing = false;
    score(moment);
  }
}

function task() {
  return [chosen.world, chosen.seed, chosen.goal].join("|");
}

function score(moment) {
  const results = scores.get(task()) ?? new Map();
  results.set(chosen.method, moment);
  scores.set(task(), results);
  showScores();
}

function showScores() {
  const results = [...(scores.get(task()) ?? new Map())];
  find("scores").replaceChildren(
    ...results.map(([method, moment]) => {
      const words = moment.reached ? `${moment.step} steps` : `failed after ${moment.step}`;
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
  find("restart").disabled = !shown.ready || shown.step === 0;
}

function markGoal() {
  const bounds = shown.attributes.map((attribute) => guess(chosen.goal, attribute));
  attributes.aim(bounds.map(([low]) => low), bounds.map(([, high]) => high));
  plane.aim(bounds.map(([low]) => low), bounds.map(([, high]) => high));
}

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

// How far this tab has come, so that a reload goes on from there.
function remember() {
  sessionStorage.setItem(KEPT, JSON.stringify({ task: `${task()}|${chosen.method}`, step: shown.step, playing }));
}

function remembered() {
  const nothing = { step: 0, playing: false };
  try {
    const kept = JSON.parse(sessionStorage.getItem(KEPT));
    return kept?.task === `${task()}|${chosen.method}` ? kept : nothing;
  } catch {
    return nothing;
  }
}

// --- hands and keys ---

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
addEventListener("keydown", press);

function newMap() {
  setSeed((chosen.seed + 1) % 2147483648);
}

function press(event) {
  // A dialog that has just been closed may keep the focus for a moment.
  const focus = event.target.closest("dialog:not([open])") ? document.body : event.target;
  const typing = focus.closest("input, select, dialog, textarea");
  if (event.ctrlKey || event.metaKey || event.altKey || typing) return;
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
