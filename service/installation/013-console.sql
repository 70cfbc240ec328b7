-- Actions of operators: deliveries that were given up run again, and jobs of schedules run at once.

-- Enqueues a job of a schedule at once, beside those of its times. Without overlap, returns the former job if that has not
-- ended.
create function rowcall.run_schedule(_endpoint text, _queue text, _priority integer, _overlap boolean) returns uuid
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    made uuid := rowcall.add_job(
        _endpoint, '{}', false, _queue, _priority, case when not _overlap then 'schedule' end, '', null, now());
begin
    update rowcall.schedule set job = made where endpoint = _endpoint;
    return made;
end $$;

-- Delivers a message again to a subscriber for whom it was given up. Returns `waiting`; the state of a delivery that was
-- not given up; null if there is no such delivery.
create function rowcall.retry_delivery(_message uuid, _subscriber text) returns text
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    before text;
begin
    select state into before from rowcall.webhook_delivery
    where message = _message and subscriber = _subscriber for update;
    if before = 'dead' then
        update rowcall.webhook_delivery
        set state = 'waiting', attempts = 0, since = clock_timestamp(), run_at = clock_timestamp(), finished = null
        where message = _message and subscriber = _subscriber;
        delete from rowcall.webhook_target where subscriber = _subscriber;
        perform pg_notify('rowcall_webhooks', '');
        return 'waiting';
    end if;
    return before;
end $$;

-- They repeat work of any user: other roles need grants.
revoke execute on function
    rowcall.run_schedule(text, text, integer, boolean),
    rowcall.retry_delivery(uuid, text)
from public;
