-- HTTP GET
-- timeout 200ms
select 1; select pg_sleep(5)