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

export interface IBestSellersRequest {
    format?: string | null;
}

export interface IBestSellersResponse {
    title: string;
    sold: number | null;
    revenue: number | null;
}


/**
* SQL file: sql/reports/best_sellers.sql
* 
* @remarks
* What sells, as JSON, as a page or as a spreadsheet: ?format=html, ?format=excel.
* 
* @param request - request parameters
* @returns {ApiResult<IBestSellersResponse[]>}
*/
export async function bestSellers(
    request: IBestSellersRequest
) : Promise<ApiResult<IBestSellersResponse[]>> {
    const response = await fetch(baseUrl + "/reports/best-sellers" + parseQuery(request), {
        method: "GET",
    });
    return {
        status: response.status,
        response: response.ok ? await response.json() as IBestSellersResponse[] : undefined!,
        error: !response.ok && response.headers.get("content-length") !== "0" ? await response.json() as ApiError : undefined
    };
}

/**
* SQL file: sql/reports/price_list.sql
* 
* @remarks
* The price list as a text file.
* 
* @returns {ApiResult<string>}
*/
export async function priceList() : Promise<ApiResult<string>> {
    const response = await fetch(baseUrl + "/reports/prices.csv", {
        method: "GET",
    });
    return {
        status: response.status,
        response: response.ok ? await response.text() : undefined!,
        error: !response.ok && response.headers.get("content-length") !== "0" ? await response.json() as ApiError : undefined
    };
}

