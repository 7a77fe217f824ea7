// This file shows the answers.
import { byId, fill, make, many, number, plain, set } from "./dom.js";
import { go } from "./editor.js";

export const names = {
  rfc9309: "RFC 9309", google: "Google", coccoc: "Coc Coc", yandex: "Yandex",
  seznam: "Seznam", original1994: "1994", temoto: "Colly",
};
const longNames = { ...names, original1994: "Standard of 1994", temoto: "Colly (temoto)" };

// lineButton returns a button that selects a line of the file.
function lineButton(line, text = `line ${line}`) {
  const button = make("button", "to-line", text);
  button.type = "button";
  button.addEventListener("click", () => go(line));
  return button;
}

const verdictOf = reading => (reading.allowed ? "allowed" : "denied");

// siteOf returns the scheme and the host that all URLs have in common, or "".
function siteOf(urls) {
  const site = urls[0]?.match(/^https?:\/\/[^/]+(?=\/)/)?.[0] ?? "";
  return urls.every(url => url.startsWith(site + "/")) ? site : "";
}

// matrix shows the verdicts for the URLs. select is called with a URL that the user clicks.
export function matrix(urls, rows, dialects, selected, shown, select) {
  fill(byId("matrix-head"), make("th", "url", "URL"), ...dialects.map(d => make("th", "", make("span", "", names[d]))));
  byId("matrix-head").querySelectorAll("th").forEach(th => { th.scope = "col"; });
  const site = siteOf(urls);
  fill(byId("matrix-rows"), ...urls.slice(0, shown).map(url => {
    const row = rows(url);
    const button = make("button", "pick", plain(url.slice(site.length), 200));
    button.title = plain(url);
    button.type = "button";
    button.addEventListener("click", () => select(url));
    if (url === selected) button.setAttribute("aria-current", "true");
    const head = make("th", "url", button);
    head.scope = "row";
    if (row.error) {
      const cell = make("td", "error", row.error);
      cell.colSpan = dialects.length;
      return make("tr", url === selected ? "selected" : "", head, cell);
    }
    return make("tr", (url === selected ? "selected" : "") + (row.differ ? " differ" : ""), head, ...dialects.map(d => verdictCell(row.readings.get(d), d, row.stale.has(d))));
  }));
}

function verdictCell(reading, dialect, stale) {
  if (!reading) return make("td", "waiting", "…");
  const cell = make("td", (reading.allowed ? "yes" : "no") + (stale ? " stale" : ""), make("b", "", reading.allowed ? "✓" : "✕"), reading.line ? ` ${reading.line}` : "");
  cell.title = `${longNames[dialect]}: ${verdictOf(reading)}${reading.line ? `, line ${reading.line}` : ""}`;
  cell.querySelector("b").setAttribute("aria-label", verdictOf(reading));
  return cell;
}

// readings shows the details of one URL.
export function readings(row, dialects, groups) {
  byId("readings").hidden = !row || row.error !== undefined || dialects.length === 0;
  if (byId("readings").hidden) return fill(byId("readings-rows"));
  fill(byId("readings-rows"), ...dialects.map(d => {
    const reading = row.readings.get(d), group = groups.get(d);
    const head = make("th", "", longNames[d]);
    head.scope = "row";
    if (!reading || !group) return make("tr", "", head, make("td", "waiting", "not decided yet"), make("td"), make("td"), make("td"));
    const label = (text, cell) => { cell.dataset.label = text; return cell; };
    return make("tr", row.stale.has(d) ? "stale" : "", head,
      make("td", reading.allowed ? "yes" : "no", `${reading.allowed ? "✓" : "✕"} ${verdictOf(reading)}`),
      make("td", "", ...because(reading)),
      label("Group", make("td", group.name || group.problem ? "" : "none", make("span", "data", plain(group.name || "–", 60)), ...(group.problem ? [make("small", "", plain(group.problem, 200))] : []))),
      label("Delay", make("td", group.delays ? "" : "none", ...delays(group.delays))));
  }));
}

// because returns what a cell says about the line that decided.
function because(reading) {
  if (reading.refused) return [lineButton(reading.line), " makes it refuse the file: ", make("span", "data", plain(reading.rule, 120))];
  if (reading.line) return [lineButton(reading.line), " ", make("span", "data", plain(reading.rule, 120))];
  return [make("span", "soft", reading.allowed ? "no rule matches" : "it reports no line")];
}

function delays(list) {
  if (!list) return [make("span", "soft", "–")];
  return list.map(({ seconds: s, line, hours }) => {
    const text = `${number(s)} s${hours ? `, ${hours} UTC` : ""}`;
    return make("div", "", ...(line ? [`${text} `, lineButton(line)] : [text]));
  });
}

