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

export interface ISignInRequest {
    name: string | null;
    password?: string | null;
}


/**
* SQL file: sql/staff/clerk.sql
* 
* @remarks
* Who is signed in.
* 
* @returns {ApiResult<string | null>}
*/
export async function clerk() : Promise<ApiResult<string | null>> {
    const response = await fetch(baseUrl + "/clerk", {
        method: "GET",
    });
    return {
        status: response.status,
        response: response.ok ? await response.text().then(text => text === "" ? null : JSON.parse(text)) as string | null : undefined!,
        error: !response.ok && response.headers.get("content-length") !== "0" ? await response.json() as ApiError : undefined
    };
}

/**
* SQL file: sql/staff/sign_in.sql
* 
* @remarks
* A clerk signs in: the row is checked against the password, and its other columns go into a cookie.
* 
* @param request - request parameters
* @returns {ApiResult<string>}
*/
export async function signIn(
    request: ISignInRequest
) : Promise<ApiResult<string>> {
    const response = await fetch(baseUrl + "/sign-in", {
        method: "POST",
        headers: {
            "Content-Type": "application/json"
        },
        body: JSON.stringify(request)
    });
    return {
        status: response.status,
        response: response.ok ? await response.text() : undefined!,
        error: !response.ok && response.headers.get("content-length") !== "0" ? await response.json() as ApiError : undefined
    };
}

/**
* SQL file: sql/staff/sign_out.sql
* 
* @returns {status: number, error: ApiError | undefined}
*/
export async function signOut() : Promise<{status: number, error: ApiError | undefined}> {
    const response = await fetch(baseUrl + "/sign-out", {
        method: "POST",
    });
    return {
        status: response.status,
        error: !response.ok && response.headers.get("content-length") !== "0" ? await response.json() as ApiError : undefined
    };
}

