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

type ApiError = {status: number; title: string; detail?: string | null; hint?: string | null; errors?: {parameter: string; path: string; message: string}[]};
type ApiResult<T> = {status: number, response: T, error: ApiError | undefined};

export interface IBuyRequest {
    quantity?: number | null;
    albumId: number | null;
    customerId: number | null;
}

export interface IBuyResponse {
    sale: { saleId: number, albumId: number, quantity: number, total: number | null } | null;
    left: number | null;
}

export interface IJoinRequest {
    name: string | null;
    email: string | null;
}

export interface IJoinResponse {
    customerId: number;
    name: string;
    email: string;
}

export interface ILeaveRequest {
    customerId: number | null;
}


/**
* SQL file: sql/shop/buy.sql
* 
* @remarks
* A sale is one transaction: either the stock goes down and the sale is written, or nothing happens.
* 
* @param request - request parameters
* @returns {ApiResult<IBuyResponse>}
*/
export async function buy(
    request: IBuyRequest
) : Promise<ApiResult<IBuyResponse>> {
    const response = await fetch(baseUrl + "/sales", {
        method: "POST",
        headers: {
            "Content-Type": "application/json"
        },
        body: JSON.stringify(request)
    });
    return {
        status: response.status,
        response: response.ok ? await response.json() as IBuyResponse : undefined!,
        error: !response.ok && response.headers.get("content-length") !== "0" ? await response.json() as ApiError : undefined
    };
}

/**
* SQL file: sql/shop/join.sql
* 
* @param request - request parameters
* @returns {ApiResult<IJoinResponse | null>}
*/
export async function join(
    request: IJoinRequest
) : Promise<ApiResult<IJoinResponse | null>> {
    const response = await fetch(baseUrl + "/customers", {
        method: "PUT",
        headers: {
            "Content-Type": "application/json"
        },
        body: JSON.stringify(request)
    });
    return {
        status: response.status,
        response: response.ok ? await response.text().then(text => text === "" ? null : JSON.parse(text)) as IJoinResponse | null : undefined!,
        error: !response.ok && response.headers.get("content-length") !== "0" ? await response.json() as ApiError : undefined
    };
}

/**
* SQL file: sql/shop/leave.sql
* 
* @remarks
* Customers who never bought anything may go.
* 
* @param request - request parameters
* @returns {ApiResult<number[]>}
*/
export async function leave(
    request: ILeaveRequest
) : Promise<ApiResult<number[]>> {
    const response = await fetch(baseUrl + "/customers" + parseQuery(request), {
        method: "DELETE",
    });
    return {
        status: response.status,
        response: response.ok ? await response.json() as number[] : undefined!,
        error: !response.ok && response.headers.get("content-length") !== "0" ? await response.json() as ApiError : undefined
    };
}

