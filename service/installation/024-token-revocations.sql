-- Revoked tokens stay in the table, because limits of the number of tokens count them, too.

alter table rowcall.token add column revoked timestamptz;
comment on column rowcall.token.revoked is 'When an unused token was revoked, such as by the use of another one.';

create or replace function rowcall.consume_token(_purpose text, _token text, _tenant text)
returns text language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    owner text;
begin
    update rowcall.token set used = clock_timestamp()
    where hash = sha256(convert_to(_token, 'UTF8')) and purpose = _purpose and used is null and revoked is null
        and expires > clock_timestamp() and tenant is not distinct from _tenant
    returning subject into owner;
    if owner is not null then
        perform rowcall.revoke_tokens(owner, _purpose, _tenant);
    end if;
    return owner;
end $$;

-- Revokes unused tokens of a subject of one tenant, of one purpose or of all. Returns how many.
create or replace function rowcall.revoke_tokens(_subject text, _purpose text, _tenant text)
returns bigint language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    with changed as (
        update rowcall.token set revoked = clock_timestamp()
        where subject = _subject and purpose = coalesce(_purpose, purpose) and used is null and revoked is null
            and tenant is not distinct from _tenant
        returning 1
    )
    select count(*) from changed
$$;

-- Revokes unused tokens of a subject of all tenants, of one purpose or of all. Returns how many.
create or replace function rowcall.revoke_tokens(_subject text, _purpose text default null)
returns bigint language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    with changed as (
        update rowcall.token set revoked = clock_timestamp()
        where subject = _subject and purpose = coalesce(_purpose, purpose) and used is null and revoked is null
        returning 1
    )
    select count(*) from changed
$$;

-- Lists the tokens of a subject, newest first, without those that were revoked.
create or replace function rowcall.list_tokens(_subject text)
returns table (purpose text, created timestamptz, expires timestamptz, used timestamptz)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select purpose, created, expires, used from rowcall.token
    where subject = _subject and revoked is null order by created desc
$$;

create or replace function rowcall.list_tokens_of_tenants(_subject text)
returns table (purpose text, created timestamptz, expires timestamptz, used timestamptz, tenant text)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select purpose, created, expires, used, tenant from rowcall.token
    where subject = _subject and revoked is null order by created desc
$$;
