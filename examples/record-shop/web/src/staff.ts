// Clerks sign in with a cookie, and shelve deliveries.

import { clerk, signIn, signOut } from "./api/staff.js";
import { deliver } from "./api/stock.js";
import { answered, attempt, element, field, made, onSubmit, Refused, say } from "./page.js";

const entrance = element("sign-in", HTMLFormElement);
const office = element("office", HTMLDivElement);
const delivery = element("delivery", HTMLFormElement);
const sent = element("sent", HTMLProgressElement);

export function openOffice(): void {
    onSubmit(entrance, async () => {
        const asked = { name: field(entrance, "name"), password: field(entrance, "password") };
        await answered(signIn(asked), { 401: "Name or password is wrong." });
        entrance.reset();
        await enter();
    });
    element("sign-out", HTMLButtonElement).addEventListener("click", () =>
        attempt(async () => {
            await answered(signOut());
            office.hidden = true;
            entrance.hidden = false;
        }),
    );
    onSubmit(delivery, shelve);
    attempt(enter);
}

/** The office, for those whom the cookie lets in. */
async function enter(): Promise<void> {
    try {
        element("clerk", HTMLElement).textContent = (await answered(clerk())).response;
    } catch (problem) {
        if (problem instanceof Refused && problem.status === 401) {
            return;
        }
        throw problem;
    }
    office.hidden = false;
    entrance.hidden = true;
}

async function shelve(): Promise<void> {
    const files = (delivery.elements.namedItem("files") as HTMLInputElement).files;
    sent.value = 0;
    sent.hidden = false;
    const { response } = await answered(
        deliver(files, (loaded, total) => {
            sent.value = loaded / total;
        }),
    );
    const lines = response.map(one => made("li", `${one.fileName}: ${one.status}`));
    element("shelved", HTMLUListElement).replaceChildren(...lines);
    say("The delivery is on the shelves.");
    delivery.reset();
}
