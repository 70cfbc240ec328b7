-- HTTP GET
select n from generate_series(1,100000) n; select 1/:z::int