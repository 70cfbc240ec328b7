-- Lists the tokens of a subject, newest first, with the tenant of each; null: it was issued without a tenant. A function
-- of its own, because list_tokens cannot get another column while views and routines of applications use it.
create function rowcall.list_tokens_of_tenants(_subject text)
returns table (purpose text, created timestamptz, expires timestamptz, used timestamptz, tenant text)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select purpose, created, expires, used, tenant from rowcall.token where subject = _subject order by created desc
$$;

revoke execute on function rowcall.list_tokens_of_tenants(text) from public;

-- Roles that may list tokens may see their tenants.
do $$
declare
    lister text;
begin
    for lister in
        select a.grantee::regrole::text
        from pg_catalog.pg_proc p, pg_catalog.aclexplode(p.proacl) a
        where p.oid = 'rowcall.list_tokens(text)'::regprocedure
            and a.privilege_type = 'EXECUTE' and a.grantee not in (0, p.proowner)
    loop
        execute pg_catalog.format('grant execute on function rowcall.list_tokens_of_tenants(text) to %s', lister);
    end loop;
end $$;
