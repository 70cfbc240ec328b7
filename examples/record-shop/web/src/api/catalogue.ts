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

export interface IAlbumRequest {
    albumId: number | null;
}

export interface IAlbumResponse {
    album: { albumId: number, title: string, artist: string, released: string, price: number, stock: number };
    tracks: { number: number, title: string, length: string }[];
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
* HTTP GET /albums/{album_id}
* param album_id type is int
* result album
* single
* result tracks
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
* HTTP GET /albums
* param artist default null
* param in_stock type is boolean default false
* 
* @param request - request parameters
* @returns {ApiResult<IAlbumsResponse[]>}
*/
export async function albums(
    request: IAlbumsRequest
) : Promise<ApiResult<IAlbumsResponse[]>> {
    const response = await fetch(baseUrl + "/albums" + parseQuery(request), {
        method: "GET",
        headers: {
            "Content-Type": "application/json"
        },
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
* HTTP GET /artists/names
* 
* @returns {ApiResult<string[]>}
*/
export async function artistNames() : Promise<ApiResult<string[]>> {
    const response = await fetch(baseUrl + "/artists/names", {
        method: "GET",
        headers: {
            "Content-Type": "application/json"
        },
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
* @remarks
* HTTP GET /albums/{album_id}/price-in/{currency}
* single
* response_null_handling not_found
* @param album_id type is int
* param :rate rate shop.exchange_rate
* 
* @param request - request parameters
* @returns {ApiResult<IPriceInResponse>}
*/
export async function priceIn(
    request: IPriceInRequest
) : Promise<ApiResult<IPriceInResponse>> {
    const response = await fetch(`${baseUrl}/albums/${request.albumId}/price-in/${encodeURIComponent(String(request.currency))}`, {
        method: "GET",
        headers: {
            "Content-Type": "application/json"
        },
    });
    return {
        status: response.status,
        response: response.ok ? await response.json() as IPriceInResponse : undefined!,
        error: !response.ok && response.headers.get("content-length") !== "0" ? await response.json() as ApiError : undefined
    };
}

