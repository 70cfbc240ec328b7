-- Webhooks: messages that routines publish, and their deliveries to subscribers.

create table rowcall.webhook_message (
    id uuid primary key default gen_random_uuid(),
    number bigint generated always as identity unique,
    topic text not null,
    key text,
    payload jsonb not null,
    created timestamptz not null default clock_timestamp(),
    -- The deliveries have been made.
    assigned boolean not null default false
);
create index webhook_message_new on rowcall.webhook_message (number) where not assigned;
create index webhook_message_created on rowcall.webhook_message (created);
comment on table rowcall.webhook_message is 'Published messages.';

create table rowcall.webhook_subscriber (
    name text primary key,
    url text not null,
    topics text[] not null default '{*}',
    secret text not null check (secret like 'whsec\_%'),
    active boolean not null default true
);
comment on table rowcall.webhook_subscriber is 'Subscribers of topics, besides those of the configuration.';

create table rowcall.webhook_delivery (
    message uuid not null references rowcall.webhook_message on delete cascade,
    subscriber text not null,
    number bigint not null,
    key text,
    state text not null default 'waiting' check (state in ('waiting', 'done', 'dead')),
    attempts integer not null default 0,
    since timestamptz not null default clock_timestamp(),
    run_at timestamptz not null default clock_timestamp(),
    finished timestamptz,
    status integer,
    error text,
    primary key (message, subscriber)
);
create index webhook_delivery_waiting on rowcall.webhook_delivery (run_at) where state = 'waiting';
create index webhook_delivery_order on rowcall.webhook_delivery (subscriber, key, number) where state = 'waiting';
comment on table rowcall.webhook_delivery is 'Deliveries of messages; dead ones were given up.';

create table rowcall.webhook_target (
    subscriber text primary key,
    failures integer not null default 0,
    paused_until timestamptz
);
comment on table rowcall.webhook_target is 'Subscribers whose last deliveries failed.';

-- Publishes a message in the transaction of the caller. Transactions that publish with the same key wait for each other,
-- so that messages of a key have the order of their commits.
create function rowcall.publish(_topic text, _payload jsonb, _key text default null)
returns uuid language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    made uuid;
begin
    if _topic !~ '^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$' then
        raise exception 'the topic % is not valid: it consists of words separated by dots, such as order.paid',
            quote_literal(_topic) using errcode = 'invalid_parameter_value';
    end if;
    if _key is not null then
        perform pg_advisory_xact_lock(hashtextextended('rowcall webhooks ' || _key, 0));
    end if;
    insert into rowcall.webhook_message (topic, key, payload) values (_topic, _key, coalesce(_payload, 'null'))
    returning id into made;
    perform pg_notify('rowcall_webhooks', '');
    return made;
end $$;

-- Whether a subscriber of some topics gets a message: `*` is every topic, and `order.*` all below `order`.
create function rowcall.matches_topic(_topic text, _topics text[]) returns boolean
language sql immutable set search_path = pg_catalog, pg_temp as $$
    select exists (
        select from unnest(_topics) as t (pattern)
        where pattern in ('*', _topic) or (pattern like '%.*' and starts_with(_topic, left(pattern, -1))))
$$;

-- The deliveries that wait for nothing but their time: each is the first one of its key.
create view rowcall.webhook_due as
select d.*, greatest(d.run_at, t.paused_until) as due
from rowcall.webhook_delivery d left join rowcall.webhook_target t using (subscriber)
where d.state = 'waiting' and (d.key is null or not exists (
    select from rowcall.webhook_delivery e
    where e.state = 'waiting' and e.subscriber = d.subscriber and e.key = d.key and e.number < d.number));

