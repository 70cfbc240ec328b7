// Customers: one is identified by their address, and is remembered as long as the page is open.

import { join } from "./api/shop.js";
import { answered, element, field, onSubmit } from "./page.js";

const form = element("customer", HTMLFormElement);
let known: number | undefined;

export function askWhoBuys(): void {
    onSubmit(form, async () => {
        const request = { name: field(form, "name"), email: field(form, "email") };
        const { response } = await answered(join(request));
        if (!response) {
            throw new Error("The service returned no customer.");
        }
        known = response.customerId ?? undefined;
        element("buyer", HTMLParagraphElement).textContent = `${response.name} buys.`;
    });
}

/** The number of the customer. */
export function customer(): number {
    if (known === undefined) {
        throw new Error("Enter your name and address first.");
    }
    return known;
}
