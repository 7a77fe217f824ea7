// This file shows the table of hosts.
import { Strip, choose } from "./chart.js";
import { pauseButton } from "./pause.js";
import { byId, clock, make, many, ms, number, plain, set, short, statusText, times, whole, why } from "./text.js";

const rows = new Map(); // by host
let body, open, busy = false, asked = true;

// reorder makes the next message change the order, even if the pointer or the focus is in the table.
export function reorder() { asked = true; }

export function begin(openHost) {
  body = byId("rows");
  open = openHost;
  for (const [event, on] of [["focusin", true], ["focusout", false], ["pointerenter", true], ["pointerleave", false]]) {
    body.addEventListener(event, () => { busy = on; });
  }
}

// waiting returns the number of waiting pages of a host, in the process and in the frontier.
const waiting = s => (s.waiting || 0) + (s.on_disk || 0);

// pace returns how fast requests to a host are sent, in a word or two, and the reason.
export function pace(s, now, fault) {
  const because = why(s.source, s.line, s.last_status, s.response_time);
  if (fault) return ["closed:", `robots.txt ${fault.status || "without a response"}${fault.walled ? " with a web page" : ""}${tries(fault, now)}`];
  if (s.stopped) {
    const next = Date.parse(s.next_try) > now ? clock(s.next_try, now) : "now";
    return ["refusing", `since ${clock(s.stopped, now)}, next try ${next}`];
  }
  if (s.opens && Date.parse(s.opens) > now) return ["closed", `until ${clock(s.opens, now)} (${because})`];
  if (s.source === "retry_after" || s.source === "visit_time" || s.source === "paused") return ["paused", because];
  return [s.delay ? short(ms(s.delay)) : "none", because];
}

// tries says when a robots.txt that cannot be read is requested again.
function tries(fault, now) {
  if (!fault.next_try) return "";
  const left = Date.parse(fault.next_try) - now;
  return left <= 0 ? ", next try with the next page" : `, next try in ${left < 3600e3 ? whole(left) : short(left)}`;
}

// notes returns other facts about a host: its hours, group, budget, refusals and unchanged pages.
export function notes(s, now) {
  const all = [];
  if (s.closes) all.push(`closes at ${clock(s.closes, now)}`);
  if (s.shared_with) all.push(`shares its pace with ${many(s.shared_with, "other host")} (${plain(s.group, 60)})`);
  if (s.max_pages_per_host) all.push(s.pages_sent >= s.max_pages_per_host ? `budget used up: ${many(s.max_pages_per_host, "page")}` : `${number(s.pages_sent)} of ${many(s.max_pages_per_host, "page")} sent`);
  if (s.refusals_in_row && !s.stopped) all.push(`refused ${many(s.refusals_in_row, "request")} in a row`);
  if (s.retried) all.push(`${many(s.retried, "request")} repeated${s.given_up ? `, ${many(s.given_up, "page")} given up` : ""}`);
  if (s.unchanged) all.push(`${many(s.unchanged, "page")} unchanged`);
  return all.join(" · ");
}

// A Row is the row of one host.
class Row {
  constructor(name) {
    this.strip = new Strip();
    this.name = make("button", "name", plain(name, 120));
    this.name.type = "button";
    this.name.title = plain(name, 2000) + ": show its requests, statuses and robots.txt";
    this.name.addEventListener("click", () => open(name));
    this.delay = make("b", "");
    this.why = make("span", "soft");
    this.notes = make("span", "soft notes");
    this.pauses = pauseButton(name);
    const cell = (kind, label, ...children) => {
      const td = make("td", kind, ...children);
      td.dataset.label = label;
      return td;
    };
    for (const [key, label] of [["left", "Time left"], ["waiting", "Waiting"], ["next", "Next start"], ["done", "Done"], ["denied", "Denied"], ["failed", "Failed"], ["status", "Last status"], ["gap", "Min. gap"]]) {
      this[key] = cell(`c-${key} num`, label);
    }
    const head = make("th", "c-host", this.name);
    head.scope = "row";
    this.element = make("tr", "", head, cell("c-delay", "Delay", this.delay, " ", this.why, " ", this.notes, " ", this.pauses), cell("c-chart", "", this.strip.element),
      this.left, this.waiting, this.next, this.done, this.denied, this.failed, this.status, this.gap);
  }

