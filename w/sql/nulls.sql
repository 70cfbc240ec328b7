-- HTTP GET
-- single
select null::int;