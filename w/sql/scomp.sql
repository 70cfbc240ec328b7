-- HTTP GET
-- single
select row(1,'x')::my_row as r