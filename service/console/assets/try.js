// Forms that send requests to an endpoint, by the service, as the page itself may only talk to the console.
import { act, follow, load } from "./api.js";
import { el, table } from "./dom.js";

const AS_JSON = /int|numeric|float|double|real|bool|json|\[\]/;
const SECRET = /passw|passphrase|secret|pwd/i;
// Characters of a stream that the page shows.
const MOST_EVENTS = 200_000;

// Credentials of further requests, until the page is loaded again.
const credentials = { authorization: "", cookie: "", apiKey: "" };

// Returns the value of an input in a JSON body: of most types what the text means as JSON, else the text.
function parsed(type, text) {
  if (!AS_JSON.test(type)) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

// Returns path and body of a request with the values of the inputs; empty ones are left out.
export function request(item, values) {
  const { parameters, requestParamType, upload } = item.description;
  const given = parameters.filter((one) => (values.get(one) ?? "") !== "");
  const path = item.path.replace(/\/\{([^}?]+)\??\}/g, (_, name) => {
    const found = given.find((one) => one.isPathParameter && (one.name === name || one.originalName === name));
    return found ? `/${encodeURIComponent(values.get(found))}` : "";
  });
  const others = given.filter((one) => !one.isPathParameter);
  if (requestParamType === "BodyJson" && !upload) return { path, body: JSON.stringify(Object.fromEntries(others.map((one) => [one.name, parsed(one.type, values.get(one))]))) };
  const query = new URLSearchParams(others.map((one) => [one.name, values.get(one)]));
  return { path: others.length ? `${path}?${query}` : path, body: "" };
}

// Returns the multipart body of files, in base64.
async function multipart(files) {
  const form = new FormData();
  for (const file of files) form.append("file", file, file.name);
  const encoded = new Response(form);
  const contentType = encoded.headers.get("content-type");
  const body = await encoded.blob();
  const url = await new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => resolve(reader.result));
    reader.addEventListener("error", () => reject(reader.error));
    reader.readAsDataURL(body);
  });
  return { contentType, bodyBase64: url.slice(url.indexOf(",") + 1) };
}

const pretty = (text) => {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
};

const cookiesOf = (response) => response.headers.filter(([name]) => name === "set-cookie").map(([, value]) => value.split(";")[0]);

// Takes over the session or token of a sign-in. Returns whether there was one.
function takeCredentials(response) {
  const cookies = cookiesOf(response);
  if (cookies.length) credentials.cookie = cookies.join("; ");
  try {
    const body = JSON.parse(response.body);
    const token = body.access_token ?? body.accessToken ?? body.token;
    if (typeof token === "string") credentials.authorization = `Bearer ${token}`;
    return cookies.length > 0 || typeof token === "string";
  } catch {
    return cookies.length > 0;
  }
}

// Fetches an antiforgery token as pages do. The token belongs to the cookie that comes with it, and to the session.
async function antiforgery(path) {
  const response = await act("send-request", { method: "GET", path, ...credentials });
  if (response.status !== 200) throw new Error(`no antiforgery token: GET ${path} responds ${response.status}`);
  return { antiforgery: JSON.parse(response.body).token, cookie: [credentials.cookie, ...cookiesOf(response)].filter(Boolean).join("; ") };
}

function answer(method, path, response) {
  return [
    el("p", {}, `${method} ${path}: `, el("strong", { class: response.status < 400 ? "good" : "bad" }, response.status), ` in ${response.milliseconds} ms${response.complete ? "" : ", the beginning of it"}`),
    el("pre", { tabindex: "0" }, pretty(response.body)),
    table(`Headers of ${method} ${path}`, [["Name", ([name]) => name], ["Value", ([, value]) => value]], response.headers),
  ];
}

// The form of an endpoint. `signedIn` is called after its response has credentials that further requests send.
function form(item, label, signedIn) {
  const { parameters, upload, login } = item.description;
  const inputs = new Map(parameters.map((one) => [one, el("input", { type: SECRET.test(one.name) ? "password" : "text", required: Boolean(one.isPathParameter), spellcheck: "false", autocomplete: "off" })]));
  const files = upload ? el("input", { type: "file", multiple: true, required: true }) : null;
  const result = el("div", { role: "status" });
  const send = el("button", { type: "submit", class: "primary" }, login ? "Sign in" : "Send");
  const element = el("form", { class: "filter", "aria-label": label, submit: async (event) => {
    event.preventDefault();
    send.disabled = true;
    try {
      const { path, body } = request(item, new Map([...inputs].map(([one, input]) => [one, input.value])));
      const content = files === null ? { body } : await multipart(files.files);
      const token = item.antiforgery?.path ? await antiforgery(item.antiforgery.path) : {};
      const response = await act("send-request", { method: item.method, path, ...content, ...credentials, ...token });
      result.replaceChildren(...answer(item.method, path, response));
      if (login && response.status < 400 && takeCredentials(response)) signedIn();
    } catch (error) {
      result.replaceChildren(el("p", { class: "bad" }, error.message));
    } finally {
      send.disabled = false;
    }
  } }, [...inputs].map(([one, input]) => el("label", {}, `${one.name} (${one.type})`, input)), files === null ? "" : el("label", {}, "Files", files), send);
  const hint = item.antiforgery && !item.antiforgery.path ? el("p", { class: "soft" }, "With a session by cookie, and for forms, this request needs an antiforgery token. Set Antiforgery:TokenPath, so that it can be fetched here.") : "";
  return el("div", {}, element, hint, result);
}

