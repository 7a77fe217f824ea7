// This file shows robots.txt files.
import { ago, byId, make, many, ms, plain, set, short } from "./text.js";
import { reasons } from "./reasons.js";

let robots = "", asked = 0, touched = false, shown;

// open shows a file, and the decisions about a URL for a product token.
export function open(file, url, name) {
  touched = true;
  robots = file;
  byId("try-url").value = url;
  byId("try-name").value = name || "";
  const done = ask(0);
  byId("robots").scrollIntoView({ block: "nearest" });
  byId("robots").focus({ preventScroll: true });
  return done;
}

// openHost shows the file of a host. It tries https first, and http if the crawl has not read that
// file.
export async function openHost(host) {
  const name = byId("try-name").value;
  const first = await open(`https://${host}/robots.txt`, "/", name);
  if (first && !first.file) await open(`http://${host}/robots.txt`, "/", name);
}

// first shows the file of the first denial, unless the user has already selected one.
export function first(m) {
  if (touched || shown?.kept) return;
  const d = m.denials?.find(d => d.line) || m.denials?.find(d => d.robots_url);
  if (d) {
    robots = d.robots_url;
    byId("try-url").value = d.urls[0];
    byId("try-name").value = d.group === "*" ? "" : d.group || "";
    ask(0);
  }
}

// ask requests the file, beginning with a given line. If from is 0, it shows the lines around the
// decision. It returns what it shows, or nothing if there is an error or the user has asked again.
async function ask(from) {
  const mine = ++asked;
  try {
    const parameters = { robots, url: byId("try-url").value, name: byId("try-name").value, from };
    let answer = await fetch("robots.json?" + new URLSearchParams(parameters));
    const text = await answer.text();
    if (mine !== asked) return;
    if (!answer.ok) return set(byId("verdict"), plain(text));
    show(JSON.parse(text), from);
    return shown;
  } catch {
    if (mine === asked) set(byId("verdict"), "no connection to the crawl");
  }
}

function show(m, from) {
  shown = m;
  robots = m.robots;
  const f = m.file;
  set(byId("robots-where"), f?.option === "RobotsTxt" ? `the option RobotsTxt, in place of ${plain(m.robots, 120)}` : f ? `${plain(m.robots, 120)} · ${f.status ? `status ${f.status}` : "no response"} · ${ago(f.time, Date.now())}` : plain(m.robots, 120));
  verdict(m);
  readings(m);
  lines(m, from);
}

// verdict shows the decision of the crawl.
function verdict(m) {
  const d = m.decision, element = byId("verdict");
  element.className = "verdict" + (d ? (d.allowed ? " yes" : " no") : "");
  if (!d) return set(element, m.error ? plain(m.error) : "");
  const because = (d.rule?.line ? `line ${d.rule.line}` : d.option === "WhenUnreachable" ? "robots.txt cannot be read" : reasons[d.reason] || d.reason) + (d.option ? `, by the option ${plain(d.option, 40)}` : "");
  element.replaceChildren(make("b", "", d.allowed ? "Allowed" : "Denied"), ` for this crawl (${d.dialect}${d.group ? `, group ${plain(d.group, 60)}` : ""}): ${because}`);
}

function readings(m) {
  byId("readings").hidden = !m.readings;
  byId("readings").tBodies[0].replaceChildren(...(m.readings || []).map(r => {
    const mine = m.decision?.dialect === r.dialect;
    const head = make("th", "", r.dialect, ...(mine ? [" ", make("span", "tag", "this crawl")] : []));
    head.scope = "row";
    const says = make("td", r.error ? "" : r.allowed ? "yes" : "no", r.error ? "–" : r.allowed ? "✓ allowed" : "✕ denied");
    const line = r.rule?.line ? [`line ${r.rule.line}: `, make("span", "data", plain(`${r.rule.allow ? "Allow" : "Disallow"}: ${r.rule.pattern}`, 120))] :
      [r.error || (r.allowed ? "no rule matches" : "a rule that this dialect does not report")];
    const delay = ms(r.crawl_delay);
    const cell = (label, kind, ...children) => { const td = make("td", kind, ...children); td.dataset.label = label; return td; };
    return make("tr", mine ? "mine" : "", head, says, cell("Reason", "", ...line), cell("Group", "", make("span", "data", plain(r.group || "–", 60))), cell("Crawl delay", "num", delay ? short(delay) : "–"));
  }));
}

// lines shows the text of the file and marks the deciding lines.
function lines(m, from) {
  const file = byId("file"), none = byId("no-file");
  file.hidden = !m.kept || !m.lines?.length;
  none.hidden = !file.hidden;
  set(none, m.kept ? "The file is empty." : !m.file ? "The crawl has not read this file since the page was mounted." :
    m.file.hash ? "The text of this file is not available: it was read before the page was mounted, or it did not fit into the memory of the page." : `No text to show: ${m.file.robots_status === "no_robots" ? "the site has no robots.txt" : plain(m.file.error || reasons[m.file.robots_status] || "robots.txt could not be read")}.`);
  const deciding = new Map();
  for (const r of m.readings || []) {
    if (!r.rule?.line) continue;
    if (!deciding.has(r.rule.line)) deciding.set(r.rule.line, { allow: r.rule.allow, names: [] });
    deciding.get(r.rule.line).names.push(r.dialect);
  }
  let first;
  file.replaceChildren(...(m.lines || []).map((text, i) => {
    const n = m.from + i, by = deciding.get(n);
    const li = make("li", by ? (by.allow ? "yes" : "no") : "", make("span", "n", String(n)), make("code", text.trimStart().startsWith("#") ? "comment" : "", plain(text, 2000) || " "));
    if (by) li.append(make("span", "tag", by.names.join(", ")));
    if (by && (!first || n === m.decision?.rule?.line)) first = li;
    return li;
  }));
  const last = m.from + (m.lines?.length || 0) - 1;
  byId("pager").hidden = !m.kept || m.total <= (m.lines?.length || 0);
  set(byId("which"), `Lines ${m.from} to ${last} of ${m.total}`);
  byId("earlier").disabled = !(m.from > 1);
  byId("later").disabled = !(last < m.total);
  if (first && !from) file.scrollTop = first.offsetTop - file.clientHeight / 2;
}

byId("try").addEventListener("submit", e => { e.preventDefault(); touched = true; ask(0); });
let typing;
for (const id of ["try-url", "try-name"]) {
  byId(id).addEventListener("input", () => { touched = true; clearTimeout(typing); typing = setTimeout(() => ask(0), 250); });
}
byId("earlier").addEventListener("click", () => ask(Math.max(1, shown.from - 400)));
byId("later").addEventListener("click", () => ask(shown.from + 400));
