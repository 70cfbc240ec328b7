-- A record shop: what it sells, to whom, what was sold, what came in. Plain tables; nothing in here knows of HTTP.
create schema shop;

create table shop.artist (
  artist_id int primary key,
  name text not null unique,
  country text not null
);

create table shop.album (
  album_id int primary key,
  artist_id int not null references shop.artist,
  title text not null,
  released date not null,
  price numeric(6, 2) not null check (price > 0),
  stock int not null check (stock >= 0)
);

create table shop.track (
  album_id int not null references shop.album,
  number int not null,
  title text not null,
  seconds int not null check (seconds > 0),
  primary key (album_id, number)
);

create table shop.customer (
  customer_id int generated always as identity primary key,
  name text not null,
  email text not null unique,
  joined date not null default date '2026-01-01'
);

create table shop.sale (
  sale_id int generated always as identity primary key,
  customer_id int not null references shop.customer,
  album_id int not null references shop.album,
  quantity int not null check (quantity > 0),
  price numeric(6, 2) not null,
  sold_on date not null default date '2026-02-01'
);

create table shop.delivery (
  delivery_id int generated always as identity primary key,
  album_id int not null references shop.album,
  quantity int not null check (quantity > 0),
  shelved boolean not null default false
);

create table shop.clerk (
  clerk_id int primary key,
  name text not null unique,
  password_hash text not null
);

-- Subscribers get the remaining stock of an album when the transaction that changes it commits.
create function shop.publish_stock() returns trigger language plpgsql as $$
begin
  perform pg_notify('shop_stock', json_build_object('albumId', new.album_id, 'stock', new.stock)::text);
  return null;
end
$$;

create trigger publish_stock after update of stock on shop.album
for each row when (old.stock is distinct from new.stock) execute function shop.publish_stock();

insert into shop.artist values
  (1, 'The Lanterns', 'NO'), (2, 'Marisol Quartet', 'PT'), (3, 'Ferrous', 'GB');

insert into shop.album values
  (10, 1, 'Harbour Lights', '2019-03-08', 18.50, 4),
  (11, 1, 'Low Water', '2022-11-04', 21.00, 0),
  (20, 2, 'Azulejo', '2020-06-19', 16.00, 7),
  (30, 3, 'Rust Never Hurries', '2024-01-26', 24.90, 2);

insert into shop.track values
  (10, 1, 'Pier', 204), (10, 2, 'Fog Horn', 187), (10, 3, 'Home Again', 251),
  (11, 1, 'Ebb', 312), (11, 2, 'Mud', 158),
  (20, 1, 'Blue', 233), (20, 2, 'White', 219),
  (30, 1, 'Oxide', 301), (30, 2, 'Patina', 276);

insert into shop.customer (name, email, joined) values
  ('Ines', 'ines@example.org', '2025-04-02'), ('Odd', 'odd@example.org', '2025-09-17');

insert into shop.sale (customer_id, album_id, quantity, price, sold_on) values
  (1, 10, 1, 18.50, '2025-12-01'), (1, 20, 2, 16.00, '2025-12-20'), (2, 30, 1, 24.90, '2026-01-15');

-- The password is "needle"; `rowcall --hash needle` printed this.
insert into shop.clerk values (1, 'vera', 'fdfeNaUe2cWzuSzvwtC/f56XdrvnsttloeTa7ytaqGHj/Q7mGFK6PpACietXnc/E');

-- What the service of rates.py answers. {currency} is a parameter of the file that uses the type.
create type shop.currency_rate as (body json, status_code int, error_message text);
comment on type shop.currency_rate is 'timeout 2s
@retry_delay 100ms on 503
GET {RATES_URL}/rates/{currency}';
