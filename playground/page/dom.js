// This file has small functions to change the page.

export const byId = id => document.getElementById(id);

// make returns an element. Children are elements or texts.
export function make(tag, kind, ...children) {
  const element = document.createElement(tag);
  if (kind) element.className = kind;
  element.append(...children);
  return element;
}

// set sets the text of an element if it differs, so that screen readers announce only changes.
export function set(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// fill replaces the children of an element. If a button of it has the focus, the button at the same
// place gets it.
export function fill(element, ...children) {
  const at = [...element.querySelectorAll("button")].indexOf(document.activeElement);
  element.replaceChildren(...children);
  if (at >= 0) element.querySelectorAll("button")[at]?.focus({ preventScroll: true });
}

// number returns a number with separators, and many also returns its unit.
export const number = n => n.toLocaleString("en");
export const many = (n, unit) => `${number(n)} ${unit}${n === 1 ? "" : "s"}`;

// plain returns a text in which characters that are invisible, or that change the direction of the
// text, are escaped. It is cut at a length.
export function plain(text, longest = 300) {
  const cut = text.length > longest ? text.slice(0, longest) + "…" : text;
  return cut.replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g, c => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
}
