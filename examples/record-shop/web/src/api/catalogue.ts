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

export interface IAlbumRequest {
    albumId: number | null;
}

export interface IAlbumResponse {
    album: { albumId: number, title: string, artist: string, released: string, price: number, stock: number } | null;
    tracks: ({ number: number, title: string, length: string | null })[];
}

export interface IAlbumsRequest {
    artist?: string | null;
    inStock?: boolean | null;
}

export interface IAlbumsResponse {
    albumId: number;
    title: string;
    artist: string;
    released: string;
    price: number;
}

export interface IPriceInRequest {
    currency: string | null;
    albumId: number | null;
}

export interface IPriceInResponse {
    title: string;
    currency: string | null;
    price: number | null;
    problem: string | null;
}


/**
* SQL file: sql/catalogue/album.sql
* 
* @remarks
* One album with its tracks: two statements, one answer.
* 
* @param request - request parameters
* @returns {ApiResult<IAlbumResponse>}
*/
export async function album(
    request: IAlbumRequest
) : Promise<ApiResult<IAlbumResponse>> {
    const response = await fetch(`${baseUrl}/albums/${request.albumId}`, {
        method: "GET",
    });
    return {
        status: response.status,
        response: response.ok ? await response.json() as IAlbumResponse : undefined!,
        error: !response.ok && response.headers.get("content-length") !== "0" ? await response.json() as ApiError : undefined
    };
}

/**
* SQL file: sql/catalogue/albums.sql
* 
* @remarks
* All albums, or those of one artist, or those that can be had now.
* 
* @param request - request parameters
* @returns {ApiResult<IAlbumsResponse[]>}
*/
export async function albums(
    request: IAlbumsRequest
) : Promise<ApiResult<IAlbumsResponse[]>> {
    const response = await fetch(baseUrl + "/albums" + parseQuery(request), {
        method: "GET",
    });
    return {
        status: response.status,
        response: response.ok ? await response.json() as IAlbumsResponse[] : undefined!,
        error: !response.ok && response.headers.get("content-length") !== "0" ? await response.json() as ApiError : undefined
    };
}

/**
* SQL file: sql/catalogue/artist_names.sql
* 
* @remarks
* One column alone is an array of values.
* 
* @returns {ApiResult<string[]>}
*/
export async function artistNames() : Promise<ApiResult<string[]>> {
    const response = await fetch(baseUrl + "/artists/names", {
        method: "GET",
    });
    return {
        status: response.status,
        response: response.ok ? await response.json() as string[] : undefined!,
        error: !response.ok && response.headers.get("content-length") !== "0" ? await response.json() as ApiError : undefined
    };
}

/**
* SQL file: sql/catalogue/price_in.sql
* 
* @param request - request parameters
* @returns {ApiResult<IPriceInResponse>}
*/
export async function priceIn(
    request: IPriceInRequest
) : Promise<ApiResult<IPriceInResponse>> {
    const response = await fetch(`${baseUrl}/albums/${request.albumId}/price-in/${encodeURIComponent(String(request.currency))}`, {
        method: "GET",
    });
    return {
        status: response.status,
        response: response.ok ? await response.json() as IPriceInResponse : undefined!,
        error: !response.ok && response.headers.get("content-length") !== "0" ? await response.json() as ApiError : undefined
    };
}

