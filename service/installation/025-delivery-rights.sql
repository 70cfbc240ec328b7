-- Waiting webhooks and mail are counted by services only: the counts contain the names of subscribers.

revoke execute on function
    rowcall.count_deliveries(), rowcall.next_delivery(), rowcall.count_mail(), rowcall.next_mail()
from public;

-- Roles that may take deliveries or mail are those of services.
do $$
declare
    granted record;
begin
    for granted in
        select case p.proname
                when 'take_mail' then 'rowcall.count_mail(), rowcall.next_mail()'
                else 'rowcall.count_deliveries(), rowcall.next_delivery()'
            end as functions, a.grantee::regrole::text as grantee
        from pg_catalog.pg_proc p, pg_catalog.aclexplode(p.proacl) a
        where p.pronamespace = 'rowcall'::regnamespace and p.proname in ('take_deliveries', 'take_mail')
            and a.privilege_type = 'EXECUTE' and a.grantee not in (0, p.proowner)
    loop
        execute pg_catalog.format('grant execute on function %s to %s', granted.functions, granted.grantee);
    end loop;
end $$;
