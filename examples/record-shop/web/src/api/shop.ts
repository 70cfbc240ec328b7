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

type ApiError = {status: number; title: string; detail?: string | null};
type ApiResult<T> = {status: number, response: T, error: ApiError | undefined};

export interface IBuyRequest {
    quantity?: number | null;
    albumId: number | null;
    customerId: number | null;
}

export interface IBuyResponse {
    sale: { saleId: number, albumId: number, quantity: number, total: number };
    left: number;
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
* HTTP POST /sales
* param customer_id type is int
* param album_id type is int
* param quantity type is int default 1
* skip
* result sale
* single
* result left
* single
* 
* @param request - request parameters
* @returns {ApiResult<IBuyResponse>}
*/
export async function buy(
    request: IBuyRequest
) : Promise<ApiResult<IBuyResponse>> {
    const response = await fetch(baseUrl + "/sales", {
        method: "POST",
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
* @remarks
* HTTP PUT /customers
* single
* 
* @param request - request parameters
* @returns {ApiResult<IJoinResponse>}
*/
export async function join(
    request: IJoinRequest
) : Promise<ApiResult<IJoinResponse>> {
    const response = await fetch(baseUrl + "/customers", {
        method: "PUT",
        headers: {
            "Content-Type": "application/json"
        },
        body: JSON.stringify(request)
    });
    return {
        status: response.status,
        response: response.ok ? await response.json() as IJoinResponse : undefined!,
        error: !response.ok && response.headers.get("content-length") !== "0" ? await response.json() as ApiError : undefined
    };
}

/**
* SQL file: sql/shop/leave.sql
* 
* @remarks
* Customers who never bought anything may go.
* HTTP DELETE /customers
* request_param_type query_string
* param customer_id type is int
* 
* @param request - request parameters
* @returns {ApiResult<number[]>}
*/
export async function leave(
    request: ILeaveRequest
) : Promise<ApiResult<number[]>> {
    const response = await fetch(baseUrl + "/customers" + parseQuery(request), {
        method: "DELETE",
        headers: {
            "Content-Type": "application/json"
        },
    });
    return {
        status: response.status,
        response: response.ok ? await response.json() as number[] : undefined!,
        error: !response.ok && response.headers.get("content-length") !== "0" ? await response.json() as ApiError : undefined
    };
}

