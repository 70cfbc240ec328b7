-- Idempotency: for each key of a caller, the request and the result of the endpoint.
-- Callers and roles of endpoints only run the functions; the tables are not accessible to them.

create table rowcall.idempotency (
    scope text not null,
    key text not null,
    request bytea not null,
    started timestamptz not null default now(),
    expires timestamptz not null,
    finished boolean not null default false,
    body bytea,
    body_rows bigint,
    is_null boolean,
    primary key (scope, key)
);
create index idempotency_expires on rowcall.idempotency (expires);
comment on table rowcall.idempotency is 'Requests with an Idempotency-Key and their results.';

-- Returns the state of a request: `new` (it may run now), `running`, `other` (the key belongs to another request), or
-- `finished` with the result. A new request is recorded in the transaction of the caller, which holds its key until the
-- transaction ends.
create function rowcall.begin_request(_scope text, _key text, _request bytea, _seconds double precision)
returns table (state text, body bytea, body_rows bigint, is_null boolean)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    known rowcall.idempotency;
begin
    if not pg_try_advisory_xact_lock(hashtextextended('rowcall' || chr(31) || _scope || chr(31) || _key, 0)) then
        return query select 'running'::text, null::bytea, null::bigint, null::boolean;
        return;
    end if;
    select * into known from rowcall.idempotency i where i.scope = _scope and i.key = _key;
    if found and known.expires > clock_timestamp() then
        return query select
            case when known.request <> _request then 'other' when known.finished then 'finished' else 'running' end,
            known.body, known.body_rows, known.is_null;
        return;
    end if;
    delete from rowcall.idempotency i where i.scope = _scope and i.key = _key;
    insert into rowcall.idempotency (scope, key, request, expires)
    values (_scope, _key, _request, clock_timestamp() + _seconds * interval '1 second');
    -- Expired requests are removed by some of the new ones, so that no other process has to do it.
    if random() < 0.01 then
        perform rowcall.remove_expired_requests(1000);
    end if;
    return query select 'new'::text, null::bytea, null::bigint, null::boolean;
end $$;

create function rowcall.finish_request(_scope text, _key text, _body bytea, _body_rows bigint, _is_null boolean)
returns void language sql security definer set search_path = pg_catalog, pg_temp as $$
    update rowcall.idempotency
    set finished = true, body = _body, body_rows = _body_rows, is_null = _is_null
    where scope = _scope and key = _key
$$;

-- Forgets a request that has had no effect.
create function rowcall.forget_request(_scope text, _key text)
returns void language sql security definer set search_path = pg_catalog, pg_temp as $$
    delete from rowcall.idempotency where scope = _scope and key = _key and not finished
$$;

-- Removes expired requests, at most so many, and returns their number.
create function rowcall.remove_expired_requests(_most integer)
returns bigint language sql security definer set search_path = pg_catalog, pg_temp as $$
    with expired as (
        select scope, key from rowcall.idempotency where expires < now() limit _most for update skip locked
    ), removed as (
        delete from rowcall.idempotency i using expired e where i.scope = e.scope and i.key = e.key returning 1
    )
    select count(*) from removed
$$;
