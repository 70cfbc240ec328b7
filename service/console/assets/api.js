// Requests to the console's own JSON endpoints.

const HIDDEN = 30_000;
const AGAIN = 5_000;

// Returns the response to a request, without a session the page to sign in at. Throws an error with the reason of a failure.
async function ask(path, options) {
  let response;
  try {
    response = await fetch(`/console/api/${path}`, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The service does not answer. If it was stopped, start it and sign in again with the link of its log.");
  }
  if (response.status === 401) location.assign("/console/sign-in");
  if (response.ok) return response;
  const { detail } = await response.json().catch(() => ({}));
  throw new Error(detail ?? `The service has responded with status ${response.status}.`);
}

const filled = (parameters) => Object.entries(parameters).filter(([, value]) => value !== "" && value !== undefined);

export async function load(name, parameters = {}) {
  return (await ask(`${name}?${new URLSearchParams(filled(parameters))}`)).json();
}

// Returns the effective value of a key of the configuration.
export async function configured(key) {
  const { keys } = await load("configuration", { search: key });
  return keys.find((one) => one.key === key)?.value;
}

const action = (parameters) => ({
  method: "POST",
  headers: { "content-type": "application/json", "x-rowcall-console": "1" },
  body: JSON.stringify(Object.fromEntries(filled(parameters))),
});

// Runs an action of an operator.
export async function act(name, parameters) {
  return (await ask(`actions/${name}`, action(parameters))).json();
}

// Calls `take` with each event until the returned function is called. `state` gets the words for whether the stream is open. A
// stream ends if its tab is hidden for some time, as a browser has few connections to a service, and begins again with the tab.
export function live(name, parameters, take, state) {
  const path = `${name}?${new URLSearchParams(parameters)}`;
  let source = null;
  let timer = null;
  const open = () => {
    source = new EventSource(`/console/api/${path}`);
    source.addEventListener("open", () => state("live"));
    source.addEventListener("message", (event) => take(JSON.parse(event.data)));
    source.addEventListener("error", () => {
      state("connection lost, trying again");
      if (source.readyState === EventSource.CLOSED) refused();
    });
  };
  // A refused stream is not opened again by the browser. A request shows why it was refused (401, 503).
  const refused = async () => {
    const controller = new AbortController();
    clearTimeout(timer);
    timer = setTimeout(open, AGAIN);
    try {
      await ask(path, { signal: controller.signal });
      controller.abort();
    } catch (error) {
      state(`${error.message} Trying again.`);
    }
  };
  const close = () => {
    clearTimeout(timer);
    source?.close();
    source = null;
  };
  const change = () => {
    clearTimeout(timer);
    if (document.hidden) {
      timer = setTimeout(() => {
        close();
        state("paused");
      }, HIDDEN);
    } else if (source === null || source.readyState === EventSource.CLOSED) open();
  };
  document.addEventListener("visibilitychange", change);
  open();
  return () => {
    document.removeEventListener("visibilitychange", change);
    close();
  };
}

// Runs an action whose results arrive as events, and calls `take` with each until it ends or the returned function is
// called. `ended` gets the error, if there is one.
export function follow(name, parameters, take, ended) {
  const controller = new AbortController();
  const read = async () => {
    const response = await ask(`actions/${name}`, { ...action(parameters), signal: controller.signal });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      const lines = (rest + part.value).split("\n");
      rest = lines.pop();
      for (const line of lines) if (line.startsWith("data: ")) take(JSON.parse(line.slice(6)));
    }
  };
  read().then(() => ended(null), (error) => {
    if (!controller.signal.aborted) ended(error);
  });
  return () => controller.abort();
}
