// Helpers of all views: SVG and HTML elements, the shapes of things, numbers as text.

const NAMESPACE = "http://www.w3.org/2000/svg";
const MARK_SIZE = { object: 0.3, switch: 0.22, deposit: 0.17, dump: 0.19 };
const MARK_OFFSET = { deposit: 0.1, dump: 0.3 }; // downwards from the centre

export function svg(name, attributes = {}) {
  const element = document.createElementNS(NAMESPACE, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

export function html(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

// A shape in a square of the given size. The mark on it identifies its kind without colour.
export function shape(form, colour, x, y, size) {
  const group = svg("g", { class: `kind-${colour}` });
  group.append(svg("use", { href: `#shape-${form}`, x, y, width: size, height: size }));
  if (form in MARK_SIZE && colour !== "grey") {
    const half = (MARK_SIZE[form] * size) / 2;
    const left = x + size / 2 - half;
    const top = y + size / 2 + ((MARK_OFFSET[form] ?? 0) * size) / 2 - half;
    group.append(svg("use", { href: `#mark-${colour}`, class: "mark", x: left, y: top, width: 2 * half, height: 2 * half }));
  }
  return group;
}

// A number with at most two decimals.
export function number(value) {
  return Number.isInteger(value) ? String(value) : String(Math.round(value * 100) / 100);
}

// A count with its noun, such as "1 step" or "2 steps".
export function counted(count, noun) {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

// A probability as text: "99.8 %".
export function chanceWords(chance) {
  const percent = (100 * chance).toFixed(1);
  return `${percent === "100.0" ? "100" : percent} %`;
}
