-- HTTP GET /albums/{album_id}/price-in/{currency}
-- single
-- response_null_handling not_found
-- @param album_id type is int
-- param :rate rate shop.currency_rate
select a.title,
       upper(:currency) as currency,
       round(a.price * ((:rate::shop.currency_rate).body ->> 'rate')::numeric, 2) as price,
       (:rate::shop.currency_rate).error_message as problem
from shop.album a
where a.album_id = :album_id;
