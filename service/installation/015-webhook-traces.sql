-- Messages keep the trace of the transaction that has published them.

alter table rowcall.webhook_message add column trace text;
-- The service sets it for the transaction of a traced request (`Tracing:Enabled`), so `rowcall.publish` has no parameter.
alter table rowcall.webhook_message alter column trace set default nullif(current_setting('rowcall.traceparent', true), '');
comment on column rowcall.webhook_message.trace is 'Trace context of the request that published it (traceparent).';

create function rowcall.message_trace(_message uuid) returns text
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select trace from rowcall.webhook_message where id = _message
$$;
-- Messages are for the service: other roles need grants.
revoke execute on function rowcall.message_trace(uuid) from public;
