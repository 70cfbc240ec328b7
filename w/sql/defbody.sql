-- HTTP POST
-- param :a type is int default 3
-- param b default null
select :a as a, :b as b