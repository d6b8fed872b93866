// The map. Every thing is drawn once and then moved, so that the browser animates it between steps.

import { shape, svg } from "./drawing.js";

const ICONS = { switch: "switch", chosen: "switch", hammer: "hammer", shoulder: "turn_right", elbow: "turn_right" };
const SHARED = 0.68; // size of the agent and of a thing in the same cell

export class MapView {
  constructor(root, inventory, picture, absent) {
    Object.assign(this, { root, inventory, picture, absent });
    this.things = new Map();
  }

  // Draw a new map.
  reset(scene) {
    this.root.replaceChildren();
    this.things.clear();
    const { width, height } = scene;
    this.root.toggleAttribute("hidden", width === 0);
    this.picture.hidden = !scene.picture;
    this.absent.hidden = width > 0 || Boolean(scene.picture);
    this.root.setAttribute("viewBox", `-0.1 -0.1 ${width + 0.2} ${height + 0.2}`);
    this.root.append(svg("rect", { class: "floor", width, height, rx: 0.18 }), this.grid(width, height));
    for (const [row, column] of scene.walls) this.root.append(shape("wall", "grey", column, row, 1));
    this.history = svg("polyline", { class: "history", points: "" });
    this.root.append(this.history);
    this.points = [];
    this.agent = svg("g", { class: "agent moves" });
    this.agent.append(shape("agent", "grey", 0, 0, 1));
    this.root.append(this.agent);
    this.show(scene);
  }

  grid(width, height) {
    let lines = "";
    for (let k = 1; k < width; k += 1) lines += `M${k} 0V${height}`;
    for (let k = 1; k < height; k += 1) lines += `M0 ${k}H${width}`;
    return svg("path", { class: "grid", d: lines });
  }

  // Show the scene after a step.
  show(scene) {
    if (scene.picture) this.showPicture(scene.picture);
    if (scene.width === 0) return this.showInventory(scene.held);
    const [row, column] = scene.agent;
    const seen = new Set();
    let shared = false;
    for (const [thingRow, thingColumn, form, colour] of scene.things) {
      const key = `${thingRow},${thingColumn},${form}`;
      seen.add(key);
      const here = thingRow === row && thingColumn === column;
      shared ||= here;
      this.place(key, form, colour, thingColumn, thingRow, here ? SHARED : 1);
    }
    for (const [key, thing] of this.things) if (!seen.has(key)) this.remove(key, thing);
    const size = shared ? SHARED : 1;
    const [x, y] = [column + 1 - size, row + 1 - size];
    this.agent.style.transform = `translate(${x}px, ${y}px) scale(${size})`;
    this.agent.dataset.cell = `${row},${column}`;
    const words = `map of ${scene.height} rows and ${scene.width} columns, agent in row ${row + 1}, column ${column + 1}`;
    this.root.setAttribute("aria-label", words);
    this.extendHistory(column + 0.5, row + 0.5);
    this.showInventory(scene.held);
  }

  place(key, form, colour, x, y, size) {
    const transform = `translate(${x}px, ${y}px) scale(${size})`;
    const old = this.things.get(key);
    if (old && old.colour === colour) {
      old.group.style.transform = transform;
      return;
    }
    old?.group.remove();
    const group = svg("g", { class: `thing moves ${old ? "recoloured" : ""}`, "data-shape": form, "data-colour": colour });
    group.append(shape(form, colour, 0, 0, 1));
    group.style.transform = transform;
    this.root.insertBefore(group, this.history);
    this.things.set(key, { group, colour });
  }

  remove(key, thing) {
    this.things.delete(key);
    thing.group.classList.add("removed");
    setTimeout(() => thing.group.remove(), 400);
  }

  extendHistory(x, y) {
    const point = `${x},${y}`;
    if (this.points.at(-1) === point) return;
    this.points.push(point);
    this.history.setAttribute("points", this.points.join(" "));
  }

  // Draw the picture of a world that has no map. The latest one wins if two are decoded at once.
  async showPicture(data) {
    const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
    this.latest = bytes;
    const image = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
    if (this.latest !== bytes) return;
    [this.picture.width, this.picture.height] = [image.width, image.height];
    this.picture.getContext("2d").drawImage(image, 0, 0);
  }

  // Spread a ring from the agent when an attempt ends; its colour shows whether the attempt succeeded.
  ring(scene, success) {
    const [row, column] = scene.agent;
    const attributes = { cx: column + 0.5, cy: row + 0.5, r: 0.3, class: `ring ${success ? "good" : "bad"}` };
    const circle = svg("circle", attributes);
    circle.addEventListener("animationend", () => circle.remove());
    this.root.append(circle);
  }

  showInventory(entries) {
    this.inventory.replaceChildren(
      ...entries.map(([label, colour, value]) => {
        const entry = document.createElement("span");
        const icon = svg("svg", { viewBox: "0 0 1 1", "aria-hidden": "true" });
        icon.append(shape(this.form(label), colour, 0, 0, 1));
        entry.append(icon, `${label === colour ? "" : label + " "}${value}`);
        entry.title = `${label}: ${value}`;
        return entry;
      }),
    );
  }

  // Shape of an entry of the inventory.
  form(label) {
    if (label in ICONS) return ICONS[label];
    return [...this.things.keys()].some((key) => key.endsWith("deposit")) ? "deposit" : "object";
  }
}
