-- Counts of mail for metrics.

create index mail_failed on rowcall.mail (created) where state = 'failed';

create function rowcall.count_mail() returns table (state text, mails bigint)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select 'waiting', count(*) from rowcall.mail where state = 'waiting'
    union all
    select 'failed', count(*) from rowcall.mail where state = 'failed'
$$;
