-- HTTP GET
select row(1,'x')::my_row as r, row(2,'y')::my_row as s