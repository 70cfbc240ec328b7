-- One-time tokens, stored as hashes, and mail that waits to be sent.

create table rowcall.token (
    hash bytea primary key,
    purpose text not null,
    subject text not null,
    created timestamptz not null default clock_timestamp(),
    expires timestamptz not null,
    used timestamptz
);
create index token_subject on rowcall.token (subject, purpose);
create index token_expires on rowcall.token (expires);
comment on table rowcall.token is 'One-time tokens: SHA-256 of each, what it is for, and for whom.';

-- Returns a new token of 64 hexadecimal digits. It is valid for one use if the transaction commits.
create function rowcall.issue_token(_purpose text, _subject text, _lifetime interval default '1 hour')
returns text language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    made text := replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', '');
begin
    if _subject is null or _lifetime is null then
        raise exception 'a token needs a subject and a lifetime' using errcode = 'null_value_not_allowed';
    end if;
    delete from rowcall.token where hash in (
        select hash from rowcall.token where expires < now() - interval '30 days' limit 10 for update skip locked);
    insert into rowcall.token (hash, purpose, subject, expires)
    values (sha256(convert_to(made, 'UTF8')), _purpose, _subject, clock_timestamp() + _lifetime);
    return made;
end $$;

-- Uses a token up and returns its subject; null: it is not valid, has expired, or has been used. Other unused tokens of
-- the same purpose and subject are revoked. If the transaction is rolled back, the token is still valid.
create function rowcall.consume_token(_purpose text, _token text)
returns text language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    owner text;
begin
    update rowcall.token set used = clock_timestamp()
    where hash = sha256(convert_to(_token, 'UTF8')) and purpose = _purpose and used is null
        and expires > clock_timestamp()
    returning subject into owner;
    if owner is not null then
        perform rowcall.revoke_tokens(owner, _purpose);
    end if;
    return owner;
end $$;

-- Revokes unused tokens of a subject, of one purpose or of all. Returns how many.
create function rowcall.revoke_tokens(_subject text, _purpose text default null)
returns bigint language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    with removed as (
        delete from rowcall.token
        where subject = _subject and purpose = coalesce(_purpose, purpose) and used is null
        returning 1
    )
    select count(*) from removed
$$;

create function rowcall.list_tokens(_subject text)
returns table (purpose text, created timestamptz, expires timestamptz, used timestamptz)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select purpose, created, expires, used from rowcall.token where subject = _subject order by created desc
$$;

create table rowcall.mail (
    id uuid primary key default gen_random_uuid(),
    state text not null default 'waiting' check (state in ('waiting', 'sent', 'failed')),
    -- from, to, cc, bcc, replyTo, subject, text, html, attachments
    message jsonb not null,
    attempts integer not null default 0,
    created timestamptz not null default clock_timestamp(),
    run_at timestamptz not null default clock_timestamp(),
    finished timestamptz,
    error text
);
create index mail_waiting on rowcall.mail (run_at) where state = 'waiting';
create index mail_finished on rowcall.mail (finished) where finished is not null;
comment on table rowcall.mail is 'Mail that waits to be sent, and mail of the last days.';

-- Inserts a mail, which is sent if the transaction commits.
create function rowcall.send_mail(_message jsonb)
returns uuid language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    made uuid;
begin
    insert into rowcall.mail (message) values (_message) returning id into made;
    perform pg_notify('rowcall_mail', '');
    return made;
end $$;

-- Takes mail that is due for some seconds, after which another worker may take it.
create function rowcall.take_mail(_most integer, _seconds double precision)
returns setof rowcall.mail language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    update rowcall.mail m
    set attempts = m.attempts + 1, run_at = clock_timestamp() + make_interval(secs => _seconds)
    from (
        select id from rowcall.mail
        where state = 'waiting' and run_at <= clock_timestamp()
        order by run_at limit _most for update skip locked
    ) found
    where m.id = found.id
    returning m.*
$$;

create function rowcall.next_mail() returns double precision
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select extract(epoch from min(run_at) - clock_timestamp())::double precision from rowcall.mail
    where state = 'waiting'
$$;

-- Stores the end of an attempt. An error without a delay is final. The message of a mail that was sent is removed, as it
-- may contain a token.
create function rowcall.end_mail(_id uuid, _attempt integer, _error text, _delay double precision)
returns void language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    update rowcall.mail
    set state = case when _error is null then 'sent' when _delay is null then 'failed' else 'waiting' end,
        run_at = case when _delay is null then run_at else clock_timestamp() + make_interval(secs => _delay) end,
        finished = case when _error is null or _delay is null then clock_timestamp() end,
        message = case when _error is null then message - 'text' - 'html' - 'attachments' else message end,
        error = _error
    where id = _id and attempts = _attempt and state = 'waiting'
$$;

create function rowcall.remove_mail(_seconds double precision, _most integer) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    delete from rowcall.mail where id in (
        select id from rowcall.mail where finished < now() - make_interval(secs => _seconds) limit _most
        for update skip locked)
$$;

-- They make or reveal secrets, or send mail in the name of the service: other roles need grants.
revoke execute on function
    rowcall.issue_token(text, text, interval),
    rowcall.consume_token(text, text),
    rowcall.revoke_tokens(text, text),
    rowcall.list_tokens(text),
    rowcall.send_mail(jsonb),
    rowcall.take_mail(integer, double precision),
    rowcall.end_mail(uuid, integer, text, double precision),
    rowcall.remove_mail(double precision, integer)
from public;
