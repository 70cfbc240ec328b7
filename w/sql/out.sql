-- HTTP POST
-- logout
select 1;