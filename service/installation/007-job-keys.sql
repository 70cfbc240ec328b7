-- Jobs that run one at a time for each key, the trace of the request that enqueued a job, and lists of jobs.

alter table rowcall.job add column serial_key text, add column trace text;
create unique index job_serial on rowcall.job (serial_key) where state = 'running' and serial_key is not null;
create index job_owner on rowcall.job (owner, created desc, id desc);
create index job_created on rowcall.job (created desc, id desc);

drop function rowcall.add_job(text, jsonb, boolean, text, integer, text, text, jsonb, timestamptz);
create function rowcall.add_job(
    _endpoint text, _arguments jsonb, _bound boolean, _queue text, _priority integer, _unique_key text, _owner text,
    _claims jsonb, _run_at timestamptz, _serial_key text default null, _trace text default null)
returns uuid language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    made uuid;
begin
    loop
        insert into rowcall.job (
            endpoint, arguments, bound, queue, priority, unique_key, owner, claims, run_at, serial_key, trace)
        values (
            _endpoint, _arguments, _bound, _queue, _priority, _unique_key, _owner, _claims, _run_at, _serial_key,
            _trace)
        on conflict (endpoint, unique_key) where unique_key is not null and state in ('waiting', 'running') do nothing
        returning id into made;
        if made is not null then
            perform pg_notify('rowcall_jobs', _queue);
            return made;
        end if;
        select id into made from rowcall.job
        where endpoint = _endpoint and unique_key = _unique_key and state in ('waiting', 'running');
        if made is not null then
            return made;
        end if;
    end loop;
end $$;

drop function rowcall.enqueue(text, jsonb, text, timestamptz, integer, text, jsonb);
create function rowcall.enqueue(
    _endpoint text, _arguments jsonb default '{}', _queue text default 'default', _run_at timestamptz default now(),
    _priority integer default 0, _unique_key text default null, _claims jsonb default null,
    _serial_key text default null)
returns uuid language sql as $$
    select rowcall.add_job(
        _endpoint, _arguments, false, _queue, _priority, _unique_key, '', _claims, _run_at, _serial_key)
$$;

-- Takes jobs that are due, at most one for each key, and none whose key is that of a running job. Of two workers that
-- take jobs with the same key at the same time, the second one gets only jobs without a key.
create function rowcall.take_due(_endpoints text[], _queues text[], _without text[], _most integer)
returns setof rowcall.job language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    return query
    with locked as (
        select id, serial_key, priority, run_at from rowcall.job w
        where state = 'waiting' and run_at <= clock_timestamp() and endpoint = any (_endpoints)
            and (_queues is null or queue = any (_queues)) and (_without is null or queue <> all (_without))
            and (serial_key is null or not exists (
                select from rowcall.job r where r.serial_key = w.serial_key and r.state = 'running'))
        order by priority desc, run_at limit _most for update skip locked
    ), ranked as (
        select id, serial_key, row_number() over (partition by serial_key order by priority desc, run_at) as place
        from locked
    )
    update rowcall.job j set state = 'running', started = clock_timestamp(), attempts = j.attempts + 1
    from ranked
    where j.id = ranked.id and (ranked.serial_key is null or ranked.place = 1)
    returning j.*;
exception when unique_violation then
    return query
    update rowcall.job j set state = 'running', started = clock_timestamp(), attempts = j.attempts + 1
    from (
        select id from rowcall.job
        where state = 'waiting' and run_at <= clock_timestamp() and endpoint = any (_endpoints)
            and (_queues is null or queue = any (_queues)) and (_without is null or queue <> all (_without))
            and serial_key is null
        order by priority desc, run_at limit _most for update skip locked
    ) found
    where j.id = found.id
    returning j.*;
end $$;

create or replace function rowcall.take_jobs(_endpoints text[], _queues text[], _most integer)
returns setof rowcall.job language sql security definer set search_path = pg_catalog, pg_temp as $$
    select * from rowcall.take_due(_endpoints, _queues, null, _most)
$$;

create or replace function rowcall.take_jobs_within(
    _endpoints text[], _queues text[], _most integer, _names text[], _limits integer[])
returns setof rowcall.job language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    room integer;
    left_over integer := _most;
    taken integer;
begin
    for i in 1 .. cardinality(_names) loop
        if left_over > 0 and (_queues is null or _names[i] = any (_queues))
            and exists (
                select from rowcall.job
                where state = 'waiting' and queue = _names[i] and run_at <= clock_timestamp()
                    and endpoint = any (_endpoints))
            -- One worker at a time, or two would take the last place.
            and pg_try_advisory_xact_lock(hashtextextended('rowcall queue ' || _names[i], 0)) then
            select _limits[i] - count(*) into room from rowcall.job where state = 'running' and queue = _names[i];
            if room > 0 then
                return query
                select * from rowcall.take_due(_endpoints, array[_names[i]], null, least(room, left_over));
                get diagnostics taken = row_count;
                left_over := left_over - taken;
            end if;
        end if;
    end loop;
    if left_over > 0 then
        return query select * from rowcall.take_due(_endpoints, _queues, _names, left_over);
    end if;
end $$;

create or replace function rowcall.next_job(_endpoints text[], _queues text[]) returns double precision
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select extract(epoch from min(run_at) - clock_timestamp())::double precision from rowcall.job w
    where state = 'waiting' and endpoint = any (_endpoints) and (_queues is null or queue = any (_queues))
        and (serial_key is null or not exists (
            select from rowcall.job r where r.serial_key = w.serial_key and r.state = 'running'))
$$;

-- Returns jobs as JSON, the newest first. Null for the owner: those of all. _before: the last job of the page before.
create function rowcall.list_jobs(
    _owner text, _state text, _queue text, _endpoint text, _before uuid, _most integer)
returns table (about text)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select json_build_object(
            'id', j.id, 'endpoint', j.endpoint, 'queue', j.queue, 'state', j.state, 'attempts', j.attempts,
            'created', j.created, 'runAt', j.run_at, 'started', j.started, 'finished', j.finished,
            'progress', p.message, 'error', j.error)::text
    from rowcall.job j left join rowcall.job_progress p on p.job = j.id
    where (_owner is null or j.owner = _owner) and (_state is null or j.state = _state)
        and (_queue is null or j.queue = _queue) and (_endpoint is null or j.endpoint = _endpoint)
        and (_before is null or (j.created, j.id) < (select b.created, b.id from rowcall.job b where b.id = _before))
    order by j.created desc, j.id desc limit _most
$$;
