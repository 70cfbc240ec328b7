-- All albums, or those of one artist, or those that can be had now.
-- HTTP GET /albums
-- @param artist default null
-- @param in_stock type is boolean default false
select a.album_id, a.title, r.name as artist, a.released, a.price
from shop.album a
join shop.artist r using (artist_id)
where (:artist::text is null or r.name ilike '%' || :artist || '%')
  and (not :in_stock or a.stock > 0)
order by a.released;
