const find = id => document.getElementById(id);

async function refresh() {
  const products = await (await fetch("/api/products?order=name")).json();
  find("products").replaceChildren(...products.map(product => {
    const item = document.createElement("li");
    const label = document.createElement("label");
    const quantity = Object.assign(document.createElement("input"), {
      type: "number", min: 0, value: 0, name: `product-${product.id}`, disabled: !product.available });
    label.append(`${product.name}, ${product.price.toFixed(2)} `, quantity);
    item.append(label);
    return item;
  }));
}

find("order").addEventListener("submit", async event => {
  event.preventDefault();
  const form = new FormData(event.target);
  const lines = [...form].filter(([name, value]) => name.startsWith("product-") && Number(value) > 0)
    .map(([name, value]) => ({ productId: Number(name.slice("product-".length)), quantity: Number(value) }));
  const response = await fetch("/api/orders", {
    method: "POST",
    headers: { "content-type": "application/json", "idempotency-key": crypto.randomUUID() },
    body: JSON.stringify({ email: form.get("email"), lines }),
  });
  const answer = await response.json();
  find("message").textContent = response.ok ? `Order ${answer.orderId}, ${answer.total}` : answer.detail ?? answer.title;
  if (response.ok) await refresh();
});

await refresh();
