create function products() returns table (id int, name text, price numeric, available boolean) language sql stable as $$
    select id, name, price, stock > 0 from product
$$;
comment on function products() is 'HTTP GET /api/products
Filter, order and page: /api/products?price=lt.20&order=price.desc&limit=10
allow_anonymous
queryable by id';

create type wanted_line as (product_id int, quantity int);

-- Reserves the stock and stores the order, or nothing of both. A repeated request with the same Idempotency-Key has the
-- response of the first one.
create function place_order(_email text, _lines wanted_line[])
returns table (order_id bigint, total numeric) language plpgsql as $$
declare
    _order bigint;
    _line wanted_line;
begin
    if cardinality(_lines) = 0 then
        raise exception 'the order has no lines' using errcode = 'check_violation';
    end if;
    insert into customer_order (email) values (_email) returning id into _order;
    foreach _line in array _lines loop
        update product set stock = stock - _line.quantity where id = _line.product_id;
        insert into order_line
        select _order, id, _line.quantity, price from product where id = _line.product_id;
        if not found then
            raise exception 'there is no product %', _line.product_id using errcode = 'check_violation';
        end if;
    end loop;
    return query select _order, sum(l.quantity * l.price) from order_line l where l.order_id = _order;
end $$;
comment on function place_order(text, wanted_line[]) is 'HTTP POST /api/orders
allow_anonymous
validate _email using email
idempotent
single';

create function orders() returns table (id bigint, email text, created_at timestamptz, total numeric) language sql stable as $$
    select o.id, o.email, o.created_at, sum(l.quantity * l.price)
    from customer_order o join order_line l on l.order_id = o.id group by o.id order by o.id
$$;
comment on function orders() is 'HTTP GET /api/orders
As CSV: /api/orders?format=csv
authorize clerk';
