-- HTTP GET
-- raw
-- Content-Type: text/csv
-- table_format = html
select 1 as a;
select 2 as b