-- Schedules: the last time at which each was due and has been enqueued, by one of all workers.

create table rowcall.schedule (
    endpoint text primary key,
    due timestamptz not null,
    job uuid
);
comment on table rowcall.schedule is 'The last times of schedules.';

-- Enqueues the job of a schedule for one time, unless another worker has done that. Returns whether it did. Without
-- overlap, nothing is enqueued while the former job has not ended.
create function rowcall.enqueue_due(_endpoint text, _due timestamptz, _queue text, _priority integer, _overlap boolean)
returns boolean language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    made uuid;
begin
    insert into rowcall.schedule as s (endpoint, due) values (_endpoint, _due)
    on conflict (endpoint) do update set due = excluded.due where s.due < excluded.due;
    if not found then
        return false;
    end if;
    made := rowcall.add_job(
        _endpoint, '{}', false, _queue, _priority, case when not _overlap then 'schedule' end, '', null, now());
    update rowcall.schedule set job = made where endpoint = _endpoint;
    return true;
end $$;

-- Returns the last times of schedules. Those not seen before begin with the given ones, whose jobs nobody missed.
create function rowcall.last_due(_endpoints text[], _former timestamptz[])
returns table (endpoint text, due timestamptz)
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    insert into rowcall.schedule (endpoint, due)
    select e, coalesce(f, '-infinity') from unnest(_endpoints, _former) as u (e, f)
    on conflict do nothing;
    select s.endpoint, s.due from rowcall.schedule s where s.endpoint = any (_endpoints)
$$;

-- Returns the last time of each schedule with the state of its job, which may have been removed since.
create function rowcall.schedules()
returns table (endpoint text, due timestamptz, job uuid, state text)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select s.endpoint, s.due, s.job, j.state from rowcall.schedule s left join rowcall.job j on j.id = s.job
$$;
