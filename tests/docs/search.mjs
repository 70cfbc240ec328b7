// Asks the search of the site: the worker that pages start, run by node. Prints the first page for each query as JSON.
//
//     node search.mjs SITE QUERY …

import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { createContext, runInContext } from "node:vm";

const [site, ...queries] = process.argv.slice(2);
const workers = join(site, "assets", "javascripts", "workers");
const script = readdirSync(workers).find((name) => /^search\..*\.min\.js$/.test(name));
const index = JSON.parse(readFileSync(join(site, "search", "search_index.json"), "utf8"));

let handler;
let answered;
const scope = createContext({
  console,
  addEventListener: (_type, listener) => (handler = listener),
  postMessage: (message) => answered(message),
});
scope.self = scope;
runInContext(readFileSync(join(workers, script), "utf8"), scope);

const ask = (message) =>
  new Promise((resolve) => {
    answered = resolve;
    handler({ data: message });
  });

await ask({ type: 0, data: { config: index.config, docs: index.docs, options: { suggest: true } } });
const found = {};
for (const query of queries) {
  const { data } = await ask({ type: 2, data: query });
  found[query] = data.items.slice(0, 3).map((page) => page[0].location.replace(/#.*/, ""));
}
console.log(JSON.stringify(found));
