-- Jobs are taken, ended and shown by services only. Other roles enqueue jobs.

-- It inserts with the rights of the owner. The job continues the trace of the request whose routine enqueues it.
create or replace function rowcall.enqueue(
    _endpoint text, _arguments jsonb default '{}', _queue text default 'default', _run_at timestamptz default now(),
    _priority integer default 0, _unique_key text default null, _claims jsonb default null,
    _serial_key text default null, _serial_limit integer default 1)
returns uuid language sql security definer set search_path = pg_catalog, pg_temp as $$
    select rowcall.add_job(
        _endpoint, _arguments, false, _queue, _priority, _unique_key, '', _claims, _run_at, _serial_key,
        nullif(current_setting('rowcall.traceparent', true), ''), _serial_limit)
$$;

-- A service whose role has not installed the schema needs grants (rowcall --install --grant-to ROLE).
revoke execute on function
    rowcall.add_job(text, jsonb, boolean, text, integer, text, text, jsonb, timestamptz, text, text, integer),
    rowcall.cancel_job(uuid),
    rowcall.count_jobs(),
    rowcall.enqueue_due(text, timestamptz, text, integer, boolean),
    rowcall.fail_job(uuid, integer, text, double precision, text),
    rowcall.finish_job(uuid, integer, text, bytea),
    rowcall.hold_job(uuid, integer),
    rowcall.last_due(text[], timestamptz[]),
    rowcall.list_jobs(text, text, text, text, uuid, integer),
    rowcall.lock_job(uuid, integer),
    rowcall.next_job(text[], text[]),
    rowcall.recover_jobs(double precision),
    rowcall.release_job(uuid, integer, text),
    rowcall.remove_finished_jobs(double precision, integer),
    rowcall.report_job(uuid, integer, text),
    rowcall.schedules(),
    rowcall.show_job(uuid),
    rowcall.take_due(text[], text[], text[], integer),
    rowcall.take_jobs(text[], text[], integer),
    rowcall.take_jobs_within(text[], text[], integer, text[], integer[]),
    rowcall.take_of_all_queues(text[], integer)
from public;

-- Roles that were granted the deliveries of webhooks or mail are those of services, which may run jobs, too.
do $$
declare
    service text;
begin
    for service in
        select distinct a.grantee::regrole::text
        from pg_catalog.pg_proc p, pg_catalog.aclexplode(p.proacl) a
        where p.pronamespace = 'rowcall'::regnamespace and p.proname in ('take_deliveries', 'take_mail')
            and a.privilege_type = 'EXECUTE' and a.grantee not in (0, p.proowner)
    loop
        execute pg_catalog.format(
            'grant execute on function rowcall.add_job, rowcall.cancel_job, rowcall.count_jobs, rowcall.enqueue_due, '
            'rowcall.fail_job, rowcall.finish_job, rowcall.hold_job, rowcall.last_due, rowcall.list_jobs, '
            'rowcall.lock_job, rowcall.next_job, rowcall.recover_jobs, rowcall.release_job, '
            'rowcall.remove_finished_jobs, rowcall.report_job, rowcall.schedules, rowcall.show_job, '
            'rowcall.take_due, rowcall.take_jobs, rowcall.take_jobs_within, rowcall.take_of_all_queues to %s', service);
    end loop;
end $$;
