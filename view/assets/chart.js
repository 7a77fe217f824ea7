// This file draws the chart: the starts of requests on a time axis that ends a little after the
// current time, with one strip for each host.
import { byId } from "./text.js";

const svg = (tag, name) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  if (name) element.setAttribute("class", name);
  return element;
};

const future = 0.14; // the part of the axis after the current time
const height = 30, middle = 15;
let span = 0, width = 400, chosen = false;

// choose selects the shortest time axis that shows the whole crawl so far, up to 5 minutes.
export function choose(age) {
  if (!chosen) pick(age < 80e3 ? 60 : 300);
}

function pick(seconds) {
  if (span === seconds * 1000) return;
  span = seconds * 1000;
  for (const button of document.querySelectorAll("[data-span]")) button.setAttribute("aria-pressed", button.dataset.span == seconds);
  axis();
}

export function begin() {
  for (const button of document.querySelectorAll("[data-span]")) {
    button.addEventListener("click", () => { chosen = true; pick(+button.dataset.span); });
  }
  new ResizeObserver(([entry]) => { if (entry.contentRect.width > 0) { width = entry.contentRect.width; axis(); } }).observe(byId("axis"));
  choose(0);
}

const scale = () => width * (1 - future) / span;

// axis draws the ticks.
function axis() {
  const at = byId("axis"), now = width * (1 - future), step = span === 60e3 ? 15e3 : span / 5;
  const parts = [];
  for (let t = span; t >= 0; t -= width < 340 ? span / 2 : step) {
    const label = svg("text", t === 0 ? "now" : "");
    label.setAttribute("x", Math.max(now - t * scale(), t === span ? 1 : 0));
    label.setAttribute("y", 12);
    label.setAttribute("text-anchor", t === span ? "start" : "middle");
    label.textContent = t === 0 ? "now" : t % 60000 ? `−${t / 1000} s` : `−${t / 60000} min`;
    const tick = svg("path", "tick");
    tick.setAttribute("d", `M${now - t * scale()} 16v4`);
    parts.push(label, tick);
  }
  at.replaceChildren(...parts);
}

// A strip is the chart of one host.
export class Strip {
  constructor() {
    this.dots = new Map(); // by time
    this.element = svg("svg", "strip");
    this.element.setAttribute("role", "img");
    this.moving = svg("g");
    this.paths = {};
    for (const name of ["hold", "dots page", "rings", "dots refused", "crosses"]) {
      this.paths[name] = svg("path", name);
      this.moving.append(this.paths[name]);
    }
    this.now = svg("path", "nowline");
    this.next = svg("path", "next");
    this.element.append(this.moving, this.now, this.next);
    this.drawn = "";
  }

  // put adds dots. If fresh is true, it first removes the earlier ones.
  put(dots, fresh) {
    if (fresh) this.dots.clear();
    for (const dot of dots || []) this.dots.set(dot[0], dot);
    if (dots?.length || fresh) this.drawn = "";
  }

  // draw draws the strip for a given time.
  draw(now, nextStart, waiting) {
    const k = scale(), zero = width * (1 - future);
    if (this.drawn !== `${width} ${span} ${nextStart}` || now - this.epoch > span) this.redraw(now, k, nextStart);
    this.moving.setAttribute("transform", `translate(${(zero - (now - this.epoch) * k).toFixed(1)})`);
    this.now.setAttribute("d", `M${zero.toFixed(1)} 2v${height - 4}`);
    const next = zero + (nextStart - now) * k;
    const shown = waiting && nextStart > now - 1000;
    this.next.setAttribute("d", !shown ? "" : next > width - 6 ? `M${width - 9} ${middle - 5}l5 5l-5 5M${width - 15} ${middle - 5}l5 5l-5 5` : `M${Math.max(next, zero).toFixed(1)} ${middle - 5}l5 5l-5 5l-5 -5z`);
  }

  redraw(now, k, nextStart) {
    this.epoch = now;
    const d = { hold: "", "dots page": "", rings: "", "dots refused": "", crosses: "" };
    let n = 0;
    const latest = Math.max(...this.dots.keys());
    for (const [at, dot] of this.dots) {
      if (at < now - 15 * 60e3) { this.dots.delete(at); continue; }
      const delay = at === latest && nextStart > at ? nextStart - at : dot[1] * 1e3; // a response may have changed the delay
      if (at + delay < now - span) continue;
      const x = ((at - now) * k).toFixed(1), [, , what, outcome, count] = dot;
      n += count;
      if (delay * k > 4) d.hold += `M${x} ${middle}h${(delay * k - 2).toFixed(1)}`; // a little shorter, so that bars do not touch
      if (outcome >= 3) d.crosses += `M${x - 3.5} ${middle - 3.5}l7 7m0 -7l-7 7`;
      else if (outcome === 2) d["dots refused"] += `M${x} ${middle}h0`;
      else if (what === "robots" || what === "sitemap" || what === "tdmrep") d.rings += `M${x - 3} ${middle}a3 3 0 1 0 6 0a3 3 0 1 0 -6 0`;
      else d["dots page"] += `M${x} ${middle}h0`;
    }
    for (const name in d) this.paths[name].setAttribute("d", d[name]);
    this.element.setAttribute("aria-label", `${n} requests started in ${span / 60000} min`);
    this.drawn = `${width} ${span} ${nextStart}`;
  }
}