// verdict says in a sentence what the dialects decide.
export function verdict(row, dialects) {
  const element = byId("verdict"), known = dialects.map(d => row?.readings?.get(d)).filter(r => r);
  const allowed = known.filter(r => r.allowed).length, denied = known.length - allowed;
  element.className = "verdict";
  element.hidden = dialects.length === 0;
  if (!row || row.error) return set(element, row?.error ? `This is ${row.error}.` : "");
  if (known.length < dialects.length) return set(element, "");
  if (allowed === known.length) element.classList.add("yes");
  else element.classList.add(allowed === 0 ? "no" : "split");
  set(element, allowed === known.length ? "All dialects allow this URL." : allowed === 0 ? "All dialects deny this URL." :
    `The dialects do not agree: ${allowed} ${allowed === 1 ? "allows" : "allow"} this URL, ${denied} ${denied === 1 ? "denies" : "deny"} it.`);
}

const uses = { search: "Search index", "ai-use": "Input of AI models", "train-ai": "Training of AI models" };
const preferences = { allowed: ["yes", "✓ allowed"], disallowed: ["no", "✕ not allowed"], unknown: ["soft", "nothing is said"] };

// usage shows what the page may be used for. said is undefined if the page must not be requested.
export function usage(row, tdmrep) {
  const list = byId("usage"), said = row?.usage;
  const note = !row || row.error ? "" : said ? (tdmrep ? "A TDMRep file is about text and data mining. It has no rules about requests." : "The lines of the group that RFC 9309 finds count.") :
    row.readings?.has("rfc9309") ? "RFC 9309 denies this URL, so a crawler must not request it for any use." : "";
  set(byId("usage-note"), note);
  byId("usage-title").hidden = !note;
  if (!said) return fill(list);
  const items = Object.entries(uses).map(([key, title]) => {
    const statement = said.preferences[key], [kind, text] = preferences[statement?.preference ?? "unknown"];
    return entry(title, make("span", kind, text), statement?.line ? [" ", lineButton(statement.line)] : []);
  });
  if (said.use) items.push(entry("Use", make("span", "data", said.use), []));
  if (said.tdm?.policy) items.push(entry("Policy", make("span", "data", plain(said.tdm.policy)), []));
  for (const license of said.licenses ?? []) items.push(entry("License", make("span", "data", plain(license.url)), license.line ? [" ", lineButton(license.line)] : []));
  fill(list, ...items);
}

const entry = (title, value, rest) => make("div", "", make("dt", "", title), make("dd", "", value, ...rest));

const severities = ["error", "warning", "note"];

// findings shows the faults of the file, at most shown of them.
export function findings(list, shown) {
  const counts = severities.map(s => list?.filter(f => f.severity === s).length ?? 0);
  set(byId("findings-count"), !list ? "not checked yet" : list.length === 0 ? "none" : severities.map((s, i) => counts[i] && many(counts[i], s)).filter(c => c).join(", "));
  fill(byId("findings"), ...(list ?? []).slice(0, shown).map(f => {
    const place = f.line ? lineButton(f.line) : make("span", "soft", "the file");
    const item = make("li", f.severity, make("b", "severity", f.severity), " ", place, " ", make("span", "", plain(f.text)));
    const where = f.dialects.length < Object.keys(names).length ? f.dialects.map(d => names[d]).join(", ") + " · " : "";
    item.append(" ", make("small", "", `${where}${f.id}`));
    if (f.url && !f.text.includes(f.url)) item.append(make("small", "data url", plain(f.url)));
    return item;
  }));
}

// marksOf returns the marks for the editor: the lines that decided about the selected URL.
export function marksOf(row, dialects, groups) {
  const marks = new Map();
  const add = (line, kind, name) => {
    if (!line) return;
    const mark = marks.get(line) ?? { kind, names: [] };
    if (mark.kind === kind) mark.names.push(name);
    marks.set(line, mark);
  };
  for (const d of dialects) {
    const reading = row?.readings?.get(d);
    if (reading) add(reading.line, reading.allowed ? "yes" : "no", names[d]);
  }
  for (const d of dialects) {
    for (const delay of groups.get(d)?.delays ?? []) add(delay.line, "other", names[d]);
  }
  for (const key of Object.keys(uses)) add(row?.usage?.preferences?.[key]?.line, "other", key);
  for (const mark of marks.values()) {
    const all = mark.names.length === dialects.length;
    mark.label = all ? "all dialects" : mark.names.join(", ");
    mark.brief = all ? "all" : mark.names.length === 1 ? mark.names[0] : String(mark.names.length);
  }
  return marks;
}

// faultsOf returns the most serious severity for each line with a finding.
export function faultsOf(list) {
  const faults = new Map();
  for (const severity of severities) for (const f of list ?? []) if (f.severity === severity && f.line && !faults.has(f.line)) faults.set(f.line, severity);
  return faults;
}