-- Makes the deliveries of new messages, and takes those that are due for some seconds, after which another worker may take
-- them. Subscribers of the configuration are given by name and topics, the latter separated by spaces.
create function rowcall.take_deliveries(_names text[], _topics text[], _most integer, _seconds double precision)
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
            select message, subscriber from rowcall.webhook_due where due <= clock_timestamp() order by due limit _most)
            and d.state = 'waiting' and d.run_at <= clock_timestamp()
        for update skip locked
    ), taken as (
        update rowcall.webhook_delivery d
        set attempts = d.attempts + 1, run_at = clock_timestamp() + make_interval(secs => _seconds)
        from found f where d.message = f.message and d.subscriber = f.subscriber
        returning d.*
    )
    select t.message, t.subscriber, t.attempts, t.since, s.url, s.secret,
        json_build_object('type', m.topic, 'timestamp', m.created, 'data', m.payload)::text
    from taken t join rowcall.webhook_message m on m.id = t.message
    left join rowcall.webhook_subscriber s on s.name = t.subscriber and s.active;
end $$;

create function rowcall.next_delivery() returns double precision
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select extract(epoch from min(due) - clock_timestamp())::double precision from rowcall.webhook_due
$$;

-- Stores the end of an attempt. Without a delay, a delivery that failed is dead. After ten failures in succession, a
-- subscriber gets nothing for a growing time; attempts that were running then are not counted.
create function rowcall.end_delivery(
    _message uuid, _subscriber text, _attempt integer, _done boolean, _status integer, _error text,
    _delay double precision, _gone boolean)
returns void language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    update rowcall.webhook_delivery
    set state = case when _done then 'done' when _delay is null then 'dead' else 'waiting' end,
        run_at = case when _delay is null then run_at else clock_timestamp() + make_interval(secs => _delay) end,
        finished = case when _done or _delay is null then clock_timestamp() end,
        status = _status, error = _error
    where message = _message and subscriber = _subscriber and attempts = _attempt and state = 'waiting';
    if _done then
        update rowcall.webhook_target set failures = 0, paused_until = null
        where subscriber = _subscriber and failures > 0;
    else
        insert into rowcall.webhook_target as t (subscriber, failures) values (_subscriber, 1)
        on conflict (subscriber) do update set failures = t.failures + 1,
            paused_until = case when t.failures >= 9
                then clock_timestamp() + make_interval(secs => least(300, 2 ^ least(t.failures - 9, 20))) end
        where t.paused_until is null or t.paused_until <= clock_timestamp();
    end if;
    if _gone then
        update rowcall.webhook_subscriber set active = false where name = _subscriber;
    end if;
end $$;

-- Delivers messages again, dead ones and those that were delivered. Returns how many.
create function rowcall.replay_webhooks(
    _topic text, _since timestamptz, _until timestamptz default 'infinity', _subscriber text default null)
returns bigint language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    found_count bigint;
begin
    update rowcall.webhook_delivery d
    set state = 'waiting', attempts = 0, since = clock_timestamp(), run_at = clock_timestamp(), finished = null
    from rowcall.webhook_message m
    where m.id = d.message and d.state <> 'waiting' and m.created >= _since and m.created < _until
        and rowcall.matches_topic(m.topic, array[_topic]) and (_subscriber is null or d.subscriber = _subscriber);
    get diagnostics found_count = row_count;
    delete from rowcall.webhook_target where subscriber = coalesce(_subscriber, subscriber);
    perform pg_notify('rowcall_webhooks', '');
    return found_count;
end $$;

create function rowcall.remove_webhooks(_seconds double precision, _most integer) returns void
language sql security definer set search_path = pg_catalog, pg_temp as $$
    delete from rowcall.webhook_message where id in (
        select m.id from rowcall.webhook_message m
        where m.assigned and m.created < clock_timestamp() - make_interval(secs => _seconds)
            and not exists (select from rowcall.webhook_delivery d where d.message = m.id and d.state <> 'done')
        limit _most)
$$;

-- They reveal secrets, or change what was delivered: a service whose role has not installed the schema needs grants.
revoke execute on function
    rowcall.take_deliveries(text[], text[], integer, double precision),
    rowcall.end_delivery(uuid, text, integer, boolean, integer, text, double precision, boolean),
    rowcall.replay_webhooks(text, timestamptz, timestamptz, text),
    rowcall.remove_webhooks(double precision, integer)
from public;
