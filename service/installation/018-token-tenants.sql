-- One-time tokens belong to the tenant for whose request they were issued.

alter table rowcall.token add column tenant text;
comment on column rowcall.token.tenant is 'Null: the token was issued without a tenant.';

-- Returns a new token, which is valid for the same tenant only. Null for the tenant: only without a tenant.
create function rowcall.issue_token(_purpose text, _subject text, _lifetime interval, _tenant text)
returns text language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    made text := replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', '');
begin
    if _subject is null or _lifetime is null then
        raise exception 'a token needs a subject and a lifetime' using errcode = 'null_value_not_allowed';
    end if;
    delete from rowcall.token where hash in (
        select hash from rowcall.token where expires < now() - interval '30 days' limit 10 for update skip locked);
    insert into rowcall.token (hash, purpose, subject, expires, tenant)
    values (sha256(convert_to(made, 'UTF8')), _purpose, _subject, clock_timestamp() + _lifetime, _tenant);
    return made;
end $$;

-- Uses a token of a tenant up and returns its subject; null: it is not valid for the tenant, has expired, or has been
-- used. Other unused tokens of the same purpose, subject and tenant are revoked. If the transaction is rolled back, the
-- token is still valid.
create function rowcall.consume_token(_purpose text, _token text, _tenant text)
returns text language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    owner text;
begin
    update rowcall.token set used = clock_timestamp()
    where hash = sha256(convert_to(_token, 'UTF8')) and purpose = _purpose and used is null
        and expires > clock_timestamp() and tenant is not distinct from _tenant
    returning subject into owner;
    if owner is not null then
        perform rowcall.revoke_tokens(owner, _purpose, _tenant);
    end if;
    return owner;
end $$;

-- Revokes unused tokens of a subject of one tenant, of one purpose or of all. Returns how many.
create function rowcall.revoke_tokens(_subject text, _purpose text, _tenant text)
returns bigint language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    with removed as (
        delete from rowcall.token
        where subject = _subject and purpose = coalesce(_purpose, purpose) and used is null
            and tenant is not distinct from _tenant
        returning 1
    )
    select count(*) from removed
$$;

-- Returns whether a subject of a tenant may get another token, as the function without a tenant does.
create function rowcall.may_issue_token(
    _purpose text, _subject text, _most integer, _seconds double precision, _tenant text)
returns boolean language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform pg_advisory_xact_lock(
        hashtextextended(concat_ws(' ', 'rowcall token', _purpose, _subject, _tenant), 0));
    return (
        select count(*) < _most from (
            select from rowcall.token
            where subject = _subject and purpose = _purpose and tenant is not distinct from _tenant
                and created > clock_timestamp() - make_interval(secs => _seconds)
            limit _most
        ) recent
    );
end $$;

-- Without a tenant.
create or replace function rowcall.issue_token(_purpose text, _subject text, _lifetime interval default '1 hour')
returns text language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    select rowcall.issue_token(_purpose, _subject, _lifetime, null)
$$;

create or replace function rowcall.consume_token(_purpose text, _token text)
returns text language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    select rowcall.consume_token(_purpose, _token, null)
$$;

create or replace function rowcall.may_issue_token(
    _purpose text, _subject text, _most integer, _seconds double precision)
returns boolean language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    select rowcall.may_issue_token(_purpose, _subject, _most, _seconds, null)
$$;

revoke execute on function
    rowcall.issue_token(text, text, interval, text),
    rowcall.consume_token(text, text, text),
    rowcall.revoke_tokens(text, text, text),
    rowcall.may_issue_token(text, text, integer, double precision, text)
from public;

-- Roles that were granted the functions without a tenant have the same rights for those with one.
do $$
declare
    granted record;
begin
    for granted in
        select n.oid::regprocedure::text as function, a.grantee::regrole::text as grantee
        from pg_catalog.pg_proc p
            cross join lateral pg_catalog.aclexplode(p.proacl) a
            join pg_catalog.pg_proc n on n.pronamespace = p.pronamespace and n.proname = p.proname
                and n.pronargs = p.pronargs + 1
        where p.pronamespace = 'rowcall'::regnamespace
            and p.proname in ('issue_token', 'consume_token', 'revoke_tokens', 'may_issue_token')
            and a.privilege_type = 'EXECUTE' and a.grantee not in (0, p.proowner)
    loop
        execute pg_catalog.format('grant execute on function %s to %s', granted.function, granted.grantee);
    end loop;
end $$;
