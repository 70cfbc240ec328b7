-- HTTP GET
select array[row(row(1,'a')::my_row, null)::outer_row] as o