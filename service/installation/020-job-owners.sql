-- Returns jobs as JSON, the newest first, as list_jobs does, of several owners: a user is another owner in each tenant. Null
-- for the owners: those of all.
create function rowcall.list_jobs_of(
    _owners text[], _state text, _queue text, _endpoint text, _before uuid, _most integer)
returns table (about text)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select json_build_object(
            'id', j.id, 'endpoint', j.endpoint, 'queue', j.queue, 'state', j.state, 'attempts', j.attempts,
            'created', j.created, 'runAt', j.run_at, 'started', j.started, 'finished', j.finished,
            'progress', p.message, 'error', j.error)::text
    from rowcall.job j left join rowcall.job_progress p on p.job = j.id
    where (_owners is null or j.owner = any (_owners)) and (_state is null or j.state = _state)
        and (_queue is null or j.queue = _queue) and (_endpoint is null or j.endpoint = _endpoint)
        and (_before is null or (j.created, j.id) < (select b.created, b.id from rowcall.job b where b.id = _before))
    order by j.created desc, j.id desc limit _most
$$;

revoke execute on function rowcall.list_jobs_of(text[], text, text, text, uuid, integer) from public;

-- Roles that may list jobs may list those of several owners.
do $$
declare
    service text;
begin
    for service in
        select a.grantee::regrole::text
        from pg_catalog.pg_proc p, pg_catalog.aclexplode(p.proacl) a
        where p.oid = 'rowcall.list_jobs(text, text, text, text, uuid, integer)'::regprocedure
            and a.privilege_type = 'EXECUTE' and a.grantee not in (0, p.proowner)
    loop
        execute pg_catalog.format(
            'grant execute on function rowcall.list_jobs_of(text[], text, text, text, uuid, integer) to %s', service);
    end loop;
end $$;
