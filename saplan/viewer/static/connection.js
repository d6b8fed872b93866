// The WebSocket to the server. It reconnects when it is lost, and numbers the tasks that it opens.

const FIRST_DELAY = 300; // milliseconds before the first attempt to reconnect; doubled after each further loss
const LONGEST_DELAY = 5000;

export class Connection {
  constructor(onMessage, onProblem) {
    this.onMessage = onMessage;
    this.onProblem = onProblem;
    this.number = 0;
    this.delay = FIRST_DELAY;
    this.connect();
  }

  connect() {
    const address = new URL("socket", location.href);
    address.protocol = "ws:";
    address.hash = "";
    this.socket = new WebSocket(address);
    this.socket.onmessage = (event) => this.receive(JSON.parse(event.data));
    this.socket.onclose = (event) => this.reconnect(event);
  }

  receive(message) {
    this.delay = FIRST_DELAY;
    // Ignore answers about earlier tasks.
    if (message.id !== undefined && message.id !== null && message.id !== this.number) return;
    if (message.type === "hello") this.onProblem("");
    this.onMessage(message);
  }

  reconnect(event) {
    if (event.code === 1013) return; // too many pages are open: the server has already sent the reason
    this.onProblem("The connection to the server is lost. Reconnecting …");
    setTimeout(() => this.connect(), this.delay);
    this.delay = Math.min(2 * this.delay, LONGEST_DELAY);
  }

  open(world, method, seed, goal, step) {
    this.number += 1;
    this.send({ type: "open", id: this.number, world, method, seed, goal, step });
  }

  // Give the open task another goal, from where it stands.
  retarget(goal, step) {
    this.number += 1;
    this.send({ type: "goal", id: this.number, goal, step });
  }

  step() {
    this.send({ type: "step", id: this.number });
  }

  send(message) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }
}
