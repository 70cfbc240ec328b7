// What every part of the page needs: its elements, and a line that shows what has happened.

/** The element with this id. A page without it is not ours. */
export function element<T extends HTMLElement>(id: string, kind: { new (): T; readonly name: string }): T {
    const found = document.getElementById(id);
    if (!(found instanceof kind)) {
        throw new Error(`there is no ${kind.name} #${id}`);
    }
    return found;
}

/** An element with text in it. */
export function made(tag: string, text: string | number): HTMLElement {
    const element = document.createElement(tag);
    element.textContent = String(text);
    return element;
}

/** The text in a field of a form. */
export function field(form: HTMLFormElement, name: string): string {
    const value = new FormData(form).get(name);
    return typeof value === "string" ? value.trim() : "";
}

const said = element("said", HTMLParagraphElement);

export function say(text: string, refused = false): void {
    said.textContent = text;
    said.classList.toggle("refused", refused);
    said.hidden = false;
}

/** An answer that is no success. */
export class Refused extends Error {
    constructor(
        readonly status: number,
        title: string,
    ) {
        super(title);
    }
}

interface Answer {
    status: number;
    error: { title: string } | undefined;
}

/** The answer of a generated function, where the service did what it was asked to.
 *
 * Words for a status stand in place of what the service says.
 *
 * @throws Refused
 */
export async function answered<T extends Answer>(call: Promise<T>, words: Record<number, string> = {}): Promise<T> {
    const answer = await call;
    const { status } = answer;
    if (status < 200 || status > 299) {
        throw new Refused(status, words[status] ?? answer.error?.title ?? `the service answers ${status}`);
    }
    return answer;
}

/** Runs what a click or a form asks for; what goes wrong is shown. */
export function attempt(work: () => Promise<void>): void {
    work().catch((problem: unknown) => say(problem instanceof Error ? problem.message : "the shop cannot be reached", true));
}

/** Runs it when a form is sent. */
export function onSubmit(form: HTMLFormElement, work: () => Promise<void>): void {
    form.addEventListener("submit", event => {
        event.preventDefault();
        attempt(work);
    });
}
