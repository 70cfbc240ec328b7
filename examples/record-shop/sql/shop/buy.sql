-- A sale is one transaction: either the stock goes down and the sale is written, or nothing happens.
-- HTTP POST /sales
-- @param customer_id type is int
-- @param album_id type is int
-- @param quantity type is int default 1
begin;

update shop.album set stock = stock - :quantity where album_id = :album_id; -- @skip

-- @result sale
-- @single
insert into shop.sale (customer_id, album_id, quantity, price)
select :customer_id, album_id, :quantity, price from shop.album where album_id = :album_id
returning sale_id, album_id, quantity, quantity * price as total;

commit;

-- @result left
-- @single
select stock from shop.album where album_id = :album_id;
