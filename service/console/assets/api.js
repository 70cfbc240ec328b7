// Requests to the console's own JSON endpoints.

export async function load(name, parameters = {}) {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== "" && value !== undefined));
  const response = await fetch(`/console/api/${name}?${query}`);
  if (response.status === 401) location.assign("/console/sign-in");
  const result = await response.json();
  if (!response.ok) throw new Error(result.detail);
  return result;
}

// Runs an action of an operator.
export async function act(name, parameters) {
  const body = JSON.stringify(Object.fromEntries(Object.entries(parameters).filter(([, value]) => value !== "")));
  const headers = { "content-type": "application/json", "x-rowcall-console": "1" };
  const response = await fetch(`/console/api/actions/${name}`, { method: "POST", headers, body });
  if (response.status === 401) location.assign("/console/sign-in");
  const result = await response.json();
  if (!response.ok) throw new Error(result.detail);
  return result;
}

// Calls `take` with each event until the returned function is called. `state` gets the words for whether the stream is open.
export function live(name, parameters, take, state) {
  const source = new EventSource(`/console/api/${name}?${new URLSearchParams(parameters)}`);
  source.addEventListener("open", () => state("live"));
  source.addEventListener("message", (event) => take(JSON.parse(event.data)));
  source.addEventListener("error", () => {
    state("connection lost, trying again");
    // A refused stream (401, 503) is closed; a request shows why.
    if (source.readyState === EventSource.CLOSED) load("schema").catch((error) => state(error.message));
  });
  return () => source.close();
}

// Runs an action whose results arrive as events, and calls `take` with each until it ends or the returned function is
// called. `ended` gets the error, if there is one.
export function follow(name, parameters, take, ended) {
  const controller = new AbortController();
  const body = JSON.stringify(Object.fromEntries(Object.entries(parameters).filter(([, value]) => value !== "")));
  const headers = { "content-type": "application/json", "x-rowcall-console": "1" };
  const read = async () => {
    const response = await fetch(`/console/api/actions/${name}`, { method: "POST", headers, body, signal: controller.signal });
    if (!response.ok) throw new Error((await response.json()).detail);
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
