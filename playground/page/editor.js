// This file shows the text with line numbers and marks. Only the visible lines have elements, so
// that a large file costs no more than a small one.
import { byId, make } from "./dom.js";

const area = byId("text"), box = byId("editor");
const [marksLayer, gutter, tags] = ["marks", "gutter", "tags"].map(name => box.querySelector("." + name));

let marks = new Map(); // by line: { kind, label, brief }
let faults = new Map(); // by line: a severity
let starts = [0]; // the offset of each line in the text

// setLines finds the lines of the text. Call it after each change of the text.
export function setLines(text) {
  starts = [0];
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  box.style.setProperty("--digits", Math.max(2, String(starts.length).length));
  draw();
  return starts.length;
}

// setMarks marks the lines that have decided, and those with findings.
export function setMarks(decided, found) {
  marks = decided;
  faults = found;
  draw();
}

// show scrolls to a line, if it is not visible.
export function show(line) {
  const { height, top } = metrics();
  const y = top + (line - 1) * height;
  if (y < area.scrollTop || y + height > area.scrollTop + area.clientHeight) {
    area.scrollTop = y - area.clientHeight / 2;
  }
}

// go selects a line and scrolls to it.
export function go(line) {
  const end = (starts[line] ?? area.value.length + 1) - 1;
  area.focus({ preventScroll: true });
  area.setSelectionRange(starts[line - 1], end);
  show(line);
  area.scrollLeft = 0;
  box.scrollIntoView({ block: "nearest" });
}

function metrics() {
  const style = getComputedStyle(area);
  return { height: parseFloat(style.lineHeight), top: parseFloat(style.paddingTop) };
}

function draw() {
  const { height, top } = metrics();
  const first = Math.max(1, Math.floor((area.scrollTop - top) / height));
  const last = Math.min(starts.length, first + Math.ceil(area.clientHeight / height) + 2);
  const layers = [[], [], []];
  for (let line = first; line <= last; line++) {
    const y = top + (line - 1) * height - area.scrollTop;
    const put = (layer, element) => {
      element.style.top = y + "px";
      layers[layer].push(element);
    };
    put(1, make("span", faults.has(line) ? "n " + faults.get(line) : "n", String(line)));
    const mark = marks.get(line);
    if (mark) {
      put(0, make("div", "mark " + mark.kind));
      put(2, make("span", "tag " + mark.kind, make("span", "long", mark.label), make("span", "brief", mark.brief)));
    }
  }
  [marksLayer, gutter, tags].forEach((layer, i) => layer.replaceChildren(...layers[i]));
}

let drawing = false;
function drawSoon() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    draw();
  });
}
area.addEventListener("scroll", drawSoon);
new ResizeObserver(drawSoon).observe(area);
