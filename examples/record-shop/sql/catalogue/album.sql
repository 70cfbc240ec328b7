-- One album with its tracks: two statements, one answer.
-- HTTP GET /albums/{album_id}
-- @param album_id type is int
-- @result album
-- @single
select a.album_id, a.title, r.name as artist, a.released, a.price, a.stock
from shop.album a join shop.artist r using (artist_id)
where a.album_id = :album_id;

-- @result tracks
select number, title, make_interval(secs => seconds)::text as length
from shop.track where album_id = :album_id order by number;
