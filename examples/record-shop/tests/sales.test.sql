-- What a sale does, and what it must not do.
begin;

/*
POST /sales

{"customerId": 2, "albumId": 10, "quantity": 2}

HTTP/1.1 200

{"sale": {"saleId": "{{integer}}", "albumId": 10, "quantity": 2, "total": 37.00}, "left": 2}
*/

/*
POST /sales

{"customerId": 2, "albumId": 11}

HTTP/1.1 400
*/

select count(*) = 1, 'the sale that was refused is not written' from shop.sale where sold_on = date '2026-02-01';
select stock = 2, 'what was sold is gone' from shop.album where album_id = 10;
select stock = 0, 'and nothing else' from shop.album where album_id = 11;
