-- HTTP GET
-- table_format = html
select 1 as a, 2 as b