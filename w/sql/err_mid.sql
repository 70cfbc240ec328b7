-- HTTP GET
select 1/(50000-n) as q, n from generate_series(1,100000) n where :z <> 'q'