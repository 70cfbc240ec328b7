-- HTTP GET
-- single
select '{"a":1}'::jsonb