-- Several jobs for each key at the same time, and less work for the server in each job.

alter table rowcall.job
    add column serial_limit integer not null default 1 check (serial_limit > 0),
    add column serial_slot integer not null default 1;
comment on column rowcall.job.serial_limit is 'How many jobs with the same serial_key may run when this one begins.';
comment on column rowcall.job.serial_slot is 'Number of a running job, from 1, among those with the same serial_key.';
-- Two running jobs with the same key never have the same slot, so their number is limited whatever workers do.
drop index rowcall.job_serial;
create unique index job_serial on rowcall.job (serial_key, serial_slot)
    where state = 'running' and serial_key is not null;
drop index rowcall.job_serial_order;
create index job_serial_order on rowcall.job (serial_key, (-priority::bigint), run_at, id)
    where state = 'waiting' and serial_key is not null;
create index job_due on rowcall.job (priority desc, run_at) where state = 'waiting';

drop function rowcall.add_job(text, jsonb, boolean, text, integer, text, text, jsonb, timestamptz, text, text);
create function rowcall.add_job(
    _endpoint text, _arguments jsonb, _bound boolean, _queue text, _priority integer, _unique_key text, _owner text,
    _claims jsonb, _run_at timestamptz, _serial_key text default null, _trace text default null,
    _serial_limit integer default 1)
returns uuid language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    made uuid;
begin
    loop
        insert into rowcall.job (
            endpoint, arguments, bound, queue, priority, unique_key, owner, claims, run_at, serial_key, trace,
            serial_limit)
        values (
            _endpoint, _arguments, _bound, _queue, _priority, _unique_key, _owner, _claims, _run_at, _serial_key,
            _trace, _serial_limit)
        on conflict (endpoint, unique_key) where unique_key is not null and state in ('waiting', 'running') do nothing
        returning id into made;
        if made is not null then
            -- Workers look at once for a job that is due, and for the time of one that is due later.
            perform pg_notify('rowcall_jobs', case when _run_at > clock_timestamp() then 'later' else _queue end);
            return made;
        end if;
        select id into made from rowcall.job
        where endpoint = _endpoint and unique_key = _unique_key and state in ('waiting', 'running');
        if made is not null then
            return made;
        end if;
    end loop;
end $$;

drop function rowcall.enqueue(text, jsonb, text, timestamptz, integer, text, jsonb, text);
create function rowcall.enqueue(
    _endpoint text, _arguments jsonb default '{}', _queue text default 'default', _run_at timestamptz default now(),
    _priority integer default 0, _unique_key text default null, _claims jsonb default null,
    _serial_key text default null, _serial_limit integer default 1)
returns uuid language sql as $$
    select rowcall.add_job(
        _endpoint, _arguments, false, _queue, _priority, _unique_key, '', _claims, _run_at, _serial_key, null,
        _serial_limit)
$$;

-- Takes jobs of all queues that are due. A job with a key is taken if fewer jobs with the key run or precede it than its
-- limit says. Jobs that another worker is taking are waiting jobs here, so that none overtakes those that precede it, and
-- their slots stay free for them. The settings make the server read waiting jobs in their order, whatever the statistics
-- of the table, whose content changes faster than they are collected.
create function rowcall.take_of_all_queues(_endpoints text[], _most integer)
returns setof rowcall.job language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_sort = off set enable_seqscan = off set enable_hashjoin = off
set enable_mergejoin = off set jit = off as $$
declare
    taken rowcall.job[];
begin
    -- Several workers look for each job that is enqueued, and all but one in vain.
    if not exists (
        select from rowcall.job
        where state = 'waiting' and run_at <= statement_timestamp() and endpoint = any (_endpoints)) then
        return;
    end if;
    for attempt in 1 .. 5 loop
        begin
            with found as (
                select id, serial_key, serial_limit, priority, run_at from rowcall.job w
                where state = 'waiting' and run_at <= statement_timestamp() and endpoint = any (_endpoints)
                    and (serial_key is null or serial_limit > (
                        select count(*) from rowcall.job r where r.serial_key = w.serial_key and r.state = 'running'
                    ) + (
                        select count(*) from (
                            select from rowcall.job e
                            where e.serial_key = w.serial_key and e.state = 'waiting'
                                and e.run_at <= statement_timestamp() and e.endpoint = any (_endpoints)
                                and (-e.priority::bigint, e.run_at, e.id) < (-w.priority::bigint, w.run_at, w.id)
                            limit w.serial_limit) earlier))
                order by priority desc, run_at limit _most for update skip locked
            ), placed as (
                select id, case when serial_key is null then 1 else (
                    select slot from generate_series(1, f.serial_limit) slot
                    where not exists (
                        select from rowcall.job r
                        where r.serial_key = f.serial_key and r.state = 'running' and r.serial_slot = slot)
                    order by slot offset (
                        select count(*) from (
                            select from rowcall.job e
                            where e.serial_key = f.serial_key and e.state = 'waiting'
                                and e.run_at <= statement_timestamp() and e.endpoint = any (_endpoints)
                                and (-e.priority::bigint, e.run_at, e.id) < (-f.priority::bigint, f.run_at, f.id)
                            limit f.serial_limit) earlier)
                    limit 1) end as slot
                from found f
            ), begun as (
                update rowcall.job j
                set state = 'running', started = clock_timestamp(), attempts = j.attempts + 1, serial_slot = p.slot
                from placed p where j.id = p.id and p.slot is not null
                returning j.*
            )
            select array_agg(b) into taken from begun b;
            return query select * from unnest(taken);
            return;
        exception when unique_violation or deadlock_detected then
            -- Another worker has taken a job with the same key meanwhile, which the next look sees.
            taken := null;
        end;
    end loop;
