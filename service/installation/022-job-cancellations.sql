-- Cancellations of running jobs are stored, so that a job whose worker is lost or stops is not run again.

-- Not a column of the job, whose row is locked while it runs.
create table rowcall.job_cancellation (
    job uuid primary key,
    requested timestamptz not null default clock_timestamp()
);
comment on table rowcall.job_cancellation is 'Jobs that were running when they were cancelled, until they have ended.';

-- Cancels a job. `running`: its worker has to cancel it; if that is lost, the job ends when it is recovered.
create or replace function rowcall.cancel_job(_id uuid)
returns text language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '1s' as $$
declare
    before text;
begin
    select state into before from rowcall.job where id = _id;
    if before = 'waiting' then
        -- A worker that is taking the job has locked it for a moment.
        begin
            select state into before from rowcall.job where id = _id for update;
        exception when lock_not_available then
            before := 'running';
        end;
    end if;
    if before = 'waiting' then
        update rowcall.job set state = 'cancelled', finished = clock_timestamp() where id = _id;
        return 'cancelled';
    end if;
    if before = 'running' then
        insert into rowcall.job_cancellation (job) values (_id) on conflict do nothing;
        perform pg_notify('rowcall_jobs', 'cancel ' || _id);
    end if;
    return coalesce(before, 'running');
end $$;

-- Returns those of some jobs that have to be cancelled, for workers that have missed the notification.
create function rowcall.cancelled_jobs(_ids uuid[]) returns setof uuid
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select job from rowcall.job_cancellation where job = any (_ids)
$$;

-- Ends an attempt without effect. With a delay the job runs again after so many seconds, unless it was cancelled.
create or replace function rowcall.fail_job(
    _id uuid, _attempt integer, _error text, _delay double precision, _state text)
returns void language sql security definer set search_path = pg_catalog, pg_temp as $$
    update rowcall.job j set
        state = ended.state,
        error = _error,
        run_at = case when ended.state = 'waiting' then clock_timestamp() + _delay * interval '1 second' else run_at end,
        finished = case when ended.state <> 'waiting' then clock_timestamp() end
    from (
        select case
            when _delay is null then _state
            when exists (select from rowcall.job_cancellation where job = _id) then 'cancelled'
            else 'waiting' end as state
    ) ended
    where j.id = _id and j.attempts = _attempt and j.state = 'running'
$$;

-- Ends an attempt for a reason of the service: the job waits again, in its place, unless it was cancelled. False: it has
-- ended, or is not ours any more, or its transaction has not ended yet.
create or replace function rowcall.release_job(_id uuid, _attempt integer, _error text)
returns boolean language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '2s' as $$
begin
    update rowcall.job j
    set state = ended.state, error = _error, interruptions = interruptions + 1,
        finished = case when ended.state = 'cancelled' then clock_timestamp() end
    from (
        select case
            when exists (select from rowcall.job_cancellation where job = _id) then 'cancelled'
            else 'waiting' end as state
    ) ended
    where j.id = _id and j.attempts = _attempt and j.state = 'running';
    if not found then
        return false;
    end if;
    perform pg_notify('rowcall_jobs', '');
    return true;
exception when lock_not_available then
    return false;
end $$;

-- Jobs whose worker has died wait again: those that nobody locks, and that no worker has reported for some seconds. Those
-- that were cancelled end, also if that was while their attempt failed. Returns how many wait again.
create or replace function rowcall.recover_jobs(_grace double precision)
returns bigint language sql security definer set search_path = pg_catalog, pg_temp as $$
    with lost as (
        select id from rowcall.job
        where state = 'running' and started < clock_timestamp() - _grace * interval '1 second'
            and (alive is null or alive < clock_timestamp() - _grace * interval '1 second')
        for update skip locked
    ), recovered as (
        update rowcall.job j
        set state = case when c.job is null then 'waiting' else 'cancelled' end,
            finished = case when c.job is not null then clock_timestamp() end,
            error = 'the worker that ran it was lost', interruptions = j.interruptions + 1
        from lost left join rowcall.job_cancellation c on c.job = lost.id
        where j.id = lost.id
        returning j.state
    ), waiting as (
        select w.id from rowcall.job w join rowcall.job_cancellation c on c.job = w.id
        where w.state = 'waiting' for update of w skip locked
    ), cancelled as (
        update rowcall.job j set state = 'cancelled', finished = clock_timestamp()
        from waiting w where j.id = w.id
    ), ended as (
        delete from rowcall.job_cancellation c
        where not exists (select from rowcall.job j where j.id = c.job and j.state in ('waiting', 'running'))
    )
    select count(*) from recovered where state = 'waiting'
$$;

-- Makes a job wait again that has failed or was cancelled, with all of its attempts. Returns `waiting`; the state of a job
-- that is neither; `duplicate` if another job with the same unique key waits or runs; null if there is no such job.
create or replace function rowcall.retry_job(_id uuid) returns text
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
        set state = 'waiting', attempts = 0, interruptions = 0, run_at = clock_timestamp(), started = null,
            finished = null, error = null
        where id = _id;
    exception when unique_violation then
        return 'duplicate';
    end;
    delete from rowcall.job_progress where job = _id;
    delete from rowcall.job_cancellation where job = _id;
    perform pg_notify('rowcall_jobs', before.queue);
    return 'waiting';
end $$;

revoke execute on function rowcall.cancelled_jobs(uuid[]) from public;

-- Roles that may cancel jobs may read which ones are cancelled.
do $$
declare
    service text;
begin
    for service in
        select a.grantee::regrole::text
        from pg_catalog.pg_proc p, pg_catalog.aclexplode(p.proacl) a
        where p.oid = 'rowcall.cancel_job(uuid)'::regprocedure
            and a.privilege_type = 'EXECUTE' and a.grantee not in (0, p.proowner)
    loop
        execute pg_catalog.format('grant execute on function rowcall.cancelled_jobs(uuid[]) to %s', service);
    end loop;
end $$;
