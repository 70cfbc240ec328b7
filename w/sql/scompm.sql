-- HTTP GET
-- single
select row(1,'x')::my_row as r;
-- single
-- nested
select row(1,'x')::my_row as r