-- What is left of each album. /stock/changes is the stream of what changes.
-- HTTP GET /stock
-- sse_listen shop_stock changes
select album_id, stock from shop.album order by album_id;
