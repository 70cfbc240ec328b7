-- Counts for metrics.

create index webhook_delivery_dead on rowcall.webhook_delivery (subscriber) where state = 'dead';

create function rowcall.count_jobs() returns table (queue text, state text, jobs bigint)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select queue, state, count(*) from rowcall.job where state in ('waiting', 'running') group by queue, state
$$;

create function rowcall.count_deliveries() returns table (subscriber text, state text, deliveries bigint)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select subscriber, state, count(*) from rowcall.webhook_delivery where state = 'waiting' group by subscriber, state
    union all
    select subscriber, state, count(*) from rowcall.webhook_delivery where state = 'dead' group by subscriber, state
$$;
