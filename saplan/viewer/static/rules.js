// What the game is: its rules, the symbols on its map, and the changes that the agent knows.

import { chanceWords, html, shape, svg } from "./drawing.js";

const SYMBOLS = {
  agent: "the agent",
  wall: "a wall",
  object: "an object to pick up",
  switch: "the switch: step on it and interact to advance it",
  deposit: "a deposit: mine it with a hammer",
  dump: "a dump yard: throws one unit away",
  store: "the store: gives a hammer",
  turn_right: "turns to the right",
  turn_left: "turns to the left",
  mirror: "mirrors the chosen piece",
};
const TOLD = {
  arm: { turn_right: "a crank: turns its joint to the right", turn_left: "a crank: turns its joint to the left" },
  tiles: { turn_right: "the turntable: turns the chosen piece", switch: "the carousel: chooses the next piece" },
};

export class RulesView {
  constructor(root, symbols, changes, changesTitle, changesSummary) {
    Object.assign(this, { root, symbols, changes, changesTitle, changesSummary });
  }

  // Show the rules of a world, as the server sends them, and the symbols of its first scene.
  reset({ summary, points }, scene, kind) {
    this.root.replaceChildren(
      html("p", {}, ...marked(summary)), html("ul", {}, ...points.map((point) => html("li", {}, ...marked(point)))),
    );
    this.symbols.hidden = scene.width === 0;
    const forms = ["agent", ...new Set(scene.things.map(([, , form]) => form)), ...(scene.walls.length ? ["wall"] : [])];
    this.symbols.replaceChildren(...forms.map((form) => this.symbol(form, scene, kind)));
    this.changes.replaceChildren();
    this.changesSummary.textContent = "";
  }

  symbol(form, scene, kind) {
    const colour = scene.things.find(([, , other]) => other === form)?.[3] ?? "grey";
    const icon = svg("svg", { viewBox: "0 0 1 1", "aria-hidden": "true" });
    icon.append(shape(form, colour, 0, 0, 1));
    return html("li", {}, icon, TOLD[kind]?.[form] ?? SYMBOLS[form] ?? form);
  }

  // Show the changes of attributes that the agent has learnt to make, or that the rules allow.
  setChanges({ changes, learnt, known }) {
    const more = known > changes.length ? `, the first ${changes.length} of ${known}` : "";
    this.changesTitle.textContent = learnt ? "What the agent knows" : "Changes";
    this.changesSummary.textContent = learnt
      ? `changes that it learnt to make, and the success of its attempts in training${more}`
      : "of attributes, as the rules allow them";
    this.changes.replaceChildren(...changes.map(([name, change, share]) => changeRow(name, change, share)));
  }
}

function changeRow(name, change, share) {
  const words = name === change ? "" : change;
  return html(
    "li", {}, html("span", { class: "text" }, name), html("span", { class: "change" }, words),
    html("span", { class: "figures" }, share === null ? "" : chanceWords(share)),
  );
}

// Text with the parts between backticks as code.
function marked(text) {
  return text.split("`").map((part, k) => (k % 2 ? html("code", {}, part) : part));
}