end $$;

-- Takes jobs that are due, as `take_of_all_queues` does, of some queues or without some.
create or replace function rowcall.take_due(_endpoints text[], _queues text[], _without text[], _most integer)
returns setof rowcall.job language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    taken rowcall.job[];
begin
    if _queues is null and _without is null then
        return query select * from rowcall.take_of_all_queues(_endpoints, _most);
        return;
    end if;
    for attempt in 1 .. 5 loop
        begin
            with found as (
                select id, serial_key, serial_limit, priority, run_at from rowcall.job w
                where state = 'waiting' and run_at <= statement_timestamp() and endpoint = any (_endpoints)
                    and (_queues is null or queue = any (_queues)) and (_without is null or queue <> all (_without))
                    and (serial_key is null or serial_limit > (
                        select count(*) from rowcall.job r where r.serial_key = w.serial_key and r.state = 'running'
                    ) + (
                        select count(*) from (
                            select from rowcall.job e
                            where e.serial_key = w.serial_key and e.state = 'waiting'
                                and e.run_at <= statement_timestamp() and e.endpoint = any (_endpoints)
                                and (_queues is null or e.queue = any (_queues))
                                and (_without is null or e.queue <> all (_without))
                                and (-e.priority::bigint, e.run_at, e.id) < (-w.priority::bigint, w.run_at, w.id)
                            limit w.serial_limit) earlier))
                order by priority desc, run_at limit _most for update skip locked
            ), placed as (
                select id, case when serial_key is null then 1 else (
                    select slot from generate_series(1, f.serial_limit) slot
                    where not exists (
                        select from rowcall.job r
                        where r.serial_key = f.serial_key and r.state = 'running' and r.serial_slot = slot)
                    order by slot offset (
                        select count(*) from (
                            select from rowcall.job e
                            where e.serial_key = f.serial_key and e.state = 'waiting'
                                and e.run_at <= statement_timestamp() and e.endpoint = any (_endpoints)
                                and (_queues is null or e.queue = any (_queues))
                                and (_without is null or e.queue <> all (_without))
                                and (-e.priority::bigint, e.run_at, e.id) < (-f.priority::bigint, f.run_at, f.id)
                            limit f.serial_limit) earlier)
                    limit 1) end as slot
                from found f
            ), begun as (
                update rowcall.job j
                set state = 'running', started = clock_timestamp(), attempts = j.attempts + 1, serial_slot = p.slot
                from placed p where j.id = p.id and p.slot is not null
                returning j.*
            )
            select array_agg(b) into taken from begun b;
            return query select * from unnest(taken);
            return;
        exception when unique_violation or deadlock_detected then
            -- Another worker has taken a job with the same key meanwhile, which the next look sees.
            taken := null;
        end;
    end loop;
end $$;

create or replace function rowcall.next_job(_endpoints text[], _queues text[]) returns double precision
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
    return extract(epoch from min(run_at) - clock_timestamp())::double precision from rowcall.job w
    where state = 'waiting' and endpoint = any (_endpoints) and (_queues is null or queue = any (_queues))
        and (serial_key is null or serial_limit > (
            select count(*) from rowcall.job r where r.serial_key = w.serial_key and r.state = 'running'));
end $$;

-- Locks a running job for the transaction. Raises an error if it is not ours any more, so that nothing behind it in the
-- same segment runs. The state is compared in a form for which the server does not use the index of running jobs, which
-- has an entry for each job that has run since the last vacuum.
create function rowcall.lock_job(_id uuid, _attempt integer)
returns void language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '5s' as $$
begin
    perform from rowcall.job
    where id = _id and attempts = _attempt and state is not distinct from 'running' for update;
    if not found then
        raise exception 'the job has ended, or another worker has it'
            using errcode = 'object_not_in_prerequisite_state';
    end if;
end $$;

create or replace function rowcall.finish_job(_id uuid, _attempt integer, _content_type text, _result bytea)
returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    update rowcall.job set state = 'done', finished = clock_timestamp(), content_type = _content_type,
        result = _result, error = null
    where id = _id and attempts = _attempt and state is not distinct from 'running';
end $$;
