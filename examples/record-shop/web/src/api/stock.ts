// Written by rowcall from the files below sql/.
const baseUrl = "";
const parseQuery = (query: Record<any, any>) => {
    const parts: string[] = [];
    for (const key of Object.keys(query ? query : {})) {
        const values: unknown[] = Array.isArray(query[key]) ? query[key] : [query[key]];
        for (const item of values) {
            const text = item === null || item === undefined ? "" : encodeURIComponent(String(item));
            parts.push(`${key}=${text}`);
        }
    }
    return "?" + parts.join("&");
};
export const createStockEventSource = (id: string = "") => new EventSource(baseUrl + "/stock/changes?" + id);

type ApiError = {status: number; title: string; detail?: string | null; hint?: string | null; errors?: {parameter: string; path: string; message: string}[]};
type ApiResult<T> = {status: number, response: T, error: ApiError | undefined};

export interface IDeliverResponse {
    type: string;
    fileName: string;
    contentType: string;
    size: number;
    success: boolean;
    status: string;
    [key: string]: unknown;
}

export interface IStockResponse {
    albumId: number;
    stock: number;
}


/**
* SQL file: sql/stock/deliver.sql
* 
* @remarks
* A delivery is a CSV file: the number of an album and how many of it came. All of it is shelved, or nothing.
* 
* @returns {ApiResult<IDeliverResponse[]>}
*/
export async function deliver(
    files: FileList | null,
    progress?: (loaded: number, total: number) => void,
): Promise<ApiResult<IDeliverResponse[]>> {
    return new Promise<ApiResult<IDeliverResponse[]>>((resolve, reject) => {
        if (!files || files.length === 0) {
            reject(new Error("No files to upload"));
            return;
        }
        const xhr = new XMLHttpRequest();
        if (progress) {
            xhr.upload.addEventListener("progress", event => {
                if (event.lengthComputable) {
                    progress(event.loaded, event.total);
                }
            });
        }
        xhr.onload = () => {
            try {
                if (xhr.status >= 200 && xhr.status < 300) {
                    resolve({status: xhr.status, response: JSON.parse(xhr.responseText) as IDeliverResponse[], error: undefined});
                } else {
                    resolve({status: xhr.status, response: [], error: xhr.responseText ? JSON.parse(xhr.responseText) as ApiError : undefined});
                }
            } catch (error) {
                reject(error);
            }
        };
        xhr.onerror = () => reject({xhr, status: xhr.status, statusText: xhr.statusText || "Network error occurred", response: xhr.response});
        xhr.onabort = () => reject({xhr, status: xhr.status, statusText: xhr.statusText || "Request aborted", response: xhr.response});
        xhr.ontimeout = () => reject({xhr, status: xhr.status, statusText: xhr.statusText || "Request timed out", response: xhr.response});
        xhr.open("POST", baseUrl + "/deliveries");
        const formData = new FormData();
        for (const file of Array.from(files)) {
            formData.append("file", file, file.name);
        }
        xhr.send(formData);
    });
}

/**
* SQL file: sql/stock/stock.sql
* 
* @remarks
* What is left of each album. /stock/changes is the stream of what changes.
* 
* @param onMessage - is called with each message of the event stream
* @param id - of the execution; generated if it is missing
* @param closeAfterMs - milliseconds after which the event stream is closed
* @param awaitConnectionMs - milliseconds to wait for the event stream before the request is sent
* @returns {ApiResult<IStockResponse[]>}
*/
export async function stock(
    onMessage?: (message: string) => void,
    id: string | undefined = undefined,
    closeAfterMs = 1000,
    awaitConnectionMs: number | undefined = 0
) : Promise<ApiResult<IStockResponse[]>> {
    const executionId = id ? id : window.crypto.randomUUID();
    let eventSource: EventSource | undefined;
    if (onMessage) {
        eventSource = createStockEventSource(executionId);
        eventSource.onmessage = (event: MessageEvent) => onMessage(event.data);
        if (awaitConnectionMs !== undefined) {
            await new Promise(resolve => setTimeout(resolve, awaitConnectionMs));
        }
    }
    try {
        const response = await fetch(baseUrl + "/stock", {
            method: "GET",
            headers: {
                "X-NpgsqlRest-ID": executionId
            },
        });
        return {
            status: response.status,
            response: response.ok ? await response.json() as IStockResponse[] : undefined!,
            error: !response.ok && response.headers.get("content-length") !== "0" ? await response.json() as ApiError : undefined
        };
    }
    finally {
        if (eventSource) {
            const source = eventSource;
            setTimeout(() => source.close(), closeAfterMs);
        }
    }
}

