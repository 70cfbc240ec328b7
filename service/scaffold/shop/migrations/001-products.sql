-- Products, their stock, and orders.

create table product (
    id int generated always as identity primary key,
    name text not null unique,
    price numeric(10, 2) not null check (price >= 0),
    stock int not null default 0 check (stock >= 0)
);
insert into product (name, price, stock) values ('Basket', 9.90, 12), ('Saddle', 49.00, 3), ('Chain', 15.50, 0);

create table customer_order (
    id bigint generated always as identity primary key,
    email text not null check (email like '%_@_%'),
    created_at timestamptz not null default now()
);
create table order_line (
    order_id bigint not null references customer_order on delete cascade,
    product_id int not null references product,
    quantity int not null check (quantity > 0),
    price numeric(10, 2) not null,
    primary key (order_id, product_id)
);
