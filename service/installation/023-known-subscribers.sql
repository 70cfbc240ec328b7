-- A worker leaves the deliveries of subscribers that it does not know to others, and the time until a delivery is given up
-- begins with its first attempt.

-- Makes the deliveries of new messages, and takes those that are due for some seconds, after which another worker may take
-- them. Subscribers of the configuration are given by name and topics, the latter separated by spaces. A delivery of any
-- other subscriber that is not in the table is taken only after _give_up seconds, to end it: until then, a worker with
-- another configuration may know the subscriber.
create function rowcall.take_webhooks(
    _names text[], _topics text[], _most integer, _seconds double precision, _give_up double precision)
returns table (message uuid, subscriber text, attempt integer, since timestamptz, url text, secret text, body text)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    -- One worker at a time, so that deliveries of a key become visible in the order of their messages.
    if exists (select from rowcall.webhook_message where not assigned)
        and pg_try_advisory_xact_lock(hashtextextended('rowcall webhooks', 1)) then
        with new as (
            update rowcall.webhook_message m set assigned = true
            where m.number in (select number from rowcall.webhook_message where not assigned order by number limit 1000)
            returning m.*
        )
        insert into rowcall.webhook_delivery (message, subscriber, number, key)
        select new.id, s.name, new.number, new.key
        from new, (
            select name, string_to_array(topics, ' ') from unnest(_names, _topics) as c (name, topics)
            union all
            select name, topics from rowcall.webhook_subscriber where active and not name = any (_names)
        ) as s (name, topics)
        where rowcall.matches_topic(new.topic, s.topics)
        on conflict do nothing;
    end if;
    return query
    with found as (
        select d.message, d.subscriber from rowcall.webhook_delivery d
        where (d.message, d.subscriber) in (
            select w.message, w.subscriber from rowcall.webhook_due w
            where w.due <= clock_timestamp()
                and (w.subscriber = any (_names)
                    or exists (select from rowcall.webhook_subscriber s where s.name = w.subscriber)
                    or w.since <= clock_timestamp() - make_interval(secs => _give_up))
            order by w.due limit _most)
            and d.state = 'waiting' and d.run_at <= clock_timestamp()
        for update skip locked
    ), taken as (
        update rowcall.webhook_delivery d
        set attempts = d.attempts + 1, run_at = clock_timestamp() + make_interval(secs => _seconds),
            since = case when d.attempts = 0 then clock_timestamp() else d.since end
        from found f where d.message = f.message and d.subscriber = f.subscriber
        returning d.*
    )
    select t.message, t.subscriber, t.attempts, t.since, s.url, s.secret,
        json_build_object('type', m.topic, 'timestamp', m.created, 'data', m.payload)::text
    from taken t join rowcall.webhook_message m on m.id = t.message
    left join rowcall.webhook_subscriber s on s.name = t.subscriber and s.active;
end $$;

-- Returns the seconds until take_webhooks with these subscribers may take a delivery; null if there is none.
create function rowcall.next_webhook(_names text[], _give_up double precision) returns double precision
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select extract(epoch from min(case
            when w.subscriber = any (_names)
                or exists (select from rowcall.webhook_subscriber s where s.name = w.subscriber) then w.due
            else greatest(w.due, w.since + make_interval(secs => _give_up))
        end) - clock_timestamp())::double precision
    from rowcall.webhook_due w
$$;

-- For workers of former versions, which do not say when they give up: that is the default. They look for deliveries that
-- they may not know, so they wait a second if there are any.
create or replace function rowcall.take_deliveries(
    _names text[], _topics text[], _most integer, _seconds double precision)
returns table (message uuid, subscriber text, attempt integer, since timestamptz, url text, secret text, body text)
language sql security definer set search_path = pg_catalog, pg_temp as $$
    select * from rowcall.take_webhooks(_names, _topics, _most, _seconds, 259200)
$$;

create or replace function rowcall.next_delivery() returns double precision
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select case when min(due) is not null then greatest(1, extract(epoch from min(due) - clock_timestamp())) end
        ::double precision
    from rowcall.webhook_due
$$;

revoke execute on function
    rowcall.take_webhooks(text[], text[], integer, double precision, double precision),
    rowcall.next_webhook(text[], double precision)
from public;

-- Roles that may take deliveries keep that right.
do $$
declare
    service text;
begin
    for service in
        select a.grantee::regrole::text
        from pg_catalog.pg_proc p, pg_catalog.aclexplode(p.proacl) a
        where p.oid = 'rowcall.take_deliveries(text[], text[], integer, double precision)'::regprocedure
            and a.privilege_type = 'EXECUTE' and a.grantee not in (0, p.proowner)
    loop
        execute pg_catalog.format(
            'grant execute on function rowcall.take_webhooks, rowcall.next_webhook to %s', service);
    end loop;
end $$;
