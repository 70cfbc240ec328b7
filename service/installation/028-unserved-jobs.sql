-- Jobs that no service runs, for example because the name of their endpoint is misspelt, are reported.

create table rowcall.job_unserved (
    endpoint text,
    queue text,
    reported timestamptz not null default clock_timestamp(),
    primary key (endpoint, queue)
);
comment on table rowcall.job_unserved is 'Endpoints and queues whose waiting jobs were reported in the last hour.';

-- Returns endpoints and queues with the numbers of their jobs that have been due for a minute, during which no service has
-- run any job of them; without those of a service, which are given, and without those returned in the last hour. _queues:
-- null for all. At most 20, as any role may enqueue jobs with any names.
create function rowcall.report_unserved_jobs(_endpoints text[], _queues text[])
returns table (endpoint text, queue text, jobs bigint)
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    delete from rowcall.job_unserved where reported < clock_timestamp() - interval '1 hour';
    with waiting as (
        select w.endpoint, w.queue, count(*) as jobs from rowcall.job w
        where w.state = 'waiting' and w.run_at < clock_timestamp() - interval '1 minute'
            and not (w.endpoint = any (_endpoints) and (_queues is null or w.queue = any (_queues)))
        group by w.endpoint, w.queue
    ), unserved as (
        select * from waiting w
        where not exists (select from rowcall.job_unserved u where u.endpoint = w.endpoint and u.queue = w.queue)
            and not exists (
                select from rowcall.job r where r.state = 'running' and r.endpoint = w.endpoint and r.queue = w.queue)
            and not exists (
                select from rowcall.job f where f.finished > clock_timestamp() - interval '1 minute'
                    and f.started is not null and f.endpoint = w.endpoint and f.queue = w.queue)
        order by w.jobs desc limit 20
    ), reported as (
        insert into rowcall.job_unserved (endpoint, queue) select u.endpoint, u.queue from unserved u
        on conflict do nothing
        returning endpoint, queue
    )
    select u.endpoint, u.queue, u.jobs from unserved u join reported r on r.endpoint = u.endpoint and r.queue = u.queue
$$;

revoke execute on function rowcall.report_unserved_jobs(text[], text[]) from public;

-- Roles that may recover jobs are those of services.
do $$
declare
    service text;
begin
    for service in
        select a.grantee::regrole::text
        from pg_catalog.pg_proc p, pg_catalog.aclexplode(p.proacl) a
        where p.oid = 'rowcall.recover_jobs(double precision)'::regprocedure
            and a.privilege_type = 'EXECUTE' and a.grantee not in (0, p.proowner)
    loop
        execute pg_catalog.format(
            'grant execute on function rowcall.report_unserved_jobs(text[], text[]) to %s', service);
    end loop;
end $$;
