-- A delivery is a CSV file: the number of an album and how many of it came. All of it is shelved, or nothing.
-- HTTP POST /deliveries
-- authorize
-- upload for csv
-- @param files is upload metadata
-- @param files default null
-- row_command = insert into shop.delivery (album_id, quantity) values (($2)[1]::int, ($2)[2]::int)
-- single
with shelved as (
  update shop.delivery set shelved = true where not shelved returning album_id, quantity
), arrived as (
  update shop.album a set stock = a.stock + s.quantity
  from (select album_id, sum(quantity)::int as quantity from shelved group by album_id) s
  where a.album_id = s.album_id
)
select :files::json;
