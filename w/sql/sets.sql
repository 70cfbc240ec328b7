-- HTTP GET
select generate_series(1,3) as n; -- @result nums
select 1 as x where false; -- @result none @single