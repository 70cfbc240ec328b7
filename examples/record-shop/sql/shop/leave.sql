-- Customers who never bought anything may go.
-- HTTP DELETE /customers
-- @request_param_type query_string
-- @param customer_id type is int
delete from shop.customer c
where c.customer_id = :customer_id and not exists (select from shop.sale s where s.customer_id = c.customer_id)
returning c.customer_id;
