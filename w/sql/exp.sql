-- HTTP GET
-- timeout 2s
select pg_sleep(0.1); select 5