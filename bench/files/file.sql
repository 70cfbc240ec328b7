-- HTTP GET /bench/file
-- allow_anonymous
select id, name, balance, opened from bench.account where id = :id;
