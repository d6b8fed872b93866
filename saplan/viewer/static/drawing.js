// Small helpers that draw: elements of SVG and of HTML, and the shapes that things have.

const NAMESPACE = "http://www.w3.org/2000/svg";
const MARKED = { object: 0.3, switch: 0.22, deposit: 0.17, dump: 0.19 };
const LOWER = { deposit: 0.1, dump: 0.3 };

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

// A shape in a square of this size; the mark of its kind tells it apart without colour.
export function shape(form, colour, x, y, size) {
  const group = svg("g", { class: `kind-${colour}` });
  group.append(svg("use", { href: `#shape-${form}`, x, y, width: size, height: size }));
  if (form in MARKED && colour !== "grey") {
    const half = (MARKED[form] * size) / 2;
    const left = x + size / 2 - half;
    const top = y + size / 2 + ((LOWER[form] ?? 0) * size) / 2 - half;
    group.append(svg("use", { href: `#mark-${colour}`, class: "mark", x: left, y: top, width: 2 * half, height: 2 * half }));
  }
  return group;
}

// A number as people write it: at most two places.
export function number(value) {
  return Number.isInteger(value) ? String(value) : String(Math.round(value * 100) / 100);
}
