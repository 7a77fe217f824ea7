// Texts for people. What comes from the crawl is data: it goes into the page as text alone.

// ms returns the milliseconds of a duration as Go writes it: "1h2m3.5s".
export function ms(text) {
  const unit = { ns: 1e-6, us: 1e-3, "µs": 1e-3, ms: 1, s: 1e3, m: 6e4, h: 3.6e6 };
  let sum = 0;
  for (const [, n, u] of (text || "").matchAll(/([\d.]+)(ns|us|µs|ms|s|m|h)/g)) sum += n * unit[u];
  return sum;
}

// short writes milliseconds as people do.
export function short(t) {
  if (!(t > 0)) return "0 s";
  if (t < 1000) return `${(t / 1000).toFixed(t < 100 ? 3 : 2).replace(/0+$/, "")} s`;
  if (t < 10000) return `${+(t / 1000).toFixed(2)} s`;
  const s = Math.round(t / 1000);
  if (s < 60) return `${s} s`;
  if (s < 3600) return s % 60 ? `${Math.floor(s / 60)} min ${s % 60} s` : `${s / 60} min`;
  if (s < 172800) return `${Math.floor(s / 3600)} h ${Math.floor(s % 3600 / 60)} min`;
  return `${number(Math.floor(s / 86400))} days`;
}

// whole is short without fractions, for what counts down.
export const whole = t => short(t < 10000 ? Math.ceil(t / 1000) * 1000 : t);

const format = new Intl.NumberFormat("en");
export const number = n => format.format(n || 0);
export const many = (n, one, more) => `${number(n)} ${n === 1 ? one : more || one + "s"}`;

// plain shows what cannot be seen, such as marks that turn the direction of a text, and cuts what is too long.
export function plain(text, most = 300) {
  let s = String(text ?? "");
  if (s.length > most) s = s.slice(0, most) + "…";
  return s.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, c => "\\u" + c.codePointAt(0).toString(16).padStart(4, "0"));
}

// set changes a text where it differs.
export function set(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// make returns an element with a class and children, texts among them.
export function make(tag, name, ...children) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  element.append(...children);
  return element;
}

export const byId = id => document.getElementById(id);

// why says where a delay comes from.
export function why(source, line, status) {
  switch (source) {
    case "crawl_delay": return line ? `Crawl-delay, robots.txt line ${line}` : "Crawl-delay of its robots.txt";
    case "min_delay": return "MinDelay of this crawl";
    case "back_off": return "back-off after 429 or 503";
    case "retry_after": return `Retry-After of its answer ${status || "429"}`;
  }
  return "nobody asks for one";
}

// reasons are why a request is denied, where no rule is.
export const reasons = {
  rule: "by a rule", no_rule: "no rule matches", no_robots: "there is no robots.txt", unreachable: "robots.txt cannot be read, so nothing is allowed",
  site_down: "the site does not answer", delay: "its crawl delay is over MaxDelay", ignored: "robots.txt is not asked for", other: "it is not robots.txt that denies",
};

// ago says how long a time ago is.
export function ago(time, now) {
  const t = now - Date.parse(time);
  return t < 1500 ? "now" : `${short(Math.floor(t / 1000) * 1000)} ago`;
}

// times writes how often a delay fits into a gap.
export const times = ratio => `${(Math.floor(ratio * 100) / 100).toFixed(2)} ×`;
