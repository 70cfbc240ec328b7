-- HTTP GET
-- single
select '\x0141'::bytea