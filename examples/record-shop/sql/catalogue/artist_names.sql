-- One column alone is an array of values.
-- HTTP GET /artists/names
select name from shop.artist order by name;
