-- Attempts that the service has broken off, which are no attempts of the job.

alter table rowcall.job add column interruptions integer not null default 0;
comment on column rowcall.job.interruptions is 'Attempts that ended for a reason of the service, such as a lost worker.';

-- Locks a running job for the transaction. False: it is not ours any more. Workers that look for waiting jobs lock the
-- row for a moment if they have seen it before it was taken, so the lock is awaited.
create or replace function rowcall.hold_job(_id uuid, _attempt integer)
returns boolean language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '5s' as $$
begin
    perform from rowcall.job where id = _id and attempts = _attempt and state = 'running' for update;
    return found;
exception when lock_not_available then
    return false;
end $$;

-- Ends an attempt for a reason of the service: the job waits again, in its place. False: it has ended, or is not ours any
-- more, or its transaction has not ended yet.
create function rowcall.release_job(_id uuid, _attempt integer, _error text)
returns boolean language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '2s' as $$
begin
    update rowcall.job set state = 'waiting', error = _error, interruptions = interruptions + 1
    where id = _id and attempts = _attempt and state = 'running';
    if not found then
        return false;
    end if;
    perform pg_notify('rowcall_jobs', '');
    return true;
exception when lock_not_available then
    return false;
end $$;

-- Jobs whose worker has died wait again.
create or replace function rowcall.recover_jobs(_grace double precision)
returns bigint language sql security definer set search_path = pg_catalog, pg_temp as $$
    with lost as (
        select id from rowcall.job
        where state = 'running' and started < clock_timestamp() - _grace * interval '1 second'
        for update skip locked
    ), recovered as (
        update rowcall.job j
        set state = 'waiting', error = 'the worker that ran it was lost', interruptions = j.interruptions + 1
        from lost where j.id = lost.id returning 1
    )
    select count(*) from recovered
$$;

-- Makes a job wait again that has failed or was cancelled, with all of its attempts. Returns `waiting`; the state of a job
-- that is neither; `duplicate` if another job with the same unique key waits or runs; null if there is no such job.
create function rowcall.retry_job(_id uuid) returns text
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    before rowcall.job;
begin
    select * into before from rowcall.job where id = _id for update;
    if before.id is null or before.state not in ('failed', 'cancelled') then
        return before.state;
    end if;
    begin
        update rowcall.job
        set state = 'waiting', attempts = 0, interruptions = 0, run_at = clock_timestamp(), started = null, finished = null,
            error = null
        where id = _id;
    exception when unique_violation then
        return 'duplicate';
    end;
    delete from rowcall.job_progress where job = _id;
    perform pg_notify('rowcall_jobs', before.queue);
    return 'waiting';
end $$;

-- It repeats work of any user: other roles need grants.
revoke execute on function rowcall.retry_job(uuid) from public;
