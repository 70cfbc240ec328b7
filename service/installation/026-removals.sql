-- The removal of old messages and mail returns how many were removed, so that a service knows whether there are more.

drop function rowcall.remove_webhooks(double precision, integer);
create function rowcall.remove_webhooks(_seconds double precision, _most integer) returns bigint
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    with removed as (
        delete from rowcall.webhook_message where id in (
            select m.id from rowcall.webhook_message m
            where m.assigned and m.created < clock_timestamp() - make_interval(secs => _seconds)
                and not exists (select from rowcall.webhook_delivery d where d.message = m.id and d.state <> 'done')
            limit _most for update of m skip locked)
        returning 1
    )
    select count(*) from removed
$$;

drop function rowcall.remove_mail(double precision, integer);
create function rowcall.remove_mail(_seconds double precision, _most integer) returns bigint
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    with removed as (
        delete from rowcall.mail where id in (
            select id from rowcall.mail where finished < now() - make_interval(secs => _seconds) limit _most
            for update skip locked)
        returning 1
    )
    select count(*) from removed
$$;

revoke execute on function
    rowcall.remove_webhooks(double precision, integer), rowcall.remove_mail(double precision, integer)
from public;

-- Roles that may take deliveries or mail are those of services.
do $$
declare
    granted record;
begin
    for granted in
        select case p.proname when 'take_mail' then 'rowcall.remove_mail' else 'rowcall.remove_webhooks' end as function,
            a.grantee::regrole::text as grantee
        from pg_catalog.pg_proc p, pg_catalog.aclexplode(p.proacl) a
        where p.pronamespace = 'rowcall'::regnamespace and p.proname in ('take_deliveries', 'take_mail')
            and a.privilege_type = 'EXECUTE' and a.grantee not in (0, p.proowner)
    loop
        execute pg_catalog.format(
            'grant execute on function %s(double precision, integer) to %s', granted.function, granted.grantee);
    end loop;
end $$;
