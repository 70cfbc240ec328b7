-- Mail that bounced, and a limit of tokens for a subject.

alter table rowcall.mail drop constraint mail_state_check;
alter table rowcall.mail add check (state in ('waiting', 'sent', 'failed', 'bounced'));
create index mail_bounced on rowcall.mail (created) where state = 'bounced';

-- Marks a mail as one that was not delivered, as its provider or the report of a mail server says later. The id is that
-- of the mail, or its Message-ID. Returns id, recipients, subject and reason; null: there is no such mail (any more).
create function rowcall.bounce_mail(_id text, _reason text) returns jsonb
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    number uuid := substring(_id from '^<?([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})(?:@[^@]*)?$')::uuid;
    bounced rowcall.mail;
begin
    update rowcall.mail m set state = 'bounced', error = left(_reason, 500), finished = clock_timestamp()
    where m.id = number and m.state in ('sent', 'bounced')
    returning m.* into bounced;
    if bounced.id is null then
        return null;
    end if;
    return jsonb_build_object('id', bounced.id, 'to', bounced.message -> 'to', 'subject', bounced.message -> 'subject',
        'reason', bounced.error);
end $$;

-- Stores that a mail has failed for good, and publishes that under a topic, unless it is null.
create function rowcall.fail_mail(_id uuid, _attempt integer, _error text, _topic text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    failed rowcall.mail;
begin
    update rowcall.mail m set state = 'failed', error = _error, finished = clock_timestamp()
    where m.id = _id and m.attempts = _attempt and m.state = 'waiting'
    returning m.* into failed;
    if failed.id is not null and _topic is not null then
        perform rowcall.publish(_topic, jsonb_build_object('id', failed.id, 'to', failed.message -> 'to',
            'subject', failed.message -> 'subject', 'reason', _error));
    end if;
end $$;

create or replace function rowcall.count_mail() returns table (state text, mails bigint)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select 'waiting', count(*) from rowcall.mail where state = 'waiting'
    union all
    select 'failed', count(*) from rowcall.mail where state = 'failed'
    union all
    select 'bounced', count(*) from rowcall.mail where state = 'bounced'
$$;

-- Returns whether a subject may get another token: fewer than `_most` were issued for this purpose in the last seconds.
-- Of parallel transactions, each waits for the one before.
create function rowcall.may_issue_token(_purpose text, _subject text, _most integer, _seconds double precision)
returns boolean language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform pg_advisory_xact_lock(hashtextextended('rowcall token ' || _purpose || ' ' || _subject, 0));
    return (
        select count(*) < _most from (
            select from rowcall.token
            where subject = _subject and purpose = _purpose and created > clock_timestamp() - make_interval(secs => _seconds)
            limit _most
        ) recent
    );
end $$;

revoke execute on function
    rowcall.bounce_mail(text, text),
    rowcall.fail_mail(uuid, integer, text, text),
    rowcall.may_issue_token(text, text, integer, double precision)
from public;
