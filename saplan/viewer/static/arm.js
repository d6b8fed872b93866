// The arm of the game arm: both parts, the post that they must not touch, and the posture of the goal.

import { svg } from "./drawing.js";

export class ArmView {
  constructor(card, root) {
    Object.assign(this, { card, root, arm: null });
  }

  // Draw the arm of a new map; other games have none.
  reset(arm, attributes, rho) {
    this.arm = arm;
    this.card.hidden = !arm;
    if (!arm) return;
    const reach = arm.upper + arm.fore + 0.15;
    this.joints = ["shoulder", "elbow"].map((name) => attributes.findIndex((attribute) => attribute.name === name));
    this.root.setAttribute("viewBox", `${-reach} ${-reach} ${2 * reach} ${2 * reach}`);
    const [x, y] = point(arm.post, arm.distance);
    this.wanted = svg("path", { class: "arm-goal" });
    this.parts = svg("path", { class: "arm-now" });
    this.elbow = svg("circle", { class: "arm-joint", r: 0.09 });
    this.root.replaceChildren(
      svg("circle", { class: "arm-reach", r: arm.upper + arm.fore }), svg("circle", { class: "arm-post", cx: x, cy: y, r: arm.radius }),
      this.wanted, this.parts, svg("circle", { class: "arm-joint", r: 0.11 }), this.elbow,
    );
    this.setGoal([], []);
    this.show(rho);
  }

  show(rho) {
    if (!this.arm) return;
    const [shoulder, elbow] = this.joints.map((k) => rho[k]);
    this.parts.setAttribute("d", this.posture(shoulder, elbow));
    const [x, y] = point(shoulder, this.arm.upper);
    this.elbow.setAttribute("cx", x);
    this.elbow.setAttribute("cy", y);
    this.root.setAttribute("aria-label", `the arm: shoulder ${Math.round(shoulder)}, elbow ${Math.round(elbow)} degrees`);
  }

  // A goal for both joints is drawn as a posture.
  setGoal(low, high) {
    if (!this.arm) return;
    const middle = this.joints.map((k) => centre(low[k], high[k]));
    this.wanted.setAttribute("d", middle.every((angle) => angle !== null) ? this.posture(...middle) : "");
  }

  posture(shoulder, elbow) {
    const [x, y] = point(shoulder, this.arm.upper);
    const [dx, dy] = point(shoulder + elbow, this.arm.fore);
    return `M0 0L${x} ${y}L${x + dx} ${y + dy}`;
  }
}

// The middle of an interval of angles, which may go round through zero.
function centre(low, high) {
  if (low === null || low === undefined || high === null || high === undefined) return null;
  return (low + (low > high ? high + 360 : high)) / 2;
}

// Angles grow to the right; 0 points up.
function point(degrees, length) {
  const angle = (Math.PI * degrees) / 180;
  return [length * Math.sin(angle), -length * Math.cos(angle)];
}
