// This file shows the details of one host in a drawer.
import { ago, byId, classes, make, many, ms, number, plain, set, short, why } from "./text.js";
import { notes, pace } from "./hosts.js";

let name = "", asking = false, again = false, clock, changed;

// host returns the host that the drawer shows, or "".
export const host = () => name;

// begin registers the functions that open the viewer of robots.txt, and that record a change of the
// host.
export function begin(openRobots, onChange, now) {
  clock = now;
  changed = onChange;
  const drawer = byId("drawer");
  byId("drawer-close").addEventListener("click", () => drawer.close());
  drawer.addEventListener("click", e => { if (e.target === drawer) drawer.close(); });
  drawer.addEventListener("close", () => {
    if (drawer.open) return; // it was opened again before the event came
    name = "";
    changed();
  });
  byId("drawer-try").addEventListener("click", () => {
    const last = name;
    drawer.close();
    openRobots(last);
  });
}

// open opens the drawer for a host.
export function open(of) {
  name = of;
  set(byId("drawer-host"), plain(of, 300));
  byId("drawer-file").hidden = true;
  set(byId("drawer-robots"), "");
  for (const id of ["drawer-pace", "drawer-counts"]) set(byId(id), "");
  for (const id of ["drawer-statuses", "drawer-gaps", "drawer-requests"]) byId(id).replaceChildren();
  if (!byId("drawer").open) byId("drawer").showModal();
  changed();
  show();
  robots();
}

// show requests the details again while the drawer is open.
export async function show() {
  if (!name) return;
  if (asking) {
    again = true;
    return;
  }
  asking = true;
  const of = name;
  try {
    const answer = await fetch("host.json?" + new URLSearchParams({ host: of }));
    if (answer.ok && of === name) fill(await answer.json());
  } catch {
    // the page itself says that there is no connection
  }
  asking = false;
  if (again) {
    again = false;
    show();
  }
}

function fill(d) {
  const s = d.stats || {}, now = clock();
  set(byId("drawer-pace"), d.stats ? [...pace(s, now, d.robots_fault), notes(s, now)].filter(Boolean).join(" · ") : "The crawl has not requested this host.");
  set(byId("drawer-counts"), d.stats ? `${many(s.requests, "request")}, ${many(s.pages, "page")} done, ${number((s.waiting || 0) + (s.on_disk || 0))} waiting, ${number(s.denied)} denied` : "");
  bars("statuses", classes.map(([key, text]) => [key === "throttled" || key === "none" ? key : "s" + key, d.statuses[key] || 0, text]));
  const bounds = d.gap_bounds;
  bars("gaps", (d.gaps || []).map((n, i) => [i === 0 ? "none" : "s2xx", n, i === 0 ? "less than the delay" : i < bounds.length ? `${bounds[i - 1]} to ${bounds[i]} × delay` : `more than ${bounds[i - 1]} ×`]));
  byId("drawer-no-requests").hidden = d.requests.length > 0;
  byId("drawer-requests").replaceChildren(...d.requests.map(r => make("li", "",
    make("b", !r.status || r.status === 429 || r.status >= 500 ? "bad" : "", String(r.status || "no response")),
    make("span", "data", plain(r.url, 300)),
    make("p", "soft", `${r.kind === "page" ? "" : r.kind + " · "}${ago(r.time, now)} · took ${short(ms(r.took))}${r.error ? " · " + plain(r.error, 200) : ""}`))));
}

// bars shows numbers as bars.
function bars(what, all) {
  const some = all.some(([, n]) => n > 0), most = Math.max(1, ...all.map(([, n]) => n));
  byId("drawer-no-" + what).hidden = some;
  byId("drawer-" + what).replaceChildren(...(some ? all.filter(([, n]) => n > 0 || what === "gaps") : []).map(([kind, n, text]) => {
    const part = make("span", "part " + kind);
    part.style.width = `${100 * n / most}%`;
    part.hidden = n === 0;
    return make("li", "", make("span", "", text), make("span", "track", part), make("span", "times", number(n)));
  }));
}

// robots shows the robots.txt of the host, of https or else of http.
async function robots() {
  const of = name;
  for (const scheme of ["https", "http"]) {
    let m;
    try {
      const answer = await fetch("robots.json?" + new URLSearchParams({ robots: `${scheme}://${of}/robots.txt`, url: "/", name: "", from: 1 }));
      m = answer.ok ? await answer.json() : null;
    } catch {
      m = null;
    }
    if (of !== name) return;
    if (m?.file) return fileOf(m);
  }
  set(byId("drawer-robots"), "The crawl has not read this file since the page was mounted.");
}

function fileOf(m) {
  const f = m.file;
  set(byId("drawer-robots"), `${plain(m.robots, 200)} · ${f.status ? `status ${f.status}` : "no response"} · ${ago(f.time, clock())}${m.total > m.lines?.length ? ` · the first ${m.lines.length} of ${number(m.total)} lines` : ""}${f.error ? " · " + plain(f.error, 200) : ""}`);
  byId("drawer-file").hidden = !m.lines?.length;
  byId("drawer-file").replaceChildren(...(m.lines || []).map((text, i) =>
    make("li", "", make("span", "n", String(m.from + i)), make("code", text.trimStart().startsWith("#") ? "comment" : "", plain(text, 2000) || " "))));
}
