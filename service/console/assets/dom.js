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
export const bytes = (value) => (value === null || value === undefined ? "–" : `${fraction.format(value / 1048576)} MiB`);
// An element with a time in the zone of the browser, and in UTC as its title.
function local(date) {
  const iso = date.toISOString();
  return el("time", { datetime: iso, title: `${iso.slice(0, 10)} ${iso.slice(11, 23)} UTC` }, date.toLocaleString());
}

// The time of a text in ISO 8601, as PostgreSQL has it, or the text itself, such as infinity.
export const time = (text) => (text === null || text === undefined || Number.isNaN(Date.parse(text)) ? shown(text) : local(new Date(text)));
export const moment = (seconds) => (seconds === null || seconds === undefined ? "–" : local(new Date(seconds * 1000)));
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 1) return `${fraction.format(seconds * 1000)} ms`;
  if (seconds < 300) return `${fraction.format(seconds)} s`;
  return seconds < 7200 ? `${fraction.format(seconds / 60)} min` : `${fraction.format(seconds / 3600)} h`;
}

export const ACTION = "Action";

// Characters from which a text of a cell is broken anywhere.
const LONG = 32;

// A column of numbers: its title, and the member of a row with the number.
export const measured = (title, name, format = number) => [title, (row) => format(row[name]), (row) => row[name]];

// By which column each table is sorted, by page and name of the table, until the page is loaded again.
const orders = new Map();

// Returns what a row is sorted by: the number of a measured column, else the order, the time or the text of its cell.
function sortKey([, value, key], row) {
  if (key) return key(row);
  const cell = value(row);
  if (!(cell instanceof Element)) return shown(cell);
  return cell.dataset.order === undefined ? cell.getAttribute("datetime") ?? cell.textContent : Number(cell.dataset.order);
}

const absent = (value) => value === null || value === undefined || value === "" || value === "–";

function sorted(column, down, rows) {
  const keyed = rows.map((row) => [sortKey(column, row), row]);
  keyed.sort(([a], [b]) => {
    if (absent(a) || absent(b)) return absent(a) - absent(b);
    const order = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
    return down ? -order : order;
  });
  return keyed.map(([, row]) => row);
}

function cell(content, key) {
  const text = content instanceof Element ? content.textContent : shown(content);
  return el("td", { class: key ? "number" : text.length > LONG ? "long" : null }, content);
}

// The options of a table whose rows cannot be read if the report says so, with the reason.
export const part = (report, name, empty) => ({ empty: report.unavailable[name] ? `Not available: ${report.unavailable[name]}.` : empty });

// A table with a heading. columns: [title, function of a row, for numbers a function that returns the number to sort by]. A column
// is sorted by its heading: numbers from the largest, texts from the first, then the other way round, then as before. empty: the
// text without rows. name: stays the same while the title changes.
export function table(title, columns, rows, { empty = "None.", name = title } = {}) {
  const heading = el("h3", {}, title);
  if (!rows.length) return el("section", {}, heading, el("p", { class: "soft" }, empty));
  const place = `${location.hash.split("?")[0]} ${name}`;
  const scroll = el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title });
  const draw = () => {
    const { by, down } = orders.get(place) ?? {};
    const head = columns.map(([label, , key]) => {
      if (rows.length < 2 || label === ACTION) return el("th", { scope: "col", class: key ? "number" : null }, label);
      const order = label === by ? (down ? "descending" : "ascending") : null;
      const button = el("button", { type: "button", class: "sort", click: () => {
        const first = Boolean(key);
        if (order === null) orders.set(place, { by: label, down: first });
        else if (down === first) orders.set(place, { by: label, down: !first });
        else orders.delete(place);
        redraw(scroll, draw());
      } }, label);
      return el("th", { scope: "col", class: key ? "number" : null, "aria-sort": order }, button);
    });
    const column = columns.find(([label]) => label === by);
    const body = (column ? sorted(column, down, rows) : rows).map((row) => el("tr", {}, columns.map(([, value, key]) => cell(value(row), key))));
    return el("table", {}, el("thead", {}, el("tr", {}, head)), el("tbody", {}, body));
  };
  scroll.append(draw());
  return el("section", {}, heading, scroll);
}

const FOCUSABLE = "a, button, input, select, textarea, [tabindex]";
const named = (element) => element.getAttribute("aria-label") ?? element.textContent;

// Replaces the children of an element again and again, and keeps the focus and how far regions are scrolled. The focused element
// is found again by its name and its place among those with the same name, as others come and go.
export function redraw(room, ...children) {
  const focusable = [...room.querySelectorAll(FOCUSABLE)];
  const focused = focusable.find((one) => one === document.activeElement);
  const alike = (all) => all.filter((one) => named(one) === named(focused));
  const place = focused ? alike(focusable).indexOf(focused) : -1;
  const scrolled = new Map(focusable.filter((one) => one.scrollLeft).map((one) => [named(one), one.scrollLeft]));
  room.replaceChildren(...children);
  if (!focused && !scrolled.size) return;
  const now = [...room.querySelectorAll(FOCUSABLE)];
  for (const one of now) if (scrolled.has(named(one))) one.scrollLeft = scrolled.get(named(one));
  if (focused) alike(now)[place]?.focus({ preventScroll: true });
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

// A line chart of the last values, oldest first, from 0 to the largest; null is a gap.
export function chart(title, values, format) {
  const numbers = values.filter((value) => value !== null && value !== undefined);
  const most = Math.max(...numbers);
  const last = numbers.length ? format(numbers[numbers.length - 1]) : "no values";
  const points = values.map((value, place) => (value === null || value === undefined ? null : `${120 - values.length + place},${98 - (most > 0 ? value / most : 0) * 94}`));
  const line = svg("polyline", { points: points.filter((point) => point !== null).join(" ") });
  const label = `${title}: ${last}, at most ${numbers.length ? format(most) : "–"}`;
  const drawing = svg("svg", { class: "chart", viewBox: "0 0 120 100", preserveAspectRatio: "none", role: "img", "aria-label": label }, line);
  const peak = el("span", { class: "peak" }, numbers.length ? `max ${format(most)}` : "");
  return el("figure", {}, el("figcaption", {}, el("span", {}, `${title}: ${last}`), peak), drawing);
}
