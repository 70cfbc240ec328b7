// The list of albums, and the stock of each, which follows what is sold and delivered elsewhere.

import { albums, artistNames } from "./api/catalogue.js";
import { bestSellers } from "./api/reports.js";
import { buy } from "./api/shop.js";
import { createStockEventSource, stock, type IStockResponse } from "./api/stock.js";
import { customer } from "./customer.js";
import { answered, attempt, element, field, made, onSubmit, say } from "./page.js";

const search = element("search", HTMLFormElement);
const inStock = search.elements.namedItem("inStock") as HTMLInputElement;
const list = element("albums", HTMLTableSectionElement);
const left = new Map<number, number>();
const cells = new Map<number, HTMLElement>();

export function showAlbums(): void {
    onSubmit(search, listAlbums);
    search.addEventListener("input", () => attempt(listAlbums));
    follow();
    attempt(nameArtists);
}

/** Everything is asked for again whenever the stream opens: what happened while it was closed came over none. */
function follow(): void {
    const changes = createStockEventSource();
    changes.onopen = () => attempt(refresh);
    changes.onmessage = event => {
        const { albumId, stock } = JSON.parse(event.data) as IStockResponse;
        left.set(albumId, stock);
        showStock(albumId);
        attempt(listBestSellers);
    };
}

async function refresh(): Promise<void> {
    for (const { albumId, stock: count } of (await answered(stock())).response) {
        left.set(albumId, count);
    }
    await Promise.all([listAlbums(), listBestSellers()]);
}

async function listAlbums(): Promise<void> {
    const asked = { artist: field(search, "artist") || null, inStock: inStock.checked };
    const { response: found } = await answered(albums(asked));
    cells.clear();
    list.replaceChildren(
        ...found.map(album => {
            const row = document.createElement("tr");
            const count = made("td", "");
            const button = made("button", "Buy");
            button.addEventListener("click", () => attempt(() => sell(album.albumId, album.title)));
            const last = document.createElement("td");
            last.append(button);
            cells.set(album.albumId, count);
            const texts = [album.title, album.artist, album.released, album.price.toFixed(2)];
            row.append(...texts.map(text => made("td", text)), count, last);
            return row;
        }),
    );
    for (const albumId of cells.keys()) {
        showStock(albumId);
    }
}

function showStock(albumId: number): void {
    const cell = cells.get(albumId);
    const text = String(left.get(albumId) ?? "");
    if (cell && cell.textContent !== text) {
        cell.classList.toggle("changed", cell.textContent !== "");
        cell.textContent = text;
    }
}

async function sell(albumId: number, title: string): Promise<void> {
    const { response } = await answered(buy({ albumId, customerId: customer() }));
    const total = response.sale?.total ?? 0;
    say(`${title} is yours for ${total.toFixed(2)}; ${response.left} left`);
}

async function listBestSellers(): Promise<void> {
    const { response } = await answered(bestSellers({}));
    const lines = response.map(one => made("li", `${one.title}: ${one.sold ?? 0} sold`));
    element("best-sellers", HTMLOListElement).replaceChildren(...lines);
}

async function nameArtists(): Promise<void> {
    const { response } = await answered(artistNames());
    element("artists", HTMLDataListElement).replaceChildren(...response.map(name => new Option(name)));
}
