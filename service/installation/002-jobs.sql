-- Jobs: calls of endpoints that run later, in a worker of any host.

create table rowcall.job (
    id uuid primary key default gen_random_uuid(),
    endpoint text not null,
    queue text not null default 'default',
    priority integer not null default 0,
    state text not null default 'waiting' check (state in ('waiting', 'running', 'done', 'failed', 'cancelled')),
    owner text not null default '',
    claims jsonb,
    arguments jsonb not null default '{}',
    -- The arguments are texts as the service has bound them.
    bound boolean not null default false,
    unique_key text,
    attempts integer not null default 0,
    created timestamptz not null default now(),
    run_at timestamptz not null default now(),
    started timestamptz,
    finished timestamptz,
    error text,
    content_type text,
    result bytea
);
create index job_waiting on rowcall.job (queue, priority desc, run_at) where state = 'waiting';
create index job_running on rowcall.job (started) where state = 'running';
create index job_finished on rowcall.job (finished) where finished is not null;
create unique index job_unique on rowcall.job (endpoint, unique_key)
    where unique_key is not null and state in ('waiting', 'running');
comment on table rowcall.job is 'Calls of endpoints that run later, and their results.';

create function rowcall.add_job(
    _endpoint text, _arguments jsonb, _bound boolean, _queue text, _priority integer, _unique_key text, _owner text,
    _claims jsonb, _run_at timestamptz)
returns uuid language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    made uuid;
begin
    loop
        insert into rowcall.job (endpoint, arguments, bound, queue, priority, unique_key, owner, claims, run_at)
        values (_endpoint, _arguments, _bound, _queue, _priority, _unique_key, _owner, _claims, _run_at)
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

-- For triggers and routines: the job is part of their transaction. The endpoint is written like `POST /reports`, and the
-- arguments by the names that requests have for them.
create function rowcall.enqueue(
    _endpoint text, _arguments jsonb default '{}', _queue text default 'default', _run_at timestamptz default now(),
    _priority integer default 0, _unique_key text default null, _claims jsonb default null)
returns uuid language sql as $$
    select rowcall.add_job(_endpoint, _arguments, false, _queue, _priority, _unique_key, '', _claims, _run_at)
$$;

-- Takes jobs for a worker. The marks are committed at once; while a job runs, its row is locked by the transaction of the
-- routine, so that a job whose worker has died is recognized by the missing lock.
create function rowcall.take_jobs(_endpoints text[], _queues text[], _most integer)
returns setof rowcall.job language sql security definer set search_path = pg_catalog, pg_temp as $$
    update rowcall.job j set state = 'running', started = clock_timestamp(), attempts = j.attempts + 1
    from (
        select id from rowcall.job
        where state = 'waiting' and run_at <= clock_timestamp() and endpoint = any (_endpoints)
            and (_queues is null or queue = any (_queues))
        order by priority desc, run_at limit _most for update skip locked
    ) found
    where j.id = found.id
    returning j.*
$$;

create function rowcall.next_job(_endpoints text[], _queues text[]) returns double precision
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select extract(epoch from min(run_at) - clock_timestamp())::double precision from rowcall.job
    where state = 'waiting' and endpoint = any (_endpoints) and (_queues is null or queue = any (_queues))
$$;

-- Locks a running job for the transaction. False: it is not ours any more.
create function rowcall.hold_job(_id uuid, _attempt integer)
returns boolean language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform from rowcall.job where id = _id and attempts = _attempt and state = 'running' for update nowait;
    return found;
exception when lock_not_available then
    return false;
end $$;

create function rowcall.finish_job(_id uuid, _attempt integer, _content_type text, _result bytea)
returns void language sql security definer set search_path = pg_catalog, pg_temp as $$
    update rowcall.job set state = 'done', finished = clock_timestamp(), content_type = _content_type,
        result = _result, error = null
    where id = _id and attempts = _attempt and state = 'running'
$$;

-- Ends an attempt without effect. With a delay the job runs again after so many seconds.
create function rowcall.fail_job(_id uuid, _attempt integer, _error text, _delay double precision, _state text)
returns void language sql security definer set search_path = pg_catalog, pg_temp as $$
    update rowcall.job set
        state = case when _delay is null then _state else 'waiting' end,
        error = _error,
        run_at = case when _delay is null then run_at else clock_timestamp() + _delay * interval '1 second' end,
        finished = case when _delay is null then clock_timestamp() end
    where id = _id and attempts = _attempt and state = 'running'
$$;

-- The progress of running jobs. Not a column of the job, whose row is locked while it runs.
create table rowcall.job_progress (
    job uuid primary key,
    attempt integer not null,
    message text not null,
    reported timestamptz not null default now()
);

create function rowcall.report_job(_id uuid, _attempt integer, _message text)
returns void language sql security definer set search_path = pg_catalog, pg_temp as $$
    insert into rowcall.job_progress (job, attempt, message) values (_id, _attempt, left(_message, 4000))
    on conflict (job) do update set attempt = _attempt, message = excluded.message, reported = clock_timestamp()
    where job_progress.attempt <= _attempt
$$;

-- Owner, description, content type and result of a job, for its owner.
create function rowcall.show_job(_id uuid)
returns table (owner text, about text, content_type text, result bytea)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select j.owner, json_build_object(
            'id', j.id, 'endpoint', j.endpoint, 'queue', j.queue, 'state', j.state, 'attempts', j.attempts,
            'created', j.created, 'runAt', j.run_at, 'started', j.started, 'finished', j.finished,
            'progress', p.message, 'error', j.error)::text,
        j.content_type, j.result
    from rowcall.job j left join rowcall.job_progress p on p.job = j.id
    where j.id = _id
$$;

-- Jobs whose worker has died wait again.
create function rowcall.recover_jobs(_grace double precision)
returns bigint language sql security definer set search_path = pg_catalog, pg_temp as $$
    with lost as (
        select id from rowcall.job
        where state = 'running' and started < clock_timestamp() - _grace * interval '1 second'
        for update skip locked
    ), recovered as (
        update rowcall.job j set state = 'waiting', error = 'the worker that ran it was lost'
        from lost where j.id = lost.id returning 1
    )
    select count(*) from recovered
$$;

-- Cancels a job that waits. `running`: its worker has to cancel it, and is notified.
create function rowcall.cancel_job(_id uuid)
returns text language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    before text;
begin
    select state into before from rowcall.job where id = _id for update skip locked;
    if before = 'waiting' then
        update rowcall.job set state = 'cancelled', finished = clock_timestamp() where id = _id;
        return 'cancelled';
    end if;
    perform pg_notify('rowcall_jobs', 'cancel ' || _id);
    return coalesce(before, 'running');
end $$;

create function rowcall.remove_finished_jobs(_seconds double precision, _most integer)
returns bigint language sql security definer set search_path = pg_catalog, pg_temp as $$
    with removed as (
        delete from rowcall.job where id in (
            select id from rowcall.job where finished < now() - _seconds * interval '1 second' limit _most
            for update skip locked)
        returning id
    ), gone as (
        delete from rowcall.job_progress p using removed r where p.job = r.id
    )
    select count(*) from removed
$$;