// A button that opens the event stream of an endpoint, and its events as they arrive.
function stream(item) {
  const state = el("p", { role: "status" });
  const events = el("pre", { tabindex: "0", role: "log", "aria-label": "Events", hidden: true });
  const older = el("p", { class: "soft", hidden: true }, `Only the last ${MOST_EVENTS.toLocaleString("en")} characters are shown.`);
  let size = 0;
  const show = (text) => {
    events.hidden = false;
    size += text.length;
    events.append(text);
    while (size > MOST_EVENTS) {
      older.hidden = false;
      const first = events.firstChild;
      const surplus = Math.min(size - MOST_EVENTS, first.data.length);
      if (surplus === first.data.length) first.remove();
      else first.deleteData(0, surplus);
      size -= surplus;
    }
    events.scrollTop = events.scrollHeight;
  };
  let close = null;
  const end = (text) => {
    close?.();
    close = null;
    button.textContent = "Open the stream";
    state.textContent = text;
  };
  const parameters = item.description.parameters.filter((one) => one.isPathParameter);
  const inputs = new Map(parameters.map((one) => [one, el("input", { type: "text", required: true, spellcheck: "false" })]));
  const button = el("button", { type: "submit" }, "Open the stream");
  const element = el("form", { class: "filter", "aria-label": "Event stream", submit: (event) => {
    event.preventDefault();
    if (close) return end("closed");
    const path = request({ ...item, path: item.stream, description: { parameters, requestParamType: "QueryString" } }, new Map([...inputs].map(([one, input]) => [one, input.value]))).path;
    events.replaceChildren();
    older.hidden = true;
    size = 0;
    button.textContent = "Close the stream";
    state.textContent = `GET ${path}: opening`;
    close = follow("open-stream", { path, ...credentials }, (part) => {
      if (part.status) state.textContent = `GET ${path}: ${part.status}`;
      if (part.error) state.textContent = part.error;
      if (part.text) show(part.text);
    }, (error) => end(error ? error.message : `${state.textContent}, ended`));
  } }, [...inputs].map(([one, input]) => el("label", {}, `${one.name} (${one.type})`, input)), button);
  return { element: el("div", {}, el("h4", {}, `Events of ${item.stream}`), element, state, older, events), stop: () => close?.() };
}

// Inputs with the credentials of requests, and a form for each endpoint of sign-in.
function signIn(item) {
  const fields = [["authorization", "Authorization", "Bearer …"], ["cookie", "Cookie", "name=value"], ...(item.apiKeyHeader ? [["apiKey", item.apiKeyHeader, ""]] : [])];
  const inputs = fields.map(([name, label, placeholder]) => [name, label, el("input", { type: "text", autocomplete: "off", spellcheck: "false", placeholder, value: credentials[name], input: (event) => { credentials[name] = event.target.value; } })]);
  const state = el("p", { role: "status", class: "soft" });
  const shown = (text) => {
    for (const [name, , input] of inputs) input.value = credentials[name];
    state.textContent = text;
  };
  const forget = el("button", { type: "button", click: () => {
    for (const name of Object.keys(credentials)) credentials[name] = "";
    shown("Requests are sent without credentials.");
  } }, "Forget");
  const forms = item.signIn.filter((one) => one.method !== item.method || one.path !== item.path).map((one) => {
    const room = el("div");
    return el("details", { toggle: async (event) => {
      if (!event.target.open || room.childElementCount) return;
      try {
        room.replaceChildren(form(await load("endpoint", one), `Sign in by ${one.method} ${one.path}`, () => shown("Signed in: requests are sent with these credentials.")));
      } catch (error) {
        room.replaceChildren(el("p", { class: "bad" }, error.message));
      }
    } }, el("summary", {}, `Sign in by ${one.method} ${one.path}`), room);
  });
  return { shown, element: el("div", {}, el("div", { class: "filter", role: "group", "aria-label": "Credentials" }, inputs.map(([, label, input]) => el("label", {}, label, input)), forget), state, forms) };
}

// Returns an element with the forms of an endpoint, and the function that closes its stream.
export async function tryIt(item) {
  const { actions } = await load("actions");
  const heading = el("h3", {}, "Try it");
  const without = (reason) => ({ element: el("div", {}, heading, el("p", { class: "soft" }, reason)), stop: () => {} });
  if (!actions.some((one) => one.name === "send-request")) return without("Console:AllowActions permits to send requests from here.");
  if (item.internal) return without("Only other endpoints can call it.");
  const access = signIn(item);
  const events = item.stream ? stream(item) : null;
  const signedIn = () => access.shown("Signed in: requests are sent with these credentials.");
  return { element: el("div", {}, heading, access.element, form(item, "Try it", signedIn), events ? events.element : ""), stop: () => events?.stop() };
}
