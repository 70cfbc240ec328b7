-- HTTP GET
select '\x01'::bytea; select '\x01'::bytea, 1