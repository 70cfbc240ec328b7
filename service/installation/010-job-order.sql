-- Jobs with the same key run in the order in which they are due.

create index job_serial_order on rowcall.job (serial_key, (-priority::bigint), run_at)
    where state = 'waiting' and serial_key is not null;

-- Takes jobs that are due, of each key only the first one, and none whose key is that of a running job. The jobs that
-- another worker is taking are waiting jobs here, so that none is taken before those that precede it. Of two workers
-- that take different jobs with the same key at the same time, the second one gets only jobs without a key.
create or replace function rowcall.take_due(_endpoints text[], _queues text[], _without text[], _most integer)
returns setof rowcall.job language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    return query
    with locked as (
        select id, serial_key, priority, run_at from rowcall.job w
        where state = 'waiting' and run_at <= clock_timestamp() and endpoint = any (_endpoints)
            and (_queues is null or queue = any (_queues)) and (_without is null or queue <> all (_without))
            and (serial_key is null or not exists (
                select from rowcall.job r where r.serial_key = w.serial_key and r.state = 'running'))
            and (serial_key is null or not exists (
                select from rowcall.job e
                where e.serial_key = w.serial_key and e.state = 'waiting' and e.run_at <= clock_timestamp()
                    and (-e.priority::bigint, e.run_at) < (-w.priority::bigint, w.run_at)
                    and e.endpoint = any (_endpoints)
                    and (_queues is null or e.queue = any (_queues))
                    and (_without is null or e.queue <> all (_without))))
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