  show(h, now) {
    const s = h.stats;
    this.host = h;
    this.nextStart = s.next_start ? Date.parse(s.next_start) : 0;
    this.pace(now);
    this.why.title = s.opens ? `opens on ${new Date(s.opens).toLocaleString("en-GB", { dateStyle: "full", timeStyle: "long" })}` : "";
    set(this.notes, notes(s, now));
    this.pauses.show(s.source === "paused");
    this.element.classList.toggle("slow", s.source === "back_off" || s.source === "retry_after" || Boolean(s.stopped) || Boolean(h.robots_fault));
    set(this.waiting, number(waiting(s)));
    this.waiting.title = s.on_disk ? `${number(s.on_disk)} of them in the frontier` : "";
    set(this.done, number(s.pages));
    set(this.denied, number(s.denied));
    this.denied.classList.toggle("some", s.denied > 0);
    set(this.failed, number(s.failed || 0));
    this.failed.classList.toggle("bad", s.failed > 0);
    this.failed.title = statusText(h.statuses);
    set(this.status, s.last_status ? String(s.last_status) : "–");
    this.status.classList.toggle("bad", s.last_status >= 429);
    const gap = s.gap_over_delay;
    set(this.gap, gap ? times(gap) : "–");
    this.gap.title = gap ? `the shortest time between two requests: ${short(ms(s.min_gap))}` : "";
    this.gap.classList.toggle("bad", gap > 0 && gap < 1);
    this.strip.put(h.starts, h.fresh);
  }

  // pace shows the delay and the reason, which may contain the time until the next try.
  pace(now) {
    const [delay, because] = pace(this.host.stats, now, this.host.robots_fault);
    set(this.delay, delay);
    set(this.why, because);
  }

  tick(now, passed) {
    const s = this.host.stats;
    if (this.host.robots_fault) this.pace(now);
    set(this.left, waiting(s) ? whole(Math.max(0, ms(this.host.time_left) - passed)) : "–");
    const t = this.nextStart - now;
    set(this.next, !waiting(s) && t <= 0 ? "–" : t > 0 ? `in ${whole(t)}` : "now");
    this.strip.draw(now, this.nextStart, waiting(s));
  }
}

// show shows the hosts of a message, in the order of the message. It keeps the old order while the
// pointer or the focus is in the table, so that a row does not move away before a click, unless the
// question has changed.
export function show(m, question, now) {
  if (m.started) choose(now - Date.parse(m.started));
  const shown = new Set();
  for (const h of m.hosts) {
    const name = h.stats.host;
    shown.add(name);
    if (!rows.has(name)) {
      rows.set(name, new Row(name));
      body.append(rows.get(name).element);
    }
    rows.get(name).show(h, now);
  }
  for (const [name, row] of rows) {
    if (!shown.has(name)) {
      row.element.remove();
      rows.delete(name);
    }
  }
  if (!busy || asked) order(m.hosts);
  asked = false;
  set(byId("count"), m.hosts.length === m.matching ? many(m.matching, "host") : `${number(m.hosts.length)} of ${many(m.matching, "host")}`);
  byId("more").hidden = m.hosts.length >= m.matching || m.hosts.length >= 200;
  byId("no-hosts").hidden = m.hosts.length > 0;
  set(byId("no-hosts"), question.q ? "No host name contains this text." : "No requests so far.");
  heads(question);
}

// order puts the rows in the order of the message and moves as few rows as possible.
function order(hosts) {
  let at = body.firstElementChild;
  for (const h of hosts) {
    const element = rows.get(h.stats.host).element;
    if (element === at) at = at.nextElementSibling;
    else body.insertBefore(element, at);
  }
}

// heads marks the column by which the table is sorted.
function heads(question) {
  const by = question.sort.replace("-", "");
  for (const button of document.querySelectorAll("[data-sort]")) {
    const on = button.dataset.sort === by, th = button.parentElement;
    const first = by === "host" || by === "gap" ? "ascending" : "descending", second = first === "ascending" ? "descending" : "ascending";
    if (on) th.setAttribute("aria-sort", question.sort === by ? first : second);
    else th.removeAttribute("aria-sort");
  }
}

// tick updates what changes with time.
export function tick(now, passed) {
  for (const row of rows.values()) row.tick(now, passed);
}
