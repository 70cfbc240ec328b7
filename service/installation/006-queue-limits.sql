-- Takes jobs, of some queues only as many as may run at the same time in all services.
create function rowcall.take_jobs_within(
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
                return query select * from rowcall.take_jobs(_endpoints, array[_names[i]], least(room, left_over));
                get diagnostics taken = row_count;
                left_over := left_over - taken;
            end if;
        end if;
    end loop;
    if left_over > 0 then
        return query
        update rowcall.job j set state = 'running', started = clock_timestamp(), attempts = j.attempts + 1
        from (
            select id from rowcall.job
            where state = 'waiting' and run_at <= clock_timestamp() and endpoint = any (_endpoints)
                and (_queues is null or queue = any (_queues)) and not queue = any (_names)
            order by priority desc, run_at limit left_over for update skip locked
        ) found
        where j.id = found.id
        returning j.*;
    end if;
end $$;
