// The socket to the server: it comes back when it breaks, and every task that is opened has a number of its own.

const SLOWEST = 5000;

export class Wire {
  constructor(hear, tell) {
    this.hear = hear;
    this.tell = tell;
    this.number = 0;
    this.waiting = 300;
    this.connect();
  }

  connect() {
    const address = new URL("socket", location.href);
    address.protocol = "ws:";
    address.hash = "";
    this.socket = new WebSocket(address);
    this.socket.onmessage = (event) => this.receive(JSON.parse(event.data));
    this.socket.onclose = (event) => this.lost(event);
  }

  receive(message) {
    this.waiting = 300;
    // Answers to what is no longer asked are let go.
    if (message.id !== undefined && message.id !== null && message.id !== this.number) return;
    if (message.type === "hello") this.tell("");
    this.hear(message);
  }

  lost(event) {
    if (event.code === 1013) return; // full: the server has said so
    this.tell("The connection to the server is lost; trying again.");
    setTimeout(() => this.connect(), this.waiting);
    this.waiting = Math.min(2 * this.waiting, SLOWEST);
  }

  open(world, method, seed, goal, step) {
    this.number += 1;
    this.send({ type: "open", id: this.number, world, method, seed, goal, step });
  }

  step() {
    this.send({ type: "step", id: this.number });
  }

  send(message) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }
}
