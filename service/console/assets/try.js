// A form that sends a request to an endpoint, by the service, as the page itself may only talk to the console.
import { act, load } from "./api.js";
import { el, table } from "./dom.js";

const AS_JSON = /int|numeric|float|double|real|bool|json|\[\]/;

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
  const { parameters, requestParamType } = item.description;
  const given = parameters.filter((one) => (values.get(one) ?? "") !== "");
  const path = item.path.replace(/\/\{([^}?]+)\??\}/g, (_, name) => {
    const found = given.find((one) => one.isPathParameter && (one.name === name || one.originalName === name));
    return found ? `/${encodeURIComponent(values.get(found))}` : "";
  });
  const others = given.filter((one) => !one.isPathParameter);
  if (requestParamType === "BodyJson") return { path, body: JSON.stringify(Object.fromEntries(others.map((one) => [one.name, parsed(one.type, values.get(one))]))) };
  const query = new URLSearchParams(others.map((one) => [one.name, values.get(one)]));
  return { path: others.length ? `${path}?${query}` : path, body: "" };
}

const pretty = (text) => {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
};

export async function tryIt(item) {
  const { actions } = await load("actions");
  const heading = el("h3", {}, "Try it");
  if (!actions.some((one) => one.name === "send-request")) return el("div", {}, heading, el("p", { class: "soft" }, "Console:AllowActions permits to send requests from here."));
  if (item.internal) return el("div", {}, heading, el("p", { class: "soft" }, "Only other endpoints can call it."));
  const inputs = new Map(item.description.parameters.map((one) => [one, el("input", { type: "text", required: Boolean(one.isPathParameter), spellcheck: "false" })]));
  const authorization = el("input", { type: "text", autocomplete: "off", spellcheck: "false", placeholder: "Bearer …" });
  const result = el("div", { role: "status" });
  const send = el("button", { type: "submit", class: "primary" }, "Send");
  const form = el("form", { class: "filter", "aria-label": "Try it", submit: async (event) => {
    event.preventDefault();
    send.disabled = true;
    const values = new Map([...inputs].map(([one, input]) => [one, input.value]));
    const { path, body } = request(item, values);
    try {
      const response = await act("send-request", { method: item.method, path, body, authorization: authorization.value });
      result.replaceChildren(
        el("p", {}, `${item.method} ${path}: `, el("strong", { class: response.status < 400 ? "good" : "bad" }, response.status), ` in ${response.milliseconds} ms${response.complete ? "" : ", the beginning of it"}`),
        el("pre", { tabindex: "0" }, pretty(response.body)),
        table("Headers", [["Name", ([name]) => name], ["Value", ([, value]) => value]], response.headers),
      );
    } catch (error) {
      result.replaceChildren(el("p", { class: "bad" }, error.message));
    } finally {
      send.disabled = false;
    }
  } }, [...inputs].map(([one, input]) => el("label", {}, `${one.name} (${one.type})`, input)), el("label", {}, "Authorization", authorization), send);
  return el("div", {}, heading, form, result);
}
