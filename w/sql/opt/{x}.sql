-- HTTP GET /opt/{id?}
-- param id default 7
select :id as id, 1 as n