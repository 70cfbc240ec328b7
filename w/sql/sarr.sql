-- HTTP GET
-- single
select array[1,2]