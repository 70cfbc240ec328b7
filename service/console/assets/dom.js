// Elements from data. Every text of the service becomes a text node, never markup.

// Creates an element: attributes are set by setAttribute, functions are listeners, children are nodes or texts.
export function el(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(key, value);
    else if (value !== null && value !== false) element.setAttribute(key, value === true ? "" : String(value));
  }
  element.append(...children.flat().map((child) => (child instanceof Node ? child : shown(child))));
  return element;
}

// Returns the text of a value of the service.
export function shown(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value === "object") return JSON.stringify(value);
  return String(value);
}

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const fraction = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

export const number = (value) => (value === null || value === undefined ? "–" : Math.abs(value) < 100 && !Number.isInteger(value) ? fraction.format(value) : whole.format(value));
export const percent = (value) => (value === null || value === undefined ? "–" : `${fraction.format(value * 100)} %`);
export const bytes = (value) => (value === undefined ? "–" : `${fraction.format(value / 1048576)} MiB`);
// The time of a text in ISO 8601, as PostgreSQL has it, or the text itself, such as infinity.
export const time = (text) => (text === null || text === undefined || Number.isNaN(Date.parse(text)) ? shown(text) : new Date(text).toLocaleString());
export const moment = (seconds) => new Date(seconds * 1000).toLocaleString();
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 1) return `${fraction.format(seconds * 1000)} ms`;
  if (seconds < 300) return `${fraction.format(seconds)} s`;
  return seconds < 7200 ? `${fraction.format(seconds / 60)} min` : `${fraction.format(seconds / 3600)} h`;
}

// A table with a heading. columns: [title, function of a row, whether it is a number].
export function table(title, columns, rows) {
  const heading = el("h3", {}, title);
  if (!rows.length) return el("section", {}, heading, el("p", { class: "soft" }, "None."));
  const head = el("tr", {}, columns.map(([name, , isNumber]) => el("th", { scope: "col", class: isNumber ? "number" : null }, name)));
  const body = rows.map((row) => el("tr", {}, columns.map(([, value, isNumber]) => el("td", { class: isNumber ? "number" : null }, value(row)))));
  const scroll = el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title }, el("table", {}, el("thead", {}, head), el("tbody", {}, body)));
  return el("section", {}, heading, scroll);
}

const FOCUSABLE = "a, button, input, select, textarea, [tabindex]";
const named = (element) => element.getAttribute("aria-label") ?? element.textContent;

// Replaces the children of an element again and again, and keeps the focus and how far regions are scrolled.
export function redraw(room, ...children) {
  const focusable = [...room.querySelectorAll(FOCUSABLE)];
  const focused = focusable.indexOf(document.activeElement);
  const scrolled = new Map(focusable.filter((one) => one.scrollLeft).map((one) => [named(one), one.scrollLeft]));
  room.replaceChildren(...children);
  if (focused < 0 && !scrolled.size) return;
  const now = [...room.querySelectorAll(FOCUSABLE)];
  for (const one of now) if (scrolled.has(named(one))) one.scrollLeft = scrolled.get(named(one));
  if (focused >= 0 && now[focused] && named(now[focused]) === named(focusable[focused])) now[focused].focus({ preventScroll: true });
}

export function card(title, value, mark = null) {
  return el("div", {}, el("dt", {}, title), el("dd", { class: mark }, value));
}

const SVG = "http://www.w3.org/2000/svg";

// Creates an element of a drawing.
export function svg(name, attributes, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

// A line chart of the last values, oldest first; null is a gap.
export function chart(title, values, format) {
  const numbers = values.filter((value) => value !== null);
  const most = Math.max(...numbers);
  const last = numbers.length ? format(numbers[numbers.length - 1]) : "no values";
  const points = values.map((value, place) => (value === null ? null : `${120 - values.length + place},${98 - (most > 0 ? value / most : 0) * 94}`));
  const line = svg("polyline", { points: points.filter((point) => point !== null).join(" ") });
  const label = `${title}: ${last}, at most ${numbers.length ? format(most) : "–"}`;
  const drawing = svg("svg", { class: "chart", viewBox: "0 0 120 100", preserveAspectRatio: "none", role: "img", "aria-label": label }, line);
  return el("figure", {}, el("figcaption", {}, `${title}: ${last}`), drawing);
}
