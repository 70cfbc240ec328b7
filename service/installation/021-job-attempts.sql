-- Attempts that do not lock their job yet, because they still call other services or wait for a connection.

alter table rowcall.job add column alive timestamptz;
comment on column rowcall.job.alive is 'When the worker of a running job has last reported it.';

-- Reports that a worker still runs these attempts. Jobs that are locked need no report. The state is compared in a form for
-- which the server does not use the index of running jobs, as in lock_job.
create function rowcall.keep_jobs(_ids uuid[], _attempts integer[])
returns void language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    update rowcall.job j set alive = clock_timestamp()
    from (
        select r.id from rowcall.job r join unnest(_ids, _attempts) as k (id, attempt) on r.id = k.id
        where r.attempts = k.attempt and r.state is not distinct from 'running'
        for update of r skip locked
    ) running
    where j.id = running.id
$$;

-- Jobs whose worker has died wait again: those that nobody locks, and that no worker has reported for some seconds.
create or replace function rowcall.recover_jobs(_grace double precision)
returns bigint language sql security definer set search_path = pg_catalog, pg_temp as $$
    with lost as (
        select id from rowcall.job
        where state = 'running' and started < clock_timestamp() - _grace * interval '1 second'
            and (alive is null or alive < clock_timestamp() - _grace * interval '1 second')
        for update skip locked
    ), recovered as (
        update rowcall.job j
        set state = 'waiting', error = 'the worker that ran it was lost', interruptions = j.interruptions + 1
        from lost where j.id = lost.id returning 1
    )
    select count(*) from recovered
$$;

revoke execute on function rowcall.keep_jobs(uuid[], integer[]) from public;

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
        execute pg_catalog.format('grant execute on function rowcall.keep_jobs(uuid[], integer[]) to %s', service);
    end loop;
end $$;
