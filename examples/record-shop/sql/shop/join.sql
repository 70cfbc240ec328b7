-- HTTP PUT /customers
-- @single
insert into shop.customer (name, email) values (:name, :email)
on conflict (email) do update set name = excluded.name
returning customer_id, name, email;
